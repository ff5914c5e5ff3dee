// SPDX-License-Identifier: Apache-2.0
// Purpose: runs a program under every choice that the explored machine has, within bounds: depth
// first, by executing it again and again from the beginning. docs/decisions/0008 says why so.
//
// Invariants: EP1 `within_bounds` means that no execution was cut: every state that the bounds
//                 allow was reached, but for fingerprints that meet (hash.h). `complete` means that
//                 no bound was met either: there are no other states.
//             EP2 merging: the future depends on the state alone (RU2 of run.h), so each state is
//                 continued once.
//             EP3 sleep sets (Godefroid 1996): a transition that was explored first, and commutes
//                 with all taken since, is left out; the state behind it is reached the other way.
//                 Every state is still reached, so the checks of states (two cores inside a lock)
//                 miss nothing. A state that is reached again with a smaller sleep set is continued
//                 with the transitions that were left out only because of the larger one.
// Thread safety: none.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "litmus/explorer/bounds.h"
#include "litmus/explorer/program.h"
#include "litmus/explorer/transition.h"

namespace tombolo::litmus {

struct Counterexample {
  std::string what;
  std::vector<Transition> path;
};

struct Coverage {
  std::uint64_t executions = 0;  // from the beginning to an end or to a known state
  std::uint64_t states = 0;      // different ones; without merging, all that were passed
  std::uint64_t steps = 0;       // transitions taken, those of repetitions included
  std::uint64_t merged = 0;      // executions that ended in a known state
  std::uint64_t left_out = 0;    // transitions in sleep sets
  std::uint64_t cut = 0;         // executions that met the bound on steps
  std::uint32_t longest = 0;     // transitions of the longest execution
  double seconds = 0;
  bool stopped = false;  // by a counterexample, or the bound on executions
  BoundsMet met;
  std::map<std::string, std::uint64_t> outcomes;
  std::optional<Counterexample> counterexample;

  bool within_bounds() const { return cut == 0 && !stopped; }
  bool complete() const { return within_bounds() && !met.any(); }
};

std::string to_text(const Coverage& coverage, const Bounds& bounds);

// Ends at the first failure.
Coverage explore(Program& program, const Bounds& bounds);

// Executes the path and tells it step by step. False if it is not one of the program.
bool replay(Program& program, const Bounds& bounds, const std::vector<Transition>& path,
            const std::function<void(const std::string&)>& listener);

// The same failure by a path that is shorter where a simple search finds one: leaves out
// unnecessary transitions.
Counterexample shorten(Program& program, const Bounds& bounds, const Counterexample& found);

}  // namespace tombolo::litmus
