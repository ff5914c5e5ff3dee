// SPDX-License-Identifier: Apache-2.0
// Purpose: one cache: tags and data of lines, pseudo-LRU replacement. It holds bytes of its own, so
// that after memory has changed it returns stale data, as a real one would. It knows no time and no
// memory: the caller fetches lines, takes victims and pays for both.
//
//   if (!cache.read(address, &value, 8)) {
//     if (auto victim = cache.fill(line, kind, bytes_of_memory)) ... write it back if it is dirty
//     cache.read(address, &value, 8);
//   }
//
// A line has a kind, a small number that says which memory type it came from; all lines of a kind
// can be invalidated at once, in constant time.
//
// Invariants:
//   SA1 A line is in at most one way. A hit touches it for replacement; a look without a hit, and
//       the operations on many lines, do not.
//   SA2 A victim is an invalid way if the set has one (the lowest), else the one that pseudo-LRU
//       names.
//   SA3 Invalidating never writes anything back: dirty bytes are lost, whole lines come from memory
//       again. Writing back takes whole lines, with all bytes that were never written.
//   SA4 Operations on many lines meet them by set, then way.
// Thread safety: one thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "base/check.h"
#include "base/copy.h"
#include "simulator/kernel/identifiers.h"
#include "simulator/parts/tree_plru.h"

namespace tombolo::simulator {

using LineKind = std::uint8_t;

enum class WritePolicy : std::uint8_t { write_back, write_through };

enum class WriteOutcome : std::uint8_t {
  kept,       // in the cache, which is now newer than memory
  sent_on,    // in the cache if it was there; the caller brings it to memory as well
  must_fill,  // not in the cache, which allocates: fill the line and write again
};

// A line as it lies in the cache, or as it has left it. `bytes` is valid until the next call.
struct CachedLine {
  Line line;
  LineKind kind = 0;
  bool dirty = false;
  const std::byte* bytes = nullptr;
};

struct CacheShape {
  std::size_t bytes;
  std::uint32_t ways;
  LineSize line_size;
  bool allocate_on_write_miss = false;
};

class SetAssociativeCache {
 public:
  static constexpr std::size_t kinds = 16;

  explicit SetAssociativeCache(const CacheShape& shape)
      : shape_(shape),
        sets_(shape.bytes / shape.line_size.bytes() / shape.ways),
        plru_(shape.ways),
        tags_(sets_ * shape.ways),
        plru_states_(sets_),
        data_(shape.bytes),
        victim_(shape.line_size.bytes()) {
    TOMBOLO_CHECK(std::has_single_bit(sets_) && sets_ * shape.ways * line_bytes() == shape.bytes,
                  "a cache of {} bytes in {} ways of lines of {} bytes: not a power of two of sets",
                  shape.bytes, shape.ways, line_bytes());
  }

  const CacheShape& shape() const { return shape_; }
  std::size_t line_bytes() const { return shape_.line_size.bytes(); }

  // The bytes lie in one line. False: a miss.
  bool read(Address from, void* to, std::size_t bytes) {
    const std::size_t at = hit(from, bytes);
    if (at == miss) return false;
    copy_bytes(to, data(at) + shape_.line_size.offset(from), bytes);
    return true;
  }

  // The bytes lie in one line.
  WriteOutcome write(Address to, const void* from, std::size_t bytes, WritePolicy policy) {
    const std::size_t at = hit(to, bytes);
    if (at == miss) {
      return shape_.allocate_on_write_miss ? WriteOutcome::must_fill : WriteOutcome::sent_on;
    }
    copy_bytes(data(at) + shape_.line_size.offset(to), from, bytes);
    if (policy == WritePolicy::write_through) return WriteOutcome::sent_on;
    tags_[at].dirty = true;
    return WriteOutcome::kept;
  }

  // Puts a line that is not there into the cache, clean; returns the line that had to go for it.
  std::optional<CachedLine> fill(Line line, LineKind kind, const std::byte* bytes) {
    TOMBOLO_CHECK(kind < kinds, "a line of kind {}: there are {}", kind, kinds);
    TOMBOLO_CHECK(find(line) == miss, "line {:#x} is filled and already there", line.number());
    const std::size_t at = place(set_of(line));
    const std::optional<CachedLine> gone = take_out(at);
    std::memcpy(data(at), bytes, line_bytes());
    tags_[at] = {line, generations_[kind], kind, true, false};
    touch(at);
    return gone;
  }

  // The cache's copy of a line, without touching it.
  std::optional<CachedLine> look(Line line) const {
    const std::size_t at = find(line);
    if (at == miss) return std::nullopt;
    return view(at);
  }

