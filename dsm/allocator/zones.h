// SPDX-License-Identifier: Apache-2.0
// Purpose: zones (003 section 5.4): runs of chunks, of one group each, out of which all threads are
// given blocks of whole pages. Two bits for each page, in words, say all of a zone's blocks.
//
//   used  last
//    0     0     free, and never used
//    0     1     free, used before
//    1     0     of a block that goes on at the next page
//    1     1     the last page of a block
//
// The zones are in a list, the latest first. A block is of the first one that has room, so that the
// others empty; a full one costs the search a load.
//
// Invariants: DAZ1 `longest` of a zone is not below its longest run of free pages.
//             DAZ2 a zone without blocks stays until chunks are short.
//             DAZ3 a page has a bit at the same place whether its group has a zone or not: there is
//                  one zone for each group at most, and other chunks of the group have no bits set.
//             DAZ4 a page that is used is never seen without the mark of its block's end: threads
//                  look at the page before a block without the lock.
// Thread safety: the holder of the heap's lock; pages_of() a live block: any thread.
#pragma once

#include <bitset>

#include "dsm/allocator/chunk_map.h"

namespace tombolo::dsm {

// 003 section 5.4.
inline constexpr std::size_t most_in_zone = std::size_t{1} << 20;

class Zones {
 public:
  // Numbers of pages leave no gap within a group.
  using PageNumber = std::uint64_t;
  // Pages of a block that were used before.
  using Before = std::bitset<most_in_zone / 4096>;

  // `base`: the heap's address, `page_bytes`: 4096 or more; both in bytes.
  Zones(ProgramMemory& memory, const HeapWords& words, ChunkMap& chunks, std::uintptr_t base,
        std::size_t page_bytes)
      : memory_(memory),
        words_(words),
        chunks_(chunks),
        base_(base),
        page_bytes_(page_bytes),
        used_(memory, words.pages_used()),
        last_(memory, words.pages_last()) {}

  PageNumber page_at(std::uint64_t offset) const {
    return offset / group_bytes * numbers_per_group + offset % group_bytes / page_bytes_;
  }
  std::uint64_t offset_of(PageNumber page) const {
    return page / numbers_per_group * group_bytes + page % numbers_per_group * page_bytes_;
  }

  // `alignment`: a power of two of bytes.
  std::optional<PageNumber> allocate(std::uint64_t count, std::size_t alignment, Before& before) {
    std::optional<PageNumber> page = allocate_here(count, alignment, before);
    if (!page && create(count)) page = allocate_here(count, alignment, before);
    return page;
  }

  // The pages of the block that begins there; 0 if none does.
  std::uint64_t pages_of(PageNumber page) const {
    if (!used_.test(page)) return 0;
    const bool begins =
        page % numbers_per_group == 0 || !used_.test(page - 1) || last_.test(page - 1);
    return begins ? last_.find(true, page, end_of_group(page)) + 1 - page : 0;
  }

  void free(PageNumber page, std::uint64_t count) {
    ZoneNote zone = note(page / numbers_per_group);
    mark_free(page, count, zone);
    put(page / numbers_per_group, zone);
  }

  // The block gives up its last pages. They are unused already as far as the caller goes.
  void shrink(PageNumber page, std::uint64_t from, std::uint64_t to) {
    last_.set(page + to - 1, page + to);
    free(page + to, from - to);
  }
  // The block takes the pages that follow it. False, and nothing has changed, if they are not free.
  bool grow(PageNumber page, std::uint64_t from, std::uint64_t to, Before& before) {
    ZoneNote zone = note(page / numbers_per_group);
    const PageNumber end = std::min(range_of(page / numbers_per_group, zone).end, page + to);
    if (!used_.clear_run(page + from, end, to - from)) return false;
    last_.clear(page + from - 1, page + from);
    mark_used(page + from, to - from, zone, before);
    put(page / numbers_per_group, zone);
    return true;
  }

  // Gives the chunks of zones without blocks back. False if there were none.
  bool release_empty() {
    bool released = false;
    Link link;
    while (const std::uint64_t next = successor(link)) {
      const std::uint64_t group = next - 1;
      const ZoneNote zone = note(group);
      if (zone.free == zone.chunks * pages_per_chunk()) {
        unlink(link, zone);
        remove(group, zone);
        released = true;
      } else {
        link.group = group;
      }
    }
    return released;
  }

 private:
  static constexpr std::uint64_t numbers_per_group = HeapWords::page_words_per_group * 64;
  static constexpr std::uint64_t none = ~std::uint64_t{0};

  // The word of a group; 0 without a zone.
  struct ZoneNote {
    std::uint64_t first = 0;  // chunk of the group
    std::uint64_t chunks = 0;
    std::uint64_t free = 0;     // pages
    std::uint64_t longest = 0;  // run of free pages, at most
    std::uint64_t next = 0;     // group of the next zone of the list, and 1
  };
  struct PageRange {
    PageNumber begin;
    PageNumber end;
  };
  // The place in the list behind this group's zone, or at its front.
  struct Link {
    std::uint64_t group = none;
  };

  std::uint64_t pages_per_chunk() const { return chunk_bytes / page_bytes_; }
  static PageNumber end_of_group(PageNumber page) {
    return (page / numbers_per_group + 1) * numbers_per_group;
  }
  PageRange range_of(std::uint64_t group, const ZoneNote& zone) const {
    const PageNumber begin = group * numbers_per_group + zone.first * pages_per_chunk();
    return {begin, begin + zone.chunks * pages_per_chunk()};
  }

