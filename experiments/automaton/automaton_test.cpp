// SPDX-License-Identifier: Apache-2.0
// The automaton's cells are those of one process alone, if its windows are mapped so that the
// prototype's coherence operations have an effect, and with messages.
#include "experiments/automaton/automaton.h"

#include <gtest/gtest.h>

#include "experiments/automaton/automaton_messages.h"
#include "experiments/common/testing.h"

namespace tombolo::experiments {
namespace {

using scc::MemoryType;

std::uint64_t wrong_cells(const AutomatonField& field, const AutomatonPlan& plan) {
  AutomatonOutcome outcome;
  NoRows rows;
  const Status status = run_automaton(test_context(), field, plan, rows, &outcome);
  EXPECT_TRUE(status.ok()) << status.message();
  return outcome.wrong_cells;
}

// All of it stays in the caches. Lines are not shared out evenly.
constexpr AutomatonField small{.processes = 4, .lines = 18, .bytes_in_line = 256, .seed = 3};

TEST(Automaton, IsRightWithOneProcess) {
  AutomatonField field = small;
  field.processes = 1;
  EXPECT_EQ(wrong_cells(field, {.serial = true, .steps = 4}), 0);
  EXPECT_EQ(wrong_cells(field, {.own = MemoryType::mpbt_wt, .steps = 4}), 0);
}

TEST(Automaton, IsRightWithTwoWhoAreNeighboursTwice) {
  AutomatonField field = small;
  field.processes = 2;
  EXPECT_EQ(wrong_cells(field, {.own = MemoryType::mpbt_wt, .steps = 4}), 0);
}

TEST(Automaton, IsRightWithOwnWindowsWrittenThroughAndUncached) {
  EXPECT_EQ(wrong_cells(small, {.own = MemoryType::mpbt_wt, .steps = 4}), 0);
  EXPECT_EQ(wrong_cells(small, {.own = MemoryType::ncm, .steps = 4}), 0);
}

TEST(Automaton, IsWrongWithOwnWindowsInAllCaches) {
  EXPECT_GT(wrong_cells(small, {.own = MemoryType::dcm, .steps = 4}), 0);
}

TEST(Automaton, IsRightWithCachedWindowsAndTheirCoherence) {
  struct Case {
    const char* chip;
    MemoryType own;
  };
  for (const Case& c :
       {Case{"scc", MemoryType::mpbt_wb}, Case{"scc-repaired", MemoryType::mpbt_wt},
        Case{"scc-write-back", MemoryType::mpbt_wb}, Case{"scc-invalidation", MemoryType::mpbt_wb},
        Case{"scc-remote-invalidation", MemoryType::mpbt_wb}, Case{"scc-all", MemoryType::wt}}) {
    AutomatonOutcome outcome;
    NoRows rows;
    const AutomatonPlan plan{.own = c.own, .as_prototype = false, .steps = 4};
    const Status status = run_automaton(test_context(c.chip), small, plan, rows, &outcome);
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(outcome.wrong_cells, 0) << c.chip;
  }
}

// Uncached windows: there is nothing to keep coherent, so that only synchronization differs.
TEST(Automaton, FiguresHaveThePapersSynchronizationAndNotOurs) {
  simulator::Duration exchange[2];
  for (const bool as_prototype : {false, true}) {
    AutomatonOutcome outcome;
    NoRows rows;
    const AutomatonPlan plan{
        .own = MemoryType::ncm, .peers = MemoryType::ncm, .as_prototype = as_prototype};
    AutomatonField narrow = small;
    narrow.bytes_in_line = 32;
    ASSERT_TRUE(run_automaton(test_context(), narrow, plan, rows, &outcome).ok());
    exchange[as_prototype] = outcome.exchange[0];
  }
  EXPECT_GT(exchange[1].in_nanoseconds(), 1.03 * exchange[0].in_nanoseconds());
}

TEST(Automaton, SaysHowFarItIs) {
  Told told;
  Progress progress(told);
  AutomatonOutcome outcome;
  outcome.progress = &progress;
  ASSERT_TRUE(run_automaton(test_context(), small, {.steps = 4}, told, &outcome).ok());
  told.expect_all();
}

AutomatonOutcome by_messages(const AutomatonField& field, AutomatonMessages messages) {
  AutomatonOutcome outcome;
  NoRows rows;
  const Status status =
      run_automaton_by_messages(test_context(), field, {.steps = 4}, messages, rows, &outcome);
  EXPECT_TRUE(status.ok()) << status.message();
  return outcome;
}

TEST(AutomatonMessages, AreRight) {
  AutomatonField field = small;
  for (const std::uint32_t processes : {1u, 2u, 4u, 18u}) {
    field.processes = processes;
    for (const auto messages : {AutomatonMessages::two_sided, AutomatonMessages::one_sided})
      EXPECT_EQ(by_messages(field, messages).wrong_cells, 0) << processes << " processes";
  }
}

TEST(AutomatonMessages, TakeTheSameTimeAgain) {
  for (const auto messages : {AutomatonMessages::two_sided, AutomatonMessages::one_sided}) {
    const AutomatonOutcome first = by_messages(small, messages);
    const AutomatonOutcome second = by_messages(small, messages);
    EXPECT_EQ(first.longest, second.longest);
    EXPECT_EQ(first.exchange, second.exchange);
  }
}

TEST(Automaton, DividesLines) {
  EXPECT_EQ(small.lines_of(0), 5);
  EXPECT_EQ(small.lines_of(3), 4);
  EXPECT_EQ(small.first_line_of(3), 14);
}

}  // namespace
}  // namespace tombolo::experiments
