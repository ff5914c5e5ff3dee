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

RegionCache::RegionCache(const machine::DataRegion& region, Image image, machine::Home home,
                         Surroundings around)
    : memory_(region.memory),
      image_(image.at),
      bytes_(region.bytes),
      home_(home),
      around_(around),
      image_of_program_(image.of_program) {}

void RegionCache::ensure() {
  if (twin_) return;
  twin_ = address_space(lines() * line_bytes);
  valid_ = address_space((lines() + 63) / 64 * 8);
  written_ = address_space(lines() * sizeof(ByteMask));
  sparse_ = bytes_ >= sparse_from && (!image_of_program_ || is_anonymous(image_, bytes_));
}

// Ranges -----------------------------------------------------------------------------------------

template <class Visit>
void RegionCache::each_piece(machine::Offset offset, std::size_t bytes, Visit&& visit) {
  while (bytes > 0) {
    const std::size_t first = offset % line_bytes;
    const std::size_t count = std::min(bytes, line_bytes - first);
    visit(offset / line_bytes, first, count);
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
    const machine::Offset offset = first * line_bytes;
    const std::size_t bytes = std::min<std::uint64_t>(until * line_bytes, bytes_) - offset;
    touched_.assign((bytes + page_block - 1) / page_block, 0);
    mark_touched_private(image_ + offset, bytes, touched_);
    if (memory_counts) mark_touched_shared(memory_ + offset, bytes, touched_);
    for (std::size_t block = 0; block < touched_.size(); ++block) {
      const Line begin = first + block * lines_of_block;
      if (touched_[block] != 0) visit(begin, std::min(until, begin + lines_of_block));
    }
  }
}

bool RegionCache::pages_are_clean(Line first, Line end) const {
  const std::size_t bytes = std::min<std::uint64_t>(end * line_bytes, bytes_) - first * line_bytes;
  if (std::memcmp(image_of(first), twin_of(first), bytes) != 0) return false;
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
  around_.bus.load(home_, line, fresh.at);
  around_.combining.overlay(home_, line, fresh.at);  // RC5
  take(line, fresh, fresh, 0);
  valid_word(line) |= std::uint64_t{1} << line % 64;
}

void RegionCache::write_back(Line line, bool evicted) {
  const Bytes image = seen(line);
  const ByteMask changed = dirty(line, image);
  if (changed == 0) return;
  around_.combining.send(home_, line);  // bytes written through earlier must not come later
  const std::size_t bytes = bytes_of(line);
  Bytes old;
  const Writer victim = around_.bus.replace(home_, line, image.at, old.at);
  // A byte that we did not change was in memory as in the twin when we got it. If memory held
  // something else now, another core wrote it meanwhile, and has just lost it.
  const ByteMask lost = differing(old.at, image.at, bytes) & ~changed;
  if (lost != 0) report(Loss::lost_update, line, lost, victim, evicted);
  std::memcpy(twin_of(line), image.at, bytes);
  if (written_used_) written(line) = 0;
}

void RegionCache::drop(Line line, ByteMask range) {
  const Bytes image = seen(line);
  const ByteMask changed = dirty(line, image);
  if ((changed & range) != 0) report(Loss::dropped_write, line, changed & range);
  const ByteMask keep = changed & ~range;
  if (!open_ && keep == 0) {
    valid_word(line) &= ~(std::uint64_t{1} << line % 64);
    if (written_used_) written(line) = 0;
    return;
  }
  Bytes fresh;
  around_.bus.load(home_, line, fresh.at);
  around_.combining.overlay(home_, line, fresh.at);  // RC5
  if (changed == 0 && std::memcmp(fresh.at, image.at, bytes_of(line)) == 0) return;
  take(line, image, fresh, keep);
}

void RegionCache::report(Loss loss, Line line, ByteMask bytes, Writer victim, bool evicted) {
  const machine::Offset start = line * line_bytes;
  around_.findings.add(
      {.loss = loss,
       .home = home_,
       .begin = start + static_cast<machine::Offset>(std::countr_zero(bytes)),
       .end = start + line_bytes - static_cast<machine::Offset>(std::countl_zero(bytes)),
       .bytes = static_cast<std::uint64_t>(std::popcount(bytes)),
       .evicted = evicted,
       .culprit = around_.bus.writer(),
       .victim = victim});
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
      around_.bus.load(home_, line, fresh.at);
      if (!image_of_program_)
        take(line, image, fresh, 0);
      else if (differing(image.at, fresh.at, bytes) != 0)
        around_.bus.store(home_, line, image.at, byte_mask(0, bytes));
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
    around_.combining.put(home_, line, first, in, count);
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
  each_valid(offset / line_bytes, (offset + bytes - 1) / line_bytes + 1, false,
             [&](Line line) { write_back(line, false); });
}

void RegionCache::refresh(machine::Offset offset, std::size_t bytes) {
  if (bytes == 0) return;
  const Line begin = offset / line_bytes;
  const Line end = (offset + bytes - 1) / line_bytes + 1;
  each_valid(begin, end, true, [&](Line line) {
    const std::size_t from = line == begin ? offset % line_bytes : 0;
    const std::size_t to = line + 1 == end ? (offset + bytes - 1) % line_bytes + 1 : line_bytes;
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
  const auto report_all = [&](Line first, Line end) {
    each_valid(first, end, false, [&](Line line) {
      if (const ByteMask changed = dirty(line, seen(line)); changed != 0)
        report(Loss::unpublished, line, changed);
    });
  };
  // An image that is the program's own may be gone already: programs release the memory of a window
  // before the window, though they should not. That is no reason to crash.
  if (!image_of_program_ || is_mapped(image_, bytes_)) return report_all(0, lines());
  for (Line first = 0; first < lines(); first += lines_of_block) {
    const Line end = std::min(lines(), first + lines_of_block);
    if (is_mapped(image_of(first), (end - first - 1) * line_bytes + bytes_of(end - 1)))
      report_all(first, end);
  }
}

}  // namespace tombolo::stale
