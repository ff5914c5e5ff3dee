// SPDX-License-Identifier: Apache-2.0
// Purpose: the write-combining buffer of a core: byte-exact pieces of lines on their way to memory.
//
// Invariants: CB1 at most one entry per line, so that writes to the same byte stay in order;
//                 between lines there is no order.
//             CB2 an entry that leaves writes exactly the bytes that were put in.
// Thread safety: none of its own; stale::Core uses it under its lock.
#pragma once

#include <array>

#include "backends/stale/memory_bus.h"
#include "base/random.h"

namespace tombolo::stale {

class CombiningBuffer {
 public:
  CombiningBuffer(MemoryBus& bus, Random random) : bus_(bus), random_(random) {}

  // `bytes` bytes at `first` of the line. If there is no room, a random line leaves.
  void put(SpanId span, Line line, std::size_t first, const void* data, std::size_t bytes);
  void send(SpanId span, Line line);  // the line, if it is here
  void send_one();                    // a random line, if there is one
  void send_all();
  // Lays the bytes that are on their way over `out`, which holds the line.
  void overlay(SpanId span, Line line, std::byte* out) const;
  // Calls visit(span, line, mask, site) for each entry.
  template <class Visit>
  void each(Visit&& visit) const {
    for (std::size_t i = 0; i < size_; ++i)
      visit(key_[i].span, key_[i].line, entry_[i].mask, entry_[i].site);
  }

 private:
  static constexpr std::size_t capacity = 32;
  struct Key {
    SpanId span;
    Line line;
    bool operator==(const Key&) const = default;
  };
  struct Entry {
    ByteMask mask;
    std::uint64_t site;  // of the last put to the line
    std::array<std::byte, line_bytes> data;
  };
  // `size_` if it is not here.
  std::size_t find(SpanId span, Line line) const;
  void send_entry(std::size_t i);

  MemoryBus& bus_;
  Random random_;
  std::size_t size_ = 0;
  std::array<Key, capacity> key_;
  std::array<Entry, capacity> entry_;
};

}  // namespace tombolo::stale
