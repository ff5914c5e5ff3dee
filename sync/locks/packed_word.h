// SPDX-License-Identifier: Apache-2.0
// Purpose: several numbers in one sync word, so that one atomic operation sees and changes them
// together. Cores are stored as home + 1; 0 means no core.
//
// Invariants: PW1 counts never exceed the number of cores, and `max_cores` fits a field, so that
//                 adding to one field never carries into the next.
// Thread safety: plain functions.
#pragma once

#include <cstdint>

#include "base/check.h"
#include "machine/place.h"

namespace tombolo::sync {

struct Field {
  unsigned shift;
  unsigned bits;

  constexpr std::uint64_t mask() const { return ((std::uint64_t{1} << bits) - 1) << shift; }
  constexpr std::uint64_t one() const { return std::uint64_t{1} << shift; }
  constexpr std::uint64_t get(std::uint64_t word) const { return (word & mask()) >> shift; }
  constexpr std::uint64_t set(std::uint64_t word, std::uint64_t value) const {
    return (word & ~mask()) | (value << shift);
  }
};

inline constexpr unsigned core_bits = 15;
inline constexpr machine::Home max_cores = (1u << core_bits) - 2;

inline void check_cores(machine::Home cores) {
  TOMBOLO_CHECK(cores <= max_cores, "locks: {} cores, but a lock word has room for {}", cores,
                max_cores);
}

}  // namespace tombolo::sync
