// SPDX-License-Identifier: Apache-2.0
// Purpose: counts the executions and states of small programs against closed formulas: every
// schedule is visited, none twice, each bound leaves out the executions that it says, and with all
// reductions one execution of each kind is left.
// Thread safety: -
#include <gtest/gtest.h>

#include <array>
#include <numeric>

#include "litmus/explorer/testing/bodies.h"

namespace tombolo::litmus {
namespace {

using testing::Actor;
using testing::Bodies;

// Every order, without reductions and evictions.
constexpr Bounds plain{.evictions = 0, .merge = false, .sleep = false};

std::uint64_t factorial(std::uint64_t n) { return n < 2 ? 1 : n * factorial(n - 1); }
// How many ways there are to put sequences of these lengths into one.
std::uint64_t interleavings(const std::vector<std::uint64_t>& lengths) {
  std::uint64_t ways = factorial(std::accumulate(lengths.begin(), lengths.end(), std::uint64_t{0}));
  for (const std::uint64_t length : lengths) ways /= factorial(length);
  return ways;
}

// A core that adds 1 to the word so often, and says what it saw.
Bodies::Body adds(unsigned word, unsigned times) {
  return [=](Actor& core) {
    for (unsigned i = 0; i < times; ++i) core.saw(core.add(word, 1));
  };
}

Coverage explored(std::vector<Bodies::Body> bodies, const Bounds& bounds) {
  Bodies program(std::move(bodies));
  Coverage coverage = explore(program, bounds);
  EXPECT_FALSE(coverage.counterexample.has_value());
  return coverage;
}

// All within the bounds: so many executions, each of which came to its end.
void expect_executions(const Coverage& coverage, std::uint64_t executions) {
  EXPECT_TRUE(coverage.within_bounds());
  EXPECT_EQ(coverage.executions, executions);
  std::uint64_t ends = 0;
  for (const auto& [outcome, count] : coverage.outcomes) ends += count;
  EXPECT_EQ(ends, executions);
}

// ---- All orders ---------------------------------------------------------------------------------

TEST(Schedules, OfTwoCoresAreAllInterleavings) {
  for (const unsigned first : {0u, 1u, 2u, 3u})
    for (const unsigned second : {1u, 4u}) {
      SCOPED_TRACE(fmt::format("{} and {} operations", first, second));
      const Coverage coverage = explored({adds(0, first), adds(0, second)}, plain);
      expect_executions(coverage, interleavings({first, second}));
      EXPECT_EQ(coverage.outcomes.size(), coverage.executions) << "each shows another order";
      EXPECT_EQ(coverage.longest, first + second);
      EXPECT_EQ(coverage.steps, coverage.executions * coverage.longest);
    }
}

TEST(Schedules, PassAllStatesOnTheirWay) {
  const Coverage coverage = explored({adds(0, 2), adds(0, 2)}, plain);
  EXPECT_EQ(coverage.states, 1u + 2 + 4 + 6) << "the prefixes of all orders but the orders";
  EXPECT_EQ(coverage.merged, 0u);
  EXPECT_EQ(coverage.left_out, 0u);
}

TEST(Schedules, OfThreeCoresAreAllInterleavings) {
  const Coverage coverage = explored({adds(0, 2), adds(0, 2), adds(0, 2)}, plain);
  expect_executions(coverage, interleavings({2, 2, 2}));
  EXPECT_EQ(coverage.outcomes.size(), coverage.executions);
}

// A store leaves its buffer at any time, and a load does not wait for it (R3).
TEST(Schedules, OfStoresAndLoadsHaveNoOrderInACore) {
  const auto store_and_load = [](unsigned own, unsigned other) {
    return [=](Actor& core) {
      core.store(own, 1);
      core.saw(core.load(other));
    };
  };
  const Coverage coverage = explored({store_and_load(0, 1), store_and_load(1, 0)}, plain);
  expect_executions(coverage, factorial(4));
  EXPECT_EQ(coverage.outcomes.size(), 4u) << "both may see nothing";
}

TEST(Schedules, WithAFenceHaveStoreBeforeLoad) {
  const auto store_and_load = [](unsigned own, unsigned other) {
    return [=](Actor& core) {
      core.store(own, 1);
      core.fence();
      core.saw(core.load(other));
    };
  };
  const Coverage coverage = explored({store_and_load(0, 1), store_and_load(1, 0)}, plain);
  expect_executions(coverage, interleavings({2, 2}));
  EXPECT_EQ(coverage.outcomes.size(), 3u) << "one sees the other";
  EXPECT_EQ(coverage.longest, 6u) << "a fence is a step";
}

// Where the other core has no fence.
TEST(Schedules, WithAFenceOfAllHaveStoreBeforeLoadInBoth) {
  const auto store_and_load = [](unsigned own, bool fences) {
    return [=](Actor& core) {
      core.store(own, 1);
      if (fences) core.fence_all();
      core.saw(core.load(1 - own));
    };
  };
  const Coverage coverage = explored({store_and_load(0, true), store_and_load(1, false)}, plain);
  EXPECT_TRUE(coverage.within_bounds());
  EXPECT_EQ(coverage.outcomes.size(), 3u) << "one sees the other";
  EXPECT_EQ(explored({store_and_load(0, true), store_and_load(1, false)}, {}).outcomes.size(), 3u);
  EXPECT_EQ(explored({store_and_load(0, false), store_and_load(1, false)}, {}).outcomes.size(), 4u);
}

TEST(Schedules, OfStoresKeepTheOrderOfTheirCore) {
  const auto stores = [](std::uint64_t v) {
    return [=](Actor& core) {
      for (const unsigned word : {0u, 1u, 0u}) core.store(word, v);
    };
  };
  const Coverage coverage = explored({stores(1), stores(2)}, plain);
  expect_executions(coverage, interleavings({3, 3}));
}

// Writes through settle in any order, and all of them before the drain is done.
TEST(Schedules, OfWritesThroughHaveNoOrderBeforeDrain) {
  const auto through = [](bool drains) {
    return [=](Actor& core) {
      for (const unsigned unit : {0u, 3u, 5u}) core.through(0, unit, 1);
      if (drains) core.drain();
      core.add(0, 1);
    };
  };
  expect_executions(explored({through(true)}, plain), factorial(3));
  // Any of them may settle before the atomic, in any order: 3! / (3 - n)! for n of them.
  expect_executions(explored({through(false)}, plain), 1 + 3 + 6 + 6);
}

TEST(Schedules, OfReadsAreAllVersions) {
  const auto writer = [](Actor& core) {
    for (const std::uint64_t v : {1u, 2u}) {
      core.through(0, 0, v);
      core.drain();
    }
  };
  const auto reader = [](bool refreshes) {
    return [=](Actor& core) {
      if (refreshes) core.refresh(0);
      core.saw(core.read(0));
      core.saw(core.read(0));
    };
  };
  const auto outcomes_of = [&](bool refreshes) {
    return explored({writer, reader(refreshes)}, plain).outcomes.size();
  };
  // No older one than before: 00 01 02 11 12 22.
  EXPECT_EQ(outcomes_of(false), 6u);
  EXPECT_EQ(outcomes_of(true), 6u);
}

// ---- Bounds -------------------------------------------------------------------------------------

TEST(Bound, OnEvictionsCountsThemInOneExecution) {
  const auto body = [](Actor& core) {
    core.write(0, 0, 1);
    core.write(1, 0, 1);
    core.add(0, 1);
  };
  // Line 0 at one of two times, line 1 at one, both: before the second write, or in two orders.
  const std::uint64_t executions[] = {1, 1 + 2 + 1, 1 + 2 + 1 + 1 + 2, 7};
  for (const std::uint32_t evictions : {0u, 1u, 2u, 3u}) {
    SCOPED_TRACE(evictions);
    Bounds bounds = plain;
    bounds.evictions = evictions;
    expect_executions(explored({body}, bounds), executions[evictions]);
  }
}

// How many orders of so many operations of two cores there are that take the turn at most so often
// from a core which has operations left. The turn is first with core 0.
std::uint64_t orders(std::array<unsigned, 2> left, unsigned preemptions, std::size_t turn = 0) {
  if (left[0] + left[1] == 0) return 1;
  std::uint64_t count = 0;
  for (const std::size_t core : {0u, 1u}) {
    const unsigned taken = core != turn && left[turn] != 0 ? 1 : 0;
    if (left[core] == 0 || taken > preemptions) continue;
    std::array<unsigned, 2> rest = left;
    --rest[core];
    count += orders(rest, preemptions - taken, core);
  }
  return count;
}

TEST(Bound, OnPreemptionsCountsTurnsThatAreTaken) {
  for (std::uint32_t preemptions = 0; preemptions < 6; ++preemptions) {
    SCOPED_TRACE(preemptions);
    Bounds bounds = plain;
    bounds.preemptions = preemptions;
    const Coverage coverage = explored({adds(0, 3), adds(0, 3)}, bounds);
    expect_executions(coverage, orders({3, 3}, preemptions));
    EXPECT_EQ(coverage.outcomes.size(), coverage.executions);
  }
  EXPECT_EQ(orders({3, 3}, 0), 1u);
  EXPECT_EQ(orders({3, 3}, 1), 4u) << "core 1 comes before any operation of core 0";
  EXPECT_EQ(orders({3, 3}, 5), interleavings({3, 3}));
}

// A core that waits only for stores or writes to leave could go on: to take its turn
// counts.
TEST(Bound, OnPreemptionsIsNotEvadedByAFence) {
  const auto fenced = [](Actor& core) {
    core.store(0, 1);
    core.fence();
    core.saw(core.load(1));
  };
  const auto drained = [](Actor& core) {
    core.through(0, 0, 1);
    core.drain();
    core.saw(core.load(1));
  };
  Bounds bounds = plain;
  bounds.preemptions = 0;
  expect_executions(explored({fenced, adds(1, 1)}, bounds), 1);
  expect_executions(explored({drained, adds(1, 1)}, bounds), 1);
  expect_executions(explored({fenced, adds(1, 1)}, plain), 3);
  const auto fences_all = [](Actor& core) {
    core.store(0, 1);
    core.fence_all();
    core.saw(core.load(1));
  };
  expect_executions(explored({fences_all, adds(1, 1)}, bounds), 1);
}

// A core that waits for another could not: to go on instead of it does not count.
TEST(Bound, OnPreemptionsLetsOthersGoOnWhileOneWaits) {
  const auto waits = [](Actor& core) {
    core.await(1, 1);
    core.saw(core.add(0, 1));
  };
  Bounds bounds = plain;
  bounds.preemptions = 0;
  // Core 1 keeps its turn when core 0 need not wait any more.
  const Coverage coverage = explored(
      {waits, [](Actor& core) { core.add(1, 1), core.notify(0), core.saw(core.add(0, 1)); }},
      bounds);
  expect_executions(coverage, 1);
  EXPECT_EQ(coverage.outcomes.begin()->first, "1 | 0 | 2 1");
}

// An attempt: load, and pause although nothing has changed.
TEST(Bound, OnRetriesCountsPausesAfterWhichNothingHasChanged) {
  const auto attempts = [](Actor& core) {
    for (int i = 0; i < 2; ++i) {
      core.load(0);
      core.pause();
    }
  };
  // The other's operation comes before any of the steps that core 0 may do first, or after them.
  const std::uint64_t free_steps[] = {1, 3, 4};
  for (const std::uint32_t retries : {0u, 1u, 2u}) {
    SCOPED_TRACE(retries);
    Bounds bounds = plain;
    bounds.retries = retries;
    expect_executions(explored({attempts, adds(1, 1)}, bounds), 1 + free_steps[retries]);
  }
}

TEST(Bound, OnPausesMakesFurtherOnesLast) {
  const auto pauses = [](Actor& core) {
    for (int i = 0; i < 2; ++i) core.pause();
  };
  for (const std::uint32_t short_ones : {0u, 1u, 2u, 3u}) {
    SCOPED_TRACE(short_ones);
    Bounds bounds = plain;
    bounds.pauses = short_ones;
    expect_executions(explored({pauses, adds(0, 1)}, bounds), 1 + std::min(short_ones, 2u));
  }
}

TEST(Bound, OnStepsCutsLongerExecutions) {
  for (const std::uint32_t steps : {3u, 4u, 5u}) {
    SCOPED_TRACE(steps);
    Bounds bounds = plain;
    bounds.steps = steps;
    const Coverage coverage = explored({adds(0, 2), adds(0, 2)}, bounds);
    EXPECT_EQ(coverage.executions, 6u);
    EXPECT_EQ(coverage.cut, steps < 4 ? 6u : 0u);
    EXPECT_EQ(coverage.complete(), steps >= 4);
    EXPECT_EQ(coverage.outcomes.empty(), steps < 4);
    EXPECT_EQ(coverage.longest, std::min(steps, 4u));
    EXPECT_FALSE(coverage.stopped);
  }
}

TEST(Bound, OnExecutionsStopsThere) {
  for (const std::uint64_t executions : {1u, 5u, 6u, 7u}) {
    SCOPED_TRACE(executions);
    Bounds bounds = plain;
    bounds.executions = executions;
    const Coverage coverage = explored({adds(0, 2), adds(0, 2)}, bounds);
    EXPECT_EQ(coverage.executions, std::min<std::uint64_t>(executions, 6));
    EXPECT_EQ(coverage.stopped, executions < 6);
    EXPECT_EQ(coverage.complete(), executions >= 6);
  }
}

// ---- Bounds that are met ------------------------------------------------------------------------

// The bounds that the search names, with all reductions and without any.
std::string bounds_met(const std::vector<Bodies::Body>& bodies, Bounds bounds = {}) {
  const Coverage reduced = explored(bodies, bounds);
  bounds.merge = bounds.sleep = false;
  const Coverage full = explored(bodies, bounds);
  EXPECT_EQ(to_text(reduced.met), to_text(full.met));
  EXPECT_EQ(full.complete(), full.within_bounds() && full.met == BoundsMet{});
  return to_text(full.met);
}

TEST(BoundsMet, AreNoneOfAProgramThatNeverWaits) {
  EXPECT_EQ(bounds_met({adds(0, 2), adds(0, 2)}), "");
  EXPECT_EQ(bounds_met({[](Actor& core) { core.through(0, 0, 1), core.drain(); }, adds(0, 1)}), "");
  const Bodies::Body wakes = [](Actor& core) { core.add(0, 1), core.notify(0); };
  EXPECT_EQ(bounds_met({[](Actor& core) { core.await(0, 1); }, wakes}), "");
}

TEST(BoundsMet, AreThoseThatKeepAChoiceBack) {
  const Bodies::Body writes = [](Actor& core) { core.write(0, 0, 1), core.publish(0); };
  const Bodies::Body loads = [](Actor& core) {
    for (unsigned i = 0; i < 4; ++i) core.load(0);
  };
  const Bodies::Body pauses = [](Actor& core) {
    for (unsigned i = 0; i < 2; ++i) core.load(0), core.pause();
  };
  EXPECT_EQ(bounds_met({writes}, {.evictions = 0}), "evictions");
  EXPECT_EQ(bounds_met({writes}, {.evictions = 1}), "");
  EXPECT_EQ(bounds_met({loads, adds(1, 1)}), "loads");
  EXPECT_EQ(bounds_met({loads, adds(1, 1)}, {.loads = 4}), "");
  EXPECT_EQ(bounds_met({pauses, adds(1, 1)}), "retries");
  EXPECT_EQ(bounds_met({pauses, adds(1, 1)}, {.retries = 2}), "");
  EXPECT_EQ(bounds_met({pauses, adds(0, 3)}, {.pauses = 1, .retries = 2}), "pauses");
  EXPECT_EQ(bounds_met({pauses, adds(1, 1)}, {.pauses = 0}), "pauses, retries");
  EXPECT_EQ(bounds_met({adds(0, 2), adds(0, 2)}, {.preemptions = 1}), "preemptions");
  EXPECT_EQ(bounds_met({adds(0, 1), adds(0, 1)}, {.preemptions = 2}), "");
}

TEST(BoundsMet, AreNamedIfTheyEndTheSearch) {
  EXPECT_EQ(bounds_met({adds(0, 2), adds(0, 2)}, {.steps = 3}), "steps");
  EXPECT_EQ(bounds_met({adds(0, 2), adds(0, 2)}, {.executions = 2}), "executions");
}

// A core alone is held back by nothing: no change can come.
TEST(BoundsMet, AreNotThoseOfACoreThatIsAlone) {
  EXPECT_EQ(bounds_met({[](Actor& core) { core.load(0), core.pause(); }}), "");
}

// Patience that ends: to be seen only with more attempts than are usual.
TEST(BoundsMet, HideAReaderThatGivesUp) {
  const auto gives_up_after = [](unsigned times) {
    return Bodies({[=](Actor& core) {
                     for (unsigned i = 0; i < times; ++i) {
                       if (core.load(1) == 1) return;
                       core.pause();
                     }
                     if (core.load(1) == 0) core.fail("read before it was there");
                   },
                   [](Actor& core) { core.add(0, 1), core.store(1, 1); }});
  };
  Bodies program = gives_up_after(5);
  const Coverage few = explore(program, {});
  EXPECT_FALSE(few.counterexample.has_value());
  EXPECT_TRUE(few.within_bounds());
  EXPECT_FALSE(few.complete());
  EXPECT_EQ(to_text(few.met), "retries");
  const Coverage enough = explore(program, {.pauses = 6, .retries = 5});
  ASSERT_TRUE(enough.counterexample.has_value());
  EXPECT_EQ(enough.counterexample->what, "read before it was there");
}

// ---- Reductions ---------------------------------------------------------------------------------

TEST(Merging, VisitsAStateOnce) {
  Bounds bounds = plain;
  bounds.merge = true;
  // A grid, whose last state is the end.
  const Coverage grid = explored({[](Actor& core) { core.add(0, 1), core.add(0, 1); },
                                  [](Actor& core) { core.add(1, 1), core.add(1, 1); }},
                                 bounds);
  EXPECT_EQ(grid.states, 3 * 3 - 1u);
  EXPECT_EQ(grid.left_out, 0u);
  EXPECT_EQ(grid.outcomes.size(), 1u);
  // Each state has two ways to go on but those at two edges: each more makes one more execution.
  EXPECT_EQ(grid.executions, 1u + 2 * 2);
  std::uint64_t ends = 0;
  for (const auto& [outcome, count] : grid.outcomes) ends += count;
  EXPECT_EQ(grid.merged, grid.executions - ends);
}

TEST(Merging, KeepsApartWhatCoresHaveSeen) {
  Bounds bounds = plain;
  bounds.merge = true;
  const Coverage coverage = explored({adds(0, 2), adds(0, 2)}, bounds);
  expect_executions(coverage, 6);
  EXPECT_EQ(coverage.merged, 0u);
  // One state for each prefix of an order that is not all of it.
  EXPECT_EQ(coverage.states, 1u + 2 + 4 + 6);
}

TEST(SleepSets, KeepOneExecutionOfThoseThatDifferInNothing) {
  Bounds bounds = plain;
  bounds.sleep = true;
  const auto ends = [&](const std::vector<Bodies::Body>& bodies) {
    const Coverage coverage = explored(bodies, bounds);
    EXPECT_TRUE(coverage.within_bounds());
    std::uint64_t count = 0;
    for (const auto& [outcome, times] : coverage.outcomes) count += times;
    return count;
  };
  EXPECT_EQ(ends({adds(0, 3), adds(1, 3)}), 1u) << "nothing in common";
  EXPECT_EQ(ends({adds(0, 3), adds(0, 3)}), interleavings({3, 3})) << "all in common";
  EXPECT_EQ(ends({adds(0, 2), adds(1, 2), adds(2, 2)}), 1u);
  EXPECT_EQ(ends({adds(0, 2), adds(0, 1), adds(2, 2)}), 3u) << "the third core is alone";
  const auto both = [](Actor& core) { core.add(0, 1), core.add(1, 1); };
  EXPECT_EQ(ends({both, adds(1, 2)}), 3u) << "one common word of two";
}

TEST(SleepSets, AreOffWithABoundOnPreemptions) {
  const Coverage bounded =
      explored({adds(0, 2), adds(1, 2)}, {.preemptions = 4, .merge = false, .sleep = true});
  expect_executions(bounded, interleavings({2, 2}));
  EXPECT_EQ(bounded.left_out, 0u);
}

}  // namespace
}  // namespace tombolo::litmus
