// SPDX-License-Identifier: Apache-2.0
// Purpose: how far an exploration goes, and by which reductions. A result is stated with these, and
// with the bounds that it has met: beyond those there may be more to see.
// Thread safety: plain values.
#pragma once

#include <cstdint>
#include <string>

namespace tombolo::litmus {

inline constexpr std::uint32_t no_bound = ~std::uint32_t{0};

struct Bounds {
  std::uint32_t steps = 1000;   // transitions of one execution; a longer one is cut
  std::uint32_t evictions = 1;  // of written lines, in one execution
  std::uint32_t pauses = 3;     // of a core, before they last until no other core can step
  std::uint32_t retries = 0;    // of a core: attempts although nothing it had looked at changed
  std::uint32_t loads = 3;      // of one word in a row, with one value, before it has another
  // Times that the turn is taken from a core which could go on (Musuvathi and Qadeer, PLDI 2007).
  // With such a bound sleep sets are off: they would rely on orders that it rules out.
  std::uint32_t preemptions = no_bound;
  std::uint64_t executions = 0;  // at most so many; 0: any number
  bool merge = true;             // do not go on from a state that was reached before
  bool sleep = true;             // leave out one of two orders of independent transitions
};

// The bounds that have kept an exploration from a choice, or from going on.
struct BoundsMet {
  bool evictions = false;
  bool pauses = false;
  bool retries = false;
  bool loads = false;
  bool preemptions = false;
  bool steps = false;
  bool executions = false;

  bool any() const { return *this != BoundsMet{}; }
  friend bool operator==(const BoundsMet&, const BoundsMet&) = default;
};

// The name of each, as Bounds calls it: body(name).
template <class Body>
void each_name(const BoundsMet& met, Body&& body) {
  if (met.evictions) body("evictions");
  if (met.pauses) body("pauses");
  if (met.retries) body("retries");
  if (met.loads) body("loads");
  if (met.preemptions) body("preemptions");
  if (met.steps) body("steps");
  if (met.executions) body("executions");
}

// "evictions, retries"
inline std::string to_text(const BoundsMet& met) {
  std::string text;
  each_name(met, [&](const char* name) { text += (text.empty() ? "" : ", ") + std::string(name); });
  return text;
}

}  // namespace tombolo::litmus
