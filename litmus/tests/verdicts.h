// SPDX-License-Identifier: Apache-2.0
// Purpose: the facts of a litmus test: its name, the outcome of interest, and the verdict of each
// machine.
// Thread safety: constants.
#pragma once

#include <cstdint>
#include <string_view>

#include "machine/contract.h"

namespace tombolo::litmus {

enum class Verdict : std::uint8_t {
  forbidden,    // never appears
  allowed,      // may appear; nothing is tested
  must_appear,  // does appear, or the test of the test fails
};

// The outcomes of a machine; one without a column may show all that the contract allows
// (registry.cpp).
struct Verdicts {
  Verdict contract;  // the explored machine: exhaustive, so that nothing is merely allowed
  Verdict coherent;
  Verdict flushed;  // on memory that this host keeps coherent
  Verdict stale;
  Verdict scc;
};

struct LitmusInfo {
  std::string_view name;
  std::string_view question;  // the outcome of interest
  machine::Home cores;
  Verdicts verdicts;
  std::string_view reason;
  // The outcome takes a load that overtakes a drain or publish (overtaken.h).
  bool overtakes = false;
};

inline constexpr Verdict forbidden = Verdict::forbidden;
inline constexpr Verdict allowed = Verdict::allowed;
inline constexpr Verdict must_appear = Verdict::must_appear;
inline constexpr Verdicts forbidden_everywhere{forbidden, forbidden, forbidden, forbidden,
                                               forbidden};
// Mistakes about caches: the hardware of a coherent host hides them.
inline constexpr Verdicts without_coherence{must_appear, forbidden, allowed, must_appear, allowed};
inline constexpr Verdicts on_every_machine{must_appear, allowed, allowed, must_appear, allowed};

// Not seen on any machine.
inline constexpr Verdicts by_contract_only{must_appear, allowed, allowed, allowed, allowed};

// The simulated chip shows it as well.
constexpr Verdicts on_scc_too(Verdicts verdicts) {
  verdicts.scc = must_appear;
  return verdicts;
}

}  // namespace tombolo::litmus
