// SPDX-License-Identifier: Apache-2.0
// Purpose: holds every machine to its column of verdicts: forbidden outcomes never appear, required
// ones do. On the explored machine both are proved by looking at all executions. Thread safety: -
#include <gtest/gtest.h>

#include "litmus/tests/registry.h"

namespace tombolo::litmus {
namespace {

class VerdictOf : public ::testing::TestWithParam<std::size_t> {
 protected:
  const LitmusTest& test() const { return litmus_tests()[GetParam()]; }
  static void expect(std::unique_ptr<Program> (*make)(bool), bool appears) {
    const auto program = make(/*refuse=*/true);
    const Coverage coverage = explore(*program, litmus_bounds);
    SCOPED_TRACE(to_text(coverage, litmus_bounds));
    EXPECT_EQ(coverage.counterexample.has_value(), appears);
    EXPECT_TRUE(appears || coverage.within_bounds());
  }
};

TEST_P(VerdictOf, OfTheContract) {
  const bool appears = test().info.verdicts.contract == must_appear;
  expect(test().program, appears);
  if (!appears) expect(test().overtaken, appears);
}

TEST_P(VerdictOf, OfEachMachine) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  constexpr std::uint64_t few = 40;
#else
  constexpr std::uint64_t few = 150;
#endif
  constexpr std::uint64_t many = 100'000;
  for (std::size_t i = 0; i < litmus_machines().size(); ++i) {
    const LitmusMachine& machine = litmus_machines()[i];
    const Verdict verdict = machine.verdict(test().info.verdicts);
    const bool must = verdict == must_appear;
    if (verdict == allowed) continue;
    const Observation observation =
        test().observe[i]({.seed = 1, .runs = must ? many : few, .until_seen = must});
    if (must)
      EXPECT_NE(observation.seen, 0u) << machine.name << ", seeds 1 to " << observation.runs;
    else
      EXPECT_EQ(observation.seen, 0u) << machine.name << ", seed " << observation.first_seed;
    if (must) RecordProperty(machine.name, static_cast<int>(observation.first_seed));
  }
}

std::string name_of(const ::testing::TestParamInfo<std::size_t>& info) {
  std::string name(litmus_tests()[info.param].info.name);
  for (char& c : name)
    if (c == '-') c = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Litmus, VerdictOf, ::testing::Range(std::size_t{0}, litmus_tests().size()),
                         name_of);

}  // namespace
}  // namespace tombolo::litmus
