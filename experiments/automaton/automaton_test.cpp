// SPDX-License-Identifier: Apache-2.0
// The automaton's cells are those of one process alone, if its windows are mapped so that the
// prototype's coherence operations have an effect, and with messages.
#include "experiments/automaton/automaton_windows.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "experiments/automaton/automaton.h"
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

// 000 Figure B.1: each process sends a line to each of its neighbours in each step, and before the
// first.
TEST(AutomatonMessages, GoToTheNeighboursAlone) {
  AutomatonField field = small;
  field.processes = 6;
  for (const auto messages : {AutomatonMessages::two_sided, AutomatonMessages::one_sided}) {
    const AutomatonOutcome outcome = by_messages(field, messages);
    ASSERT_EQ(outcome.received.size(), 6u);
    for (std::uint32_t to = 0; to < 6; ++to)
      for (std::uint32_t from = 0; from < 6; ++from) {
        const bool neighbours = from == field.above(to) || from == field.below(to);
        // A step is warm-up, four count.
        const std::uint64_t lines = neighbours ? 1 + 1 + 4 : 0;
        EXPECT_EQ(outcome.received[to][from], lines * field.bytes_in_line) << from << " to " << to;
      }
  }
}

TEST(AutomatonMessages, TwoNeighboursThatAreOneGetBothLines) {
  AutomatonField field = small;
  field.processes = 2;
  const AutomatonOutcome outcome = by_messages(field, AutomatonMessages::one_sided);
  EXPECT_EQ(outcome.received[0][1], 2u * 6 * field.bytes_in_line);
  EXPECT_EQ(outcome.received[0][0], 0u);
}

// The times of rank 0's exchange add up to the whole.
TEST(Automaton, TellsTheExchangeStepByStep) {
  AutomatonOutcome outcome;
  NoRows rows;
  ASSERT_TRUE(
      run_automaton(test_context(), small, {.warm_up = 1, .steps = 5}, rows, &outcome).ok());
  ASSERT_EQ(outcome.exchange_so_far.size(), 5u);
  for (std::size_t i = 1; i < 5; ++i)
    EXPECT_GT(outcome.exchange_so_far[i], outcome.exchange_so_far[i - 1]);
  EXPECT_EQ(outcome.exchange_so_far.back(), outcome.exchange[0]);
  EXPECT_TRUE(outcome.received.empty());
}

// The prototype's two epochs have each their calls of the library: two of post, start, complete and
// wait more in a step than with one.
TEST(Automaton, HasTwoEpochsAStepAsThePrototype) {
  AutomatonField narrow = small;
  narrow.bytes_in_line = 32;
  simulator::Duration exchange[2];
  for (const bool as_prototype : {false, true}) {
    AutomatonOutcome outcome;
    NoRows rows;
    const AutomatonPlan plan{.own = MemoryType::ncm,
                             .peers = MemoryType::ncm,
                             .as_prototype = as_prototype,
                             .warm_up = 1,
                             .steps = 10};
    ASSERT_TRUE(run_automaton(test_context(), narrow, plan, rows, &outcome).ok());
    exchange[as_prototype] = outcome.exchange[0];
  }
  const scc::Timing timing(test_context().chip);
  EXPECT_GE(exchange[1] - exchange[0], timing.library_call * (4 * 10));
}

// ---- The field ----------------------------------------------------------------------------------

// One step by the rule on a torus that has its neighbours by division: of nine cells 4, or more
// than 5, that live make a living one.
AutomatonLines one_step(const AutomatonLines& now, std::uint32_t cells) {
  AutomatonLines next = now;
  const auto lines = static_cast<std::uint32_t>(now.size());
  for (std::uint32_t line = 0; line < lines; ++line)
    for (std::uint32_t c = 0; c < cells; ++c) {
      int living = 0;
      for (const std::uint32_t y : {line + lines - 1, line, line + 1})
        for (const std::uint32_t x : {c + cells - 1, c, c + 1})
          living += now[y % lines][1 + x % cells];
      next[line][1 + c] = living == 4 || living > 5;
    }
  return next;
}

TEST(AutomatonField, TheSerialProgramFollowsTheRule) {
  const AutomatonField field{.lines = 9, .bytes_in_line = 16, .seed = 5};
  AutomatonLines expected = automaton_serial(field, 0);
  for (int steps = 1; steps <= 4; ++steps) {
    expected = one_step(expected, field.cells_in_line());
    const AutomatonLines found = automaton_serial(field, steps);
    for (std::uint32_t line = 0; line < field.lines; ++line)
      for (std::uint32_t c = 1; c <= field.cells_in_line(); ++c)
        EXPECT_EQ(found[line][c], expected[line][c]) << steps << ": " << line << ", " << c;
  }
}

TEST(AutomatonField, StartsAtRandomByItsSeed) {
  const AutomatonField field{.lines = 20, .bytes_in_line = 66, .seed = 5};
  const AutomatonLines first = automaton_serial(field, 0);
  int living = 0;
  for (const auto& line : first)
    for (std::uint32_t c = 1; c <= field.cells_in_line(); ++c) {
      EXPECT_LE(line[c], 1);
      living += line[c];
    }
  EXPECT_GT(living, 20 * 64 * 4 / 10);
  EXPECT_LT(living, 20 * 64 * 6 / 10);
  AutomatonField other = field;
  other.seed = 6;
  EXPECT_NE(automaton_serial(other, 0), first);
  EXPECT_EQ(automaton_serial(field, 0), first);
}

