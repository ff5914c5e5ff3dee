// SPDX-License-Identifier: Apache-2.0
// Purpose: how one core reaches the shared memory of all data regions: line by line, signing the
// ledger for each line that it writes.
//
// Invariants: BU1 a ledger entry is 8 bytes: rank + 1 in the upper 16 bits, call site in the lower
//                 48; 0: no core. Entries lie in the order of the spans and of their lines.
// Thread safety: for the shared side yes; set_site by one thread at a time.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "backends/stale/attachment.h"
#include "backends/stale/findings.h"
#include "backends/stale/shared_bytes.h"
#include "backends/stale/spans.h"
#include "base/check.h"

namespace tombolo::stale {

class MemoryBus {
 public:
  // Bytes of ledger for these regions.
  static std::size_t ledger_bytes(std::span<const machine::DataRegion> regions) {
    Line lines = 0;
    for (const machine::DataRegion& region : regions) lines += Spans::lines_at_most(region);
    return lines * bytes_of_entry;
  }

  MemoryBus(const Attachment& at, const Spans& spans)
      : ledger_(at.shared == nullptr ? nullptr : at.shared + Board::bytes()),
        self_(at.self),
        spans_(spans) {
    TOMBOLO_CHECK(at.cores < 0xffff, "stale: {} cores; the ledger has room for 65534", at.cores);
    // Each region has room for its own, so that a span's are at the same place in all processes.
    Line first = 0;
    Home home = 0;
    for (SpanId span = 0; span < spans.size(); ++span) {
      for (; home < spans[span].first; ++home) first += Spans::lines_at_most(at.data[home]);
      first_.push_back(first);
    }
  }

  void set_site(std::uint64_t site) { site_ = site & site_mask; }
  Writer writer() const { return {self_, site_}; }
  // The core that wrote the line of memory last, if that was another.
  Writer other_writer(SpanId span, Line line) const {
    const Writer last = read_ledger(span, line);
    return last.rank == self_ ? Writer{} : last;
  }

  void load(SpanId span, Line line, std::byte* out) const {
    shared::load(out, memory(span, line), bytes_of(span, line));
  }

  // Stores exactly the masked bytes of `data`, which holds a line, for the call at `site`.
  void store(SpanId span, Line line, const std::byte* data, ByteMask mask, std::uint64_t site) {
    sign(span, line, site);
    while (mask != 0) {
      const int first = __builtin_ctzll(mask);
      const ByteMask rest = ~(mask >> first);
      const int count = rest == 0 ? 64 - first : __builtin_ctzll(rest);
      shared::store(memory(span, line) + first, data + first, static_cast<std::size_t>(count));
      mask &= ~byte_mask(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
    }
  }

  // Stores a whole line. `old`: the bytes it replaced. Returns the writer of the line before us.
  Writer replace(SpanId span, Line line, const std::byte* data, std::byte* old) {
    const Writer before = sign(span, line, site_);
    shared::swap(memory(span, line), data, old, bytes_of(span, line));
    if (before.rank != Writer::nobody && before.rank != self_) return before;
    // A core that signed after us has not stored yet or was just overwritten. Else the line was
    // written by another, then by us, and the ledger no longer knows.
    const Writer after = read_ledger(span, line);
    return after.rank != self_ ? after : Writer{};
  }

 private:
  static constexpr std::uint64_t site_mask = (std::uint64_t{1} << 48) - 1;
  static constexpr std::size_t bytes_of_entry = 8;

  std::byte* memory(SpanId span, Line line) const {
    return spans_[span].memory + spans_[span].start_of(line);
  }
  std::size_t bytes_of(SpanId span, Line line) const { return spans_[span].bytes_of(line); }
  std::byte* entry(SpanId span, Line line) const {
    return ledger_ + (first_[span] + line) * bytes_of_entry;
  }
  static Writer decode(std::uint64_t entry) {
    if (entry == 0) return {};
    return {static_cast<machine::Home>((entry >> 48) - 1), entry & site_mask};
  }
  // Signing comes before storing, so that the owner of bytes found lost is known already.
  Writer sign(SpanId span, Line line, std::uint64_t site) {
    if (ledger_ == nullptr) return {};
    const std::uint64_t mine = (std::uint64_t{self_} + 1) << 48 | site;
    const auto word = shared::at<std::uint64_t>(entry(span, line));
    const std::uint64_t before = word.load(std::memory_order_relaxed);
    if (before != mine) word.store(mine, std::memory_order_relaxed);
    return decode(before);
  }
  Writer read_ledger(SpanId span, Line line) const {
    if (ledger_ == nullptr) return {};
    return decode(shared::at<std::uint64_t>(entry(span, line)).load(std::memory_order_relaxed));
  }

  std::byte* ledger_;
  machine::Home self_;
  std::uint64_t site_ = 0;
  const Spans& spans_;
  std::vector<Line> first_;  // by span: its first entry in the ledger
};

}  // namespace tombolo::stale