  // Removes one line; the caller writes it back or not.
  std::optional<CachedLine> evict(Line line) {
    const std::size_t at = find(line);
    if (at == miss) return std::nullopt;
    return take_out(at);
  }

  void invalidate_kind(LineKind kind) {
    TOMBOLO_CHECK(kind < kinds, "lines of kind {}: there are {}", kind, kinds);
    if (++generations_[kind] != 0) return;
    // Old numbers come up again: remove the lines that still have one.
    for (Tag& tag : tags_) tag.valid = tag.valid && tag.kind != kind;
  }

  // Those for which condition(CachedLine) is true.
  template <class Condition>
  void invalidate_if(Condition&& condition) {
    for_each([&](const CachedLine& line, Tag& tag) { tag.valid = !condition(line); });
  }

  // The line as it was, if it was dirty; it stays, clean.
  std::optional<CachedLine> clean(Line line) {
    const std::size_t at = find(line);
    if (at == miss || !tags_[at].dirty) return std::nullopt;
    const CachedLine was = view(at);
    tags_[at].dirty = false;
    return was;
  }

  // Hands dirty lines for which condition(CachedLine) is true to sink(CachedLine); they stay,
  // clean.
  template <class Condition, class Sink>
  void write_back_if(Condition&& condition, Sink&& sink) {
    for_each([&](const CachedLine& line, Tag& tag) {
      if (!line.dirty || !condition(line)) return;
      sink(line);
      tag.dirty = false;
    });
  }

  // Hands all dirty lines to the sink and empties the cache.
  template <class Sink>
  void flush(Sink&& sink) {
    write_back_if([](const CachedLine&) { return true; }, sink);
    invalidate_if([](const CachedLine&) { return true; });
  }

  // Calls visit(CachedLine) for each line in it.
  template <class Visit>
  void visit(Visit&& visit_line) const {
    for (std::size_t at = 0; at < tags_.size(); ++at) {
      if (alive(tags_[at])) visit_line(view(at));
    }
  }

 private:
  static constexpr std::size_t miss = ~std::size_t{0};

  struct Tag {
    Line line;
    std::uint32_t generation = 0;
    LineKind kind = 0;
    bool valid = false;
    bool dirty = false;
  };

  bool alive(const Tag& tag) const { return tag.valid && tag.generation == generations_[tag.kind]; }
  std::size_t set_of(Line line) const { return line.number() & (sets_ - 1); }
  std::byte* data(std::size_t at) { return data_.data() + at * line_bytes(); }
  const std::byte* data(std::size_t at) const { return data_.data() + at * line_bytes(); }
  CachedLine view(std::size_t at) const {
    return {tags_[at].line, tags_[at].kind, tags_[at].dirty, data(at)};
  }

  std::size_t find(Line line) const {
    const std::size_t first = set_of(line) * shape_.ways;
    for (std::size_t at = first; at < first + shape_.ways; ++at) {
      if (tags_[at].line == line && alive(tags_[at])) return at;
    }
    return miss;
  }

  void touch(std::size_t at) {
    std::uint64_t& state = plru_states_[at / shape_.ways];
    state = plru_.touched(state, static_cast<std::uint32_t>(at % shape_.ways));
  }

  std::size_t hit(Address address, std::size_t bytes) {
    TOMBOLO_CHECK(shape_.line_size.within_one(address, bytes),
                  "{} bytes at {:#x} are not in one line of {} bytes", bytes, address.byte(),
                  line_bytes());
    const std::size_t at = find(shape_.line_size.line(address));
    if (at != miss) touch(at);
    return at;
  }

  std::size_t place(std::size_t set) const {
    const std::size_t first = set * shape_.ways;
    for (std::size_t at = first; at < first + shape_.ways; ++at) {
      if (!alive(tags_[at])) return at;
    }
    return first + plru_.victim(plru_states_[set]);
  }

  std::optional<CachedLine> take_out(std::size_t at) {
    if (!alive(tags_[at])) return std::nullopt;
    CachedLine gone = view(at);
    std::memcpy(victim_.data(), gone.bytes, line_bytes());
    gone.bytes = victim_.data();
    tags_[at].valid = false;
    return gone;
  }

  template <class Visit>
  void for_each(Visit&& visit_line) {
    for (std::size_t at = 0; at < tags_.size(); ++at) {
      if (alive(tags_[at])) visit_line(view(at), tags_[at]);
    }
  }

  CacheShape shape_;
  std::size_t sets_;
  TreePlru plru_;
  std::array<std::uint32_t, kinds> generations_{};
  std::vector<Tag> tags_;
  std::vector<std::uint64_t> plru_states_;
  std::vector<std::byte> data_;
  std::vector<std::byte> victim_;
};

}  // namespace tombolo::simulator