TEST(AutomatonField, LinesOfAllProcessesAreTheWholeField) {
  for (const std::uint32_t processes : {1u, 2u, 7u, 24u, 32u, 48u}) {
    AutomatonField field;
    field.processes = processes;
    std::uint32_t next = 0;
    for (std::uint32_t p = 0; p < processes; ++p) {
      EXPECT_EQ(field.first_line_of(p), next);
      // As even as can be, the longer parts first.
      EXPECT_EQ(field.lines_of(p), 2400 / processes + (p < 2400 % processes ? 1 : 0));
      next += field.lines_of(p);
      EXPECT_EQ(field.below(field.above(p)), p);
      EXPECT_EQ(field.below(p), (p + 1) % processes);
    }
    EXPECT_EQ(next, 2400u);
  }
}

// All processes have their lines at the same places: those of the largest part.
TEST(AutomatonField, ArraysOfAProcessDoNotOverlap) {
  AutomatonField field;
  field.processes = 7;  // of 343 lines, the last of 342
  EXPECT_EQ(field.place(0, 0), 0u);
  EXPECT_EQ(field.place(0, 1), 8192u);
  EXPECT_EQ(field.place(1, 0), 345u * 8192);
  EXPECT_EQ(field.place(0, field.lines_of(0) + 1) + field.bytes_in_line, field.place(1, 0));
  EXPECT_EQ(field.bytes_of_process(), 2u * 345 * 8192);
  EXPECT_EQ(field.cells_in_line(), 8190u);
}

// ---- Rows ---------------------------------------------------------------------------------------

std::vector<std::string> names(const Experiment& experiment, bool quick) {
  Context context = test_context();
  context.quick = quick;
  std::vector<std::string> all;
  for (const Point& point : experiment.points(context)) all.push_back(point.name);
  return all;
}

TEST(AutomatonPoints, HaveThePapersNumbersOfProcesses) {
  const std::vector<std::string> all = names(automaton(), false);
  const auto has = [&](const std::string& name) {
    return std::find(all.begin(), all.end(), name) != all.end();
  };
  for (const int processes : {1, 2, 4, 8, 12, 16, 24, 32, 40, 48})
    for (const char* kind : {"dcm", "rckmpi-two-sided", "rckmpi-one-sided"})
      EXPECT_TRUE(has(fmt::format("{}-{}", kind, processes))) << kind << " " << processes;
  EXPECT_EQ(all.size(), 1u + 3 * 10 + 3);
  EXPECT_EQ(names(automaton(), true).size(), 1u + 3);
  EXPECT_EQ(names(automaton_steps(), false).size(), 2u * 3);
}

// As the rows say, from a run of the same: 48 processes, lines of 64 bytes.
TEST(AutomatonRows, AreTheTimesOfTheirRun) {
  struct Case {
    const char* point;
    const char* series;
    bool messages;
  };
  for (const Case& c :
       {Case{"dcm-48", "scosco-dcm", false}, {"rckmpi-two-sided-48", "rckmpi-two-sided", true}}) {
    Rows rows;
    rows.measure(automaton_steps(), c.point, test_context());
    const AutomatonField field{.processes = 48, .bytes_in_line = 64};
    const AutomatonPlan plan{.warm_up = 1, .steps = 2};
    AutomatonOutcome outcome;
    NoRows none;
    ASSERT_TRUE((c.messages
                     ? run_automaton_by_messages(test_context(), field, plan,
                                                 AutomatonMessages::two_sided, none, &outcome)
                     : run_automaton(test_context(), field, plan, none, &outcome))
                    .ok());
    // From two steps of 62 cells to 100 of 8,190.
    const double scale = 50.0 * 8190 / 62 * 1e-9;
    const auto value = [&](const std::string& what) {
      return rows.value(fmt::format("{}/{}", what, c.series), "48");
    };
    EXPECT_NEAR(value("computation"), outcome.computation[0].in_nanoseconds() * scale, 1e-9);
    EXPECT_NEAR(value("exchange"), outcome.exchange[0].in_nanoseconds() * scale, 1e-9);
    // The first step's, in milliseconds of the whole width.
    EXPECT_NEAR(rows.value(fmt::format("step/{}", c.series), "1"),
                outcome.exchange_so_far[0].in_nanoseconds() * 1e-6 * 8190 / 62, 1e-9);
    EXPECT_EQ(rows.at(fmt::format("step/{}", c.series), "2").unit, "ms");
    EXPECT_GT(value("speedup"), 4);
    EXPECT_LT(value("speedup"), 60);
  }
}

TEST(Automaton, DividesLines) {
  EXPECT_EQ(small.lines_of(0), 5);
  EXPECT_EQ(small.lines_of(3), 4);
  EXPECT_EQ(small.first_line_of(3), 14);
}

}  // namespace
}  // namespace tombolo::experiments