  ZoneNote note(std::uint64_t group) const {
    const std::uint64_t v = memory_.load(words_.zone(group));
    return {.first = v & 63,
            .chunks = v >> 6 & 127,
            .free = v >> 13 & 2047,
            .longest = v >> 24 & 2047,
            .next = v >> 35};
  }
  void put(std::uint64_t group, const ZoneNote& zone) {
    memory_.store(words_.zone(group), zone.first | zone.chunks << 6 | zone.free << 13 |
                                          zone.longest << 24 | zone.next << 35);
  }

  // ---- The list ---------------------------------------------------------------------------------

  std::uint64_t successor(Link link) const {
    return link.group == none ? memory_.load(words_.zones()) : note(link.group).next;
  }
  void set_successor(Link link, std::uint64_t next) {
    if (link.group == none) return memory_.store(words_.zones(), next);
    ZoneNote zone = note(link.group);
    zone.next = next;
    put(link.group, zone);
  }
  // Takes the zone behind `link` out.
  void unlink(Link link, const ZoneNote& zone) { set_successor(link, zone.next); }

  // ---- Pages ------------------------------------------------------------------------------------

  std::optional<PageNumber> allocate_here(std::uint64_t count, std::size_t alignment,
                                          Before& before) {
    ZoneNote zone;
    for (std::uint64_t next = memory_.load(words_.zones()); next != 0; next = zone.next) {
      const std::uint64_t group = next - 1;
      zone = note(group);
      if (const auto page = find(group, zone, count, alignment)) {
        mark_used(*page, count, zone, before);
        put(group, zone);
        return page;
      }
    }
    return std::nullopt;
  }

  std::optional<PageNumber> find(std::uint64_t group, ZoneNote& zone, std::uint64_t count,
                                 std::size_t alignment) {
    if (zone.longest < count) return std::nullopt;
    const PageRange range = range_of(group, zone);
    const std::uint64_t step = std::max<std::uint64_t>(1, alignment / page_bytes_);
    // To the address in pages: numbers of a group begin at a multiple of 1024.
    const std::uint64_t phase =
        (base_ + group * group_bytes) / page_bytes_ - group * numbers_per_group;
    const auto page = used_.clear_run(range.begin, range.end, count, step, phase);
    if (!page) {
      zone.longest = used_.longest_clear_run(range.begin, range.end);
      put(group, zone);
    }
    return page;
  }

  void mark_used(PageNumber page, std::uint64_t count, ZoneNote& zone, Before& before) {
    const PageNumber end = page + count;
    for (PageNumber p = last_.find(true, page, end); p < end; p = last_.find(true, p + 1, end))
      before.set(p - page);
    last_.clear(page, end - 1);
    // Before the page is used: it may lie before another block (DAZ4).
    last_.set(end - 1, end);
    used_.set(page, end);
    zone.free -= count;
    zone.longest = std::min(zone.longest, zone.free);
  }

  void mark_free(PageNumber page, std::uint64_t count, ZoneNote& zone) {
    used_.clear(page, page + count);
    last_.set(page, page + count);
    zone.free += count;
    // The run with the block has at most another on either side.
    zone.longest = std::min(zone.free, 2 * zone.longest + count);
  }

  // ---- Zones ------------------------------------------------------------------------------------

  // As large as there is room for.
  bool create(std::uint64_t pages) {
    for (std::uint64_t size = chunks_per_group; size * pages_per_chunk() >= pages && size > 0;
         size /= 2)
      for (std::uint64_t group = words_.groups(); group-- > 0;)
        if (memory_.load(words_.zone(group)) == 0)
          if (const auto first = chunks_.claim_in_group(group, size)) {
            add(group, *first, size);
            return true;
          }
    return false;
  }

  void add(std::uint64_t group, Chunk first, std::uint64_t size) {
    const std::uint64_t pages = size * pages_per_chunk();
    ZoneNote zone{.first = first % chunks_per_group,
                  .chunks = size,
                  .free = pages,
                  .longest = pages,
                  .next = memory_.load(words_.zones())};
    const PageRange range = range_of(group, zone);
    for (std::uint64_t i = 0; i < size; ++i) {
      const PageNumber page = range.begin + i * pages_per_chunk();
      if (chunks_.used_before().test(first + i)) last_.set(page, page + pages_per_chunk());
      memory_.store(words_.note(first + i), ChunkNote{.tier = Tier::zone}.pack());
    }
    put(group, zone);
    memory_.store(words_.zones(), group + 1);
  }

  // It is out of the list.
  void remove(std::uint64_t group, const ZoneNote& zone) {
    const PageRange range = range_of(group, zone);
    const Chunk first = group * chunks_per_group + zone.first;
    last_.clear(range.begin, range.end);
    for (std::uint64_t i = 0; i < zone.chunks; ++i) memory_.store(words_.note(first + i), 0);
    memory_.store(words_.zone(group), 0);
    chunks_.release(first, zone.chunks);
  }

  ProgramMemory& memory_;
  const HeapWords& words_;
  ChunkMap& chunks_;
  std::uintptr_t base_;
  std::size_t page_bytes_;
  WordBits used_;
  WordBits last_;
};

}  // namespace tombolo::dsm
