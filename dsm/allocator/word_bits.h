// SPDX-License-Identifier: Apache-2.0
// Purpose: a map of bits in consecutive words of a program's memory, to be searched for runs and
// changed by the run.
// Thread safety: changes by one thread at a time (the holder of the heap's lock). A bit may be read
// by others while the bits beside it are changed.
#pragma once

#include <algorithm>
#include <bit>
#include <optional>

#include "dsm/threads/program_memory.h"

namespace tombolo::dsm {

class WordBits {
 public:
  WordBits() = default;
  WordBits(ProgramMemory& memory, WordIndex first) : memory_(&memory), first_(first) {}

  bool test(std::uint64_t bit) const { return (word(bit / 64) >> bit % 64 & 1) != 0; }
  void set(std::uint64_t from, std::uint64_t to) { change(from, to, true); }
  void clear(std::uint64_t from, std::uint64_t to) { change(from, to, false); }

  // The first bit of [from, to) that has this value; `to` if none has.
  std::uint64_t find(bool value, std::uint64_t from, std::uint64_t to) const {
    while (from < to) {
      const std::uint64_t found = equal_bits(from / 64, value) & all << from % 64;
      if (found != 0) return std::min(to, from / 64 * 64 + std::countr_zero(found));
      from = (from / 64 + 1) * 64;
    }
    return to;
  }

  // The first of `count` clear bits in a row of [from, to). `start` of the run is such that
  // (start + phase) % step is 0; step is a power of two.
  std::optional<std::uint64_t> clear_run(std::uint64_t from, std::uint64_t to, std::uint64_t count,
                                         std::uint64_t step = 1, std::uint64_t phase = 0) const {
    for (;;) {
      std::uint64_t start = find(false, from, to);
      start += -(start + phase) & (step - 1);
      if (start > to || to - start < count) return std::nullopt;
      from = find(true, start, start + count);
      if (from == start + count) return start;
    }
  }

  std::uint64_t longest_clear_run(std::uint64_t from, std::uint64_t to) const {
    std::uint64_t longest = 0;
    while (from < to) {
      const std::uint64_t start = find(false, from, to);
      from = find(true, start, to);
      longest = std::max(longest, from - start);
    }
    return longest;
  }

  // The last clear bit of [0, to).
  std::optional<std::uint64_t> last_clear(std::uint64_t to) const {
    while (to > 0) {
      const std::uint64_t at = (to - 1) / 64;
      const std::uint64_t found = equal_bits(at, false) & below(to - at * 64);
      if (found != 0) return at * 64 + std::bit_width(found) - 1;
      to = at * 64;
    }
    return std::nullopt;
  }

 private:
  static constexpr std::uint64_t all = ~std::uint64_t{0};
  static std::uint64_t below(std::uint64_t bits) { return bits >= 64 ? all : ~(all << bits); }

  std::uint64_t word(std::uint64_t index) const { return memory_->load(first_ + index); }
  std::uint64_t equal_bits(std::uint64_t index, bool value) const {
    return value ? word(index) : ~word(index);
  }

  void change(std::uint64_t from, std::uint64_t to, bool value) {
    while (from < to) {
      const std::uint64_t at = from / 64;
      const std::uint64_t mask = below(to - at * 64) & all << from % 64;
      memory_->store(first_ + at, value ? word(at) | mask : word(at) & ~mask);
      from = (at + 1) * 64;
    }
  }

  ProgramMemory* memory_ = nullptr;
  WordIndex first_ = 0;
};

}  // namespace tombolo::dsm
