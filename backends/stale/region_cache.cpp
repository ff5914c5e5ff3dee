// SPDX-License-Identifier: Apache-2.0
#include "backends/stale/region_cache.h"

#include <algorithm>
#include <bit>

#include "backends/stale/page_presence.h"

namespace tombolo::stale {
namespace {

host::ZeroMemory address_space(std::size_t bytes) {
  host::ZeroMemory memory(bytes);
  TOMBOLO_CHECK(memory, "stale: no {} bytes of address space for a core's caches", bytes);
  return memory;
}

// From here on the pages of a range are asked for before they are touched.
constexpr std::size_t sparse_from = std::size_t{4} << 20;
constexpr Line lines_of_block = page_block / line_bytes;
constexpr Line lines_at_once = (std::size_t{64} << 20) / line_bytes;

void copy_unless(ByteMask keep, std::byte* to, const std::byte* from, std::size_t bytes) {
  if (keep == 0) {
    std::memcpy(to, from, bytes);
    return;
  }
  for (std::size_t i = 0; i < bytes; ++i)
    if ((keep >> i & 1) == 0) to[i] = from[i];
}

}  // namespace

RegionCache::RegionCache(SpanId span, Image image, Surroundings around)
    : id_(span), image_(image.at), around_(around), image_of_program_(image.of_program) {}

void RegionCache::ensure() {
  if (twin_) return;
  twin_ = address_space(span().bytes);
  valid_ = address_space((lines() + 63) / 64 * 8);
  written_ = address_space(lines() * sizeof(ByteMask));
  sparse_ =
      span().bytes >= sparse_from && (!image_of_program_ || is_anonymous(image_, span().bytes));
}

// Ranges -----------------------------------------------------------------------------------------

template <class Visit>
void RegionCache::each_piece(machine::Offset offset, std::size_t bytes, Visit&& visit) const {
  while (bytes > 0) {
    const Line line = span().line_of(offset);
    const std::size_t first = offset - span().start_of(line);
    const std::size_t count = std::min(bytes, bytes_of(line) - first);
    visit(line, first, count);
    offset += count;
    bytes -= count;
  }
}

template <class Visit>
void RegionCache::each_touched(Line first, Line end, bool memory_counts, Visit&& visit) {
  if (!sparse_ || (end - first) * line_bytes < sparse_from) {
    visit(first, end);
    return;
  }
  for (; first < end; first += std::min(lines_at_once, end - first)) {
    const Line until = std::min(end, first + lines_at_once);
    const machine::Offset offset = span().start_of(first);
    const std::size_t bytes = bytes_of(first, until);
    touched_.assign((bytes + page_block - 1) / page_block, 0);
    mark_touched_private(image_ + offset, bytes, touched_);
    if (memory_counts) mark_touched_shared(span().memory + offset, bytes, touched_);
    Line next = first;  // a block of bytes may end within a line, which is visited once
    for (std::size_t block = 0; block < touched_.size(); ++block) {
      if (touched_[block] == 0) continue;
      const machine::Offset begin = offset + block * page_block;
      const machine::Offset behind = std::min(begin + page_block, offset + bytes);
      const Line from = std::max(next, span().line_of(begin));
      next = span().line_of(behind - 1) + 1;
      if (from < next) visit(from, next);
    }
  }
}

bool RegionCache::pages_are_clean(Line first, Line end) const {
  if (std::memcmp(image_of(first), twin_of(first), bytes_of(first, end)) != 0) return false;
  return !written_used_ ||
         std::all_of(&written(first), &written(first) + (end - first), [](auto m) { return !m; });
}

template <class Visit>
void RegionCache::each_valid(Line first, Line end, bool memory_counts, Visit&& visit) {
  if (!twin_ || first == end) return;
  if (open_) {
    each_touched(first, end, memory_counts, [&](Line begin, Line stop) {
      for (; begin < stop; begin += std::min(lines_of_block, stop - begin)) {
        const Line until = std::min(stop, begin + lines_of_block);
        if (!memory_counts && pages_are_clean(begin, until)) continue;
        for (Line line = begin; line < until; ++line) visit(line);
      }
    });
    return;
  }
  for (Line word = first / 64; word * 64 < end; ++word) {
    std::uint64_t bits = valid_word(word * 64);
    for (; bits != 0; bits &= bits - 1) {
      const Line line = word * 64 + static_cast<Line>(std::countr_zero(bits));
      if (line >= first && line < end) visit(line);
    }
  }
}

// One line ---------------------------------------------------------------------------------------

RegionCache::Bytes RegionCache::seen(Line line) const {
  Bytes now;
  std::memcpy(now.at, image_of(line), bytes_of(line));
  return now;
}

ByteMask RegionCache::dirty(Line line, const Bytes& image) const {
  const ByteMask differs = differing(image.at, twin_of(line), bytes_of(line));
  return written_used_ ? differs | written(line) : differs;
}

void RegionCache::take(Line line, const Bytes& before, const Bytes& fresh, ByteMask keep) {
  const std::size_t bytes = bytes_of(line);
  Bytes wanted = before;
  copy_unless(keep, wanted.at, fresh.at, bytes);
  if (open_)
    shared::replace(image_of(line), before.at, wanted.at, bytes);
  else
    std::memcpy(image_of(line), wanted.at, bytes);
  copy_unless(keep, twin_of(line), fresh.at, bytes);
  if (written_used_) written(line) &= keep;
}

void RegionCache::fill(Line line) {
  Bytes fresh;
  around_.bus.load(id_, line, fresh.at);
  around_.combining.overlay(id_, line, fresh.at);  // RC5
  take(line, fresh, fresh, 0);
  valid_word(line) |= std::uint64_t{1} << line % 64;
}

void RegionCache::write_back(Line line, bool evicted) {
  const Bytes image = seen(line);
  const ByteMask changed = dirty(line, image);
  if (changed == 0) return;
  around_.combining.send(id_, line);  // bytes written through earlier must not come later
  const std::size_t bytes = bytes_of(line);
  Bytes old;
  const Writer victim = around_.bus.replace(id_, line, image.at, old.at);
  // A byte that we did not change was in memory as in the twin when we got it. If memory held
  // something else now, another core wrote it meanwhile, and has just lost it.
  const ByteMask lost = differing(old.at, image.at, bytes) & ~changed;
  if (lost != 0) report(Loss::lost_update, line, lost, around_.bus.writer(), victim, evicted);
  std::memcpy(twin_of(line), image.at, bytes);
  if (written_used_) written(line) = 0;
}

void RegionCache::drop(Line line, ByteMask range) {
  const Bytes image = seen(line);
  const ByteMask changed = dirty(line, image);
  if ((changed & range) != 0)
    report(Loss::dropped_write, line, changed & range, around_.bus.writer());
  const ByteMask keep = changed & ~range;
  if (!open_ && keep == 0) {
    valid_word(line) &= ~(std::uint64_t{1} << line % 64);
    if (written_used_) written(line) = 0;
    return;
  }
  Bytes fresh;
  around_.bus.load(id_, line, fresh.at);
  around_.combining.overlay(id_, line, fresh.at);  // RC5
  if (changed == 0 && std::memcmp(fresh.at, image.at, bytes_of(line)) == 0) return;
  take(line, image, fresh, keep);
}

// By region: a line may be of several.
void RegionCache::report(Loss loss, Line line, ByteMask bytes, Writer culprit, Writer victim,
                         bool evicted) const {
  const machine::Offset start = span().start_of(line);
  around_.spans.each_region(
      id_, start, start + bytes_of(line),
      [&](machine::Home home, machine::Offset begin, machine::Offset end) {
        // Of the region in the line.
        const machine::Offset at = around_.spans.start_of(home) + begin - start;
        const ByteMask mask = bytes >> at & byte_mask(0, end - begin);
        if (mask == 0) return;
        around_.findings.add(
            {.loss = loss,
             .home = home,
             .begin = begin + static_cast<machine::Offset>(std::countr_zero(mask)),
             .end = begin + line_bytes - static_cast<machine::Offset>(std::countl_zero(mask)),
             .bytes = static_cast<std::uint64_t>(std::popcount(mask)),
             .evicted = evicted,
             .culprit = culprit,
             .victim = victim});
      });
}

// Operations -------------------------------------------------------------------------------------

void RegionCache::adopt() {
  ensure();
  open_ = true;
  each_touched(0, lines(), true, [&](Line first, Line end) {
    for (Line line = first; line < end; ++line) {
      const std::size_t bytes = bytes_of(line);
      const Bytes image = seen(line);
      Bytes fresh;
      around_.bus.load(id_, line, fresh.at);
      if (!image_of_program_)
        take(line, image, fresh, 0);
      else if (differing(image.at, fresh.at, bytes) != 0)
        around_.bus.store(id_, line, image.at, byte_mask(0, bytes), around_.bus.writer().site);
      if (image_of_program_) std::memcpy(twin_of(line), image.at, bytes);
    }
  });
}

void RegionCache::expose() {
  if (open_) return;
  ensure();
  each_touched(0, lines(), true, [&](Line first, Line end) {
    for (Line line = first; line < end; ++line)
      if (!valid(line)) fill(line);
  });
  open_ = true;
}

void RegionCache::read(machine::Offset offset, std::byte* out, std::size_t bytes) {
  ensure();
  if (!open_) {
    each_piece(offset, bytes, [&](Line line, std::size_t, std::size_t) {
      if (!valid(line)) fill(line);
    });
  }
  std::memcpy(out, image_ + offset, bytes);
}

void RegionCache::write(machine::Offset offset, const std::byte* in, std::size_t bytes) {
  ensure();
  written_used_ = true;
  each_piece(offset, bytes, [&](Line line, std::size_t first, std::size_t count) {
    if (!valid(line)) fill(line);
    std::memcpy(image_of(line) + first, in, count);
    written(line) |= byte_mask(first, count);
    in += count;
  });
}

void RegionCache::write_through(machine::Offset offset, const std::byte* in, std::size_t bytes) {
  each_piece(offset, bytes, [&](Line line, std::size_t first, std::size_t count) {
    around_.combining.put(id_, line, first, in, count);
    if (twin_ && valid(line)) {
      std::memcpy(image_of(line) + first, in, count);
      std::memcpy(twin_of(line) + first, in, count);
      if (written_used_) written(line) &= ~byte_mask(first, count);
    }
    in += count;
  });
}

void RegionCache::publish(machine::Offset offset, std::size_t bytes) {
  if (bytes == 0) return;
  each_valid(span().line_of(offset), span().line_of(offset + bytes - 1) + 1, false,
             [&](Line line) { write_back(line, false); });
}

void RegionCache::refresh(machine::Offset offset, std::size_t bytes) {
  if (bytes == 0) return;
  const Line begin = span().line_of(offset);
  const Line end = span().line_of(offset + bytes - 1) + 1;
  each_valid(begin, end, true, [&](Line line) {
    const machine::Offset start = span().start_of(line);
    const std::size_t from = line == begin ? offset - start : 0;
    const std::size_t to = line + 1 == end ? offset + bytes - start : bytes_of(line);
    drop(line, byte_mask(from, to - from));
  });
}

void RegionCache::evict(Line line) {
  if (!twin_ || line >= lines() || !valid(line)) return;
  write_back(line, true);
  drop(line, 0);
}

Line RegionCache::candidate(Random& random) {
  constexpr Line scanned = 32;
  if (!open_ || lines() == 0) return lines();
  const Line start = random.below(lines());
  const Line end = std::min(lines(), start + scanned);
  if (sparse_) {
    // Looking at an unused page would make it exist.
    touched_.assign(2, 0);
    mark_touched_private(image_of(start), 1, touched_);
    if (touched_[0] == 0) return lines();
  }
  for (Line line = start; line < end; ++line)
    if (dirty(line, seen(line)) != 0) return line;
  return start;
}

void RegionCache::report_unpublished() {
  if (!written_used_) return;
  each_mapped([&](Line first, Line end) {
    each_valid(first, end, false, [&](Line line) {
      const ByteMask left = dirty(line, seen(line)) & written(line);
      if (left != 0) report(Loss::unpublished, line, left, around_.bus.writer());
    });
  });
}

void RegionCache::report_stores() {
  each_valid(0, lines(), false, [&](Line line) {
    if (const ByteMask stored = dirty(line, seen(line)); stored != 0)
      report(Loss::broken_no_store, line, stored, around_.bus.writer());
  });
}

ByteMask RegionCache::missing(Line line, const Bytes& image, Bytes& fresh) const {
  around_.bus.load(id_, line, fresh.at);
  around_.combining.overlay(id_, line, fresh.at);  // RC5
  return differing(fresh.at, image.at, bytes_of(line)) & ~dirty(line, image);
}

void RegionCache::report_missing() {
  bool any = false;
  each_valid(0, lines(), true, [&](Line line) {
    Bytes fresh;
    const ByteMask bytes = missing(line, seen(line), fresh);
    if (bytes == 0) return;
    any = true;
    report(Loss::broken_no_put, line, bytes, around_.bus.writer(),
           around_.bus.other_writer(id_, line));
  });
  // An eviction has brought them, or they are the same as before.
  if (!any)
    around_.findings.add({.loss = Loss::broken_no_put,
                          .home = span().first,  // promises are of regions that share no line
                          .culprit = around_.bus.writer(),
                          .victim = {}});
}

void RegionCache::hand_back() {
  if (!image_of_program_) return;
  each_mapped([&](Line first, Line end) {
    each_valid(first, end, true, [&](Line line) {
      const Bytes image = seen(line);
      Bytes fresh;
      const ByteMask bytes = missing(line, image, fresh);
      if (bytes == 0) return;
      report(Loss::late, line, bytes, around_.bus.writer(), around_.bus.other_writer(id_, line));
      take(line, image, fresh, dirty(line, image));
    });
  });
}

// An image that is the program's own may be gone already: programs release the memory of a window
// before the window, though they should not. That is no reason to crash.
template <class Visit>
void RegionCache::each_mapped(Visit&& visit) const {
  if (!image_of_program_ || is_mapped(image_, span().bytes)) return visit(Line{0}, lines());
  for (Line first = 0; first < lines(); first += lines_of_block) {
    const Line end = std::min(lines(), first + lines_of_block);
    if (is_mapped(image_of(first), bytes_of(first, end))) visit(first, end);
  }
}

}  // namespace tombolo::stale
