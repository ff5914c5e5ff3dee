// SPDX-License-Identifier: Apache-2.0
// Purpose: all litmus tests times all machines, as values: for the command and for the tests. A
// machine of backends/machines.h is among them by itself; a column in `Verdicts` (registry.cpp)
// narrows the outcomes that the contract allows.
// Thread safety: the lists are constant; run one test at a time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "litmus/tests/observe.h"

namespace tombolo::litmus {

struct LitmusTest {
  LitmusInfo info;
  // One for each of litmus_machines().
  std::vector<Observation (*)(const Effort&)> observe;
  // With `refuse` the outcome of interest counts as a failure.
  std::unique_ptr<Program> (*program)(bool refuse);
  // The same where loads overtake drains and publishes (overtaken.h).
  std::unique_ptr<Program> (*overtaken)(bool refuse);
};

struct LitmusMachine {
  std::string name;
  Verdict (*verdict)(const Verdicts&);
};

const std::vector<LitmusTest>& litmus_tests();
const std::vector<LitmusMachine>& litmus_machines();
const char* to_text(Verdict verdict);

// The cost of exploring a litmus test.
inline constexpr Bounds litmus_bounds{.evictions = 1};

}  // namespace tombolo::litmus
