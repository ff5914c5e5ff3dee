// SPDX-License-Identifier: Apache-2.0
// Purpose: how one core reaches the shared memory of all data regions: line by line, signing the
// ledger for each line that it writes.
//
// Invariants: BU1 a ledger entry is 8 bytes: rank + 1 in the upper 16 bits, call site in the lower
//                 48; 0: no core. Entries lie in the order of the regions and of their lines.
// Thread safety: for the shared side yes; set_site by one thread at a time.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "backends/stale/attachment.h"
#include "backends/stale/findings.h"
#include "backends/stale/shared_bytes.h"
#include "base/check.h"

namespace tombolo::stale {

using Line = std::uint64_t;  // number of a line in its region

class MemoryBus {
 public:
  // Bytes of ledger for these regions.
  static std::size_t ledger_bytes(std::span<const machine::DataRegion> regions) {
    Line lines = 0;
    for (const machine::DataRegion& region : regions) lines += lines_of(region);
    return lines * bytes_of_entry;
  }

  explicit MemoryBus(const Attachment& at) : ledger_(at.shared), self_(at.self) {
    TOMBOLO_CHECK(at.cores < 0xffff, "stale: {} cores; the ledger has room for 65534", at.cores);
    Line first = 0;
    for (const machine::DataRegion& region : at.data) {
      regions_.push_back({region.memory, region.bytes, first});
      first += lines_of(region);
    }
  }

  void set_site(std::uint64_t site) { site_ = site & site_mask; }
  Writer writer() const { return {self_, site_}; }

  // The bytes of a line: fewer than line_bytes in the last line of a region.
  std::size_t bytes_of(machine::Home home, Line line) const {
    return std::min<std::uint64_t>(line_bytes, regions_[home].bytes - line * line_bytes);
  }
  void load(machine::Home home, Line line, std::byte* out) const {
    shared::load(out, memory(home, line), bytes_of(home, line));
  }

  // Stores exactly the masked bytes of `data`, which holds a line.
  void store(machine::Home home, Line line, const std::byte* data, ByteMask mask) {
    sign(home, line);
    while (mask != 0) {
      const int first = __builtin_ctzll(mask);
      const ByteMask rest = ~(mask >> first);
      const int count = rest == 0 ? 64 - first : __builtin_ctzll(rest);
      shared::store(memory(home, line) + first, data + first, static_cast<std::size_t>(count));
      mask &= ~byte_mask(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
    }
  }

  // Stores a whole line. `old`: the bytes it replaced. Returns the writer of the line before us.
  Writer replace(machine::Home home, Line line, const std::byte* data, std::byte* old) {
    const Writer before = sign(home, line);
    shared::swap(memory(home, line), data, old, bytes_of(home, line));
    if (before.rank != Writer::nobody && before.rank != self_) return before;
    // A core that signed after us has not stored yet or was just overwritten. Else the line was
    // written by another, then by us, and the ledger no longer knows.
    const Writer after = read_ledger(home, line);
    return after.rank != self_ ? after : Writer{};
  }

 private:
  static constexpr std::uint64_t site_mask = (std::uint64_t{1} << 48) - 1;
  static constexpr std::size_t bytes_of_entry = 8;
  struct Region {
    std::byte* memory;
    std::uint64_t bytes;
    Line first;  // its first entry in the ledger
  };

  static Line lines_of(const machine::DataRegion& region) {
    return (region.bytes + line_bytes - 1) / line_bytes;
  }
  std::byte* memory(machine::Home home, Line line) const {
    return regions_[home].memory + line * line_bytes;
  }
  std::byte* entry(machine::Home home, Line line) const {
    return ledger_ + (regions_[home].first + line) * bytes_of_entry;
  }
  static Writer decode(std::uint64_t entry) {
    if (entry == 0) return {};
    return {static_cast<machine::Home>((entry >> 48) - 1), entry & site_mask};
  }
  // Signing comes before storing, so that the owner of bytes found lost is known already.
  Writer sign(machine::Home home, Line line) {
    if (ledger_ == nullptr) return {};
    const std::uint64_t mine = (std::uint64_t{self_} + 1) << 48 | site_;
    const auto word = shared::at<std::uint64_t>(entry(home, line));
    const std::uint64_t before = word.load(std::memory_order_relaxed);
    if (before != mine) word.store(mine, std::memory_order_relaxed);
    return decode(before);
  }
  Writer read_ledger(machine::Home home, Line line) const {
    if (ledger_ == nullptr) return {};
    return decode(shared::at<std::uint64_t>(entry(home, line)).load(std::memory_order_relaxed));
  }

  std::byte* ledger_;
  machine::Home self_;
  std::uint64_t site_ = 0;
  std::vector<Region> regions_;
};

}  // namespace tombolo::stale
