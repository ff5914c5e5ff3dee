// SPDX-License-Identifier: Apache-2.0
// Purpose: the store buffer of a core: stores to sync words that later loads overtake (rule R3),
// and the rings of doorbells that must not come before them.
//
// Invariants: SQ1 stores and rings leave in the order in which they came.
//             SQ2 a store is either done at once, if the buffer is empty, or joins it.
// Thread safety: none of its own; stale::Core uses it under its lock.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "host/waiting/doorbell.h"

namespace tombolo::stale {

class StoreBuffer {
 public:
  using Word = std::atomic<std::uint64_t>*;

  bool empty() const { return size_ == 0; }

  void put(Word word, std::uint64_t value) { put({.word = word, .value = value}); }
  void put(host::Doorbell& bell) { put({.bell = &bell}); }
  // The newest value on its way to `word`.
  bool find(Word word, std::uint64_t& value) const {
    for (std::size_t i = size_; i-- > 0;) {
      const Entry& entry = entry_[(first_ + i) % capacity];
      if (entry.word != word) continue;
      value = entry.value;
      return true;
    }
    return false;
  }
  void release_one() {
    const Entry& entry = entry_[first_];
    if (entry.word != nullptr)
      entry.word->store(entry.value, std::memory_order_release);
    else
      entry.bell->ring();
    first_ = (first_ + 1) % capacity;
    --size_;
    operations_ = 0;
  }
  void release_all() {
    while (size_ > 0) release_one();
  }
  // Counts an operation that the oldest store has waited for; true if that was the last one
  // allowed.
  bool waited_long_enough() { return ++operations_ >= operations_max; }

 private:
  static constexpr std::size_t capacity = 8;
  static constexpr std::uint32_t operations_max = 16;
  struct Entry {
    Word word = nullptr;  // null: an entry that rings
    std::uint64_t value = 0;
    host::Doorbell* bell = nullptr;
  };
  void put(const Entry& entry) {
    if (size_ == capacity) release_one();
    entry_[(first_ + size_++) % capacity] = entry;
  }
  std::array<Entry, capacity> entry_{};
  std::size_t first_ = 0;
  std::size_t size_ = 0;
  std::uint32_t operations_ = 0;
};

}  // namespace tombolo::stale
