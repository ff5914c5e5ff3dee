// SPDX-License-Identifier: Apache-2.0
// Purpose: how far an exploration goes, and by which reductions. A result is stated with these.
// Thread safety: plain values.
#pragma once

#include <cstdint>

namespace tombolo::litmus {

inline constexpr std::uint32_t no_bound = ~std::uint32_t{0};

struct Bounds {
  std::uint32_t steps = 1000;   // transitions of one execution; a longer one is cut
  std::uint32_t evictions = 1;  // of written lines, in one execution
  std::uint32_t pauses = 3;     // of a core, before they last until no other core can step
  std::uint32_t retries = 0;    // of a core: attempts although nothing it had looked at changed
  // Times that the turn is taken from a core which could go on (Musuvathi and Qadeer, PLDI 2007).
  // With such a bound sleep sets are off: they would rely on orders that it rules out.
  std::uint32_t preemptions = no_bound;
  std::uint64_t executions = 0;  // at most so many; 0: any number
  bool merge = true;             // do not go on from a state that was reached before
  bool sleep = true;             // leave out one of two orders of independent transitions
};

}  // namespace tombolo::litmus
