// SPDX-License-Identifier: Apache-2.0
// Purpose: shows that a replay ends in the failure that was found, and how it is told; that a
// shorter counterexample is one of the same failure; and how a result is stated.
// Thread safety: -
#include <gtest/gtest.h>

#include "litmus/explorer/testing/bodies.h"

namespace tombolo::litmus {
namespace {

using testing::Actor;
using testing::Bodies;
using Lines = std::vector<std::string>;

struct Told {
  bool possible;
  Lines lines;
};

Told told(Program& program, const std::string& text, const Bounds& bounds = {}) {
  std::vector<Transition> path;
  EXPECT_TRUE(from_text(text, path));
  Told result;
  result.possible =
      replay(program, bounds, path, [&](const std::string& line) { result.lines.push_back(line); });
  return result;
}

std::vector<Bodies::Body> store_buffering() {
  const auto body = [](unsigned own, unsigned other) {
    return [=](Actor& core) {
      core.store(own, 1);
      core.saw(core.load(other));
    };
  };
  return {body(0, 1), body(1, 0)};
}

TEST(Replay, ShowsEachOutcomeThatWasFound) {
  Bodies program(store_buffering());
  const auto outcomes = explore(program, {}).outcomes;
  ASSERT_EQ(outcomes.size(), 4u);
  for (const auto& [outcome, count] : outcomes) {
    SCOPED_TRACE(outcome);
    Bodies refusing(store_buffering());
    refusing.refuse(outcome);
    const Coverage coverage = explore(refusing, {});
    ASSERT_TRUE(coverage.counterexample.has_value());
    EXPECT_TRUE(coverage.stopped);
    EXPECT_FALSE(coverage.complete());
    EXPECT_EQ(coverage.counterexample->what, "refused: " + outcome);
    const std::string path = to_text(coverage.counterexample->path);
    EXPECT_EQ(told(refusing, path).lines.back(), "failure: refused: " + outcome);
    EXPECT_EQ(told(program, path).lines.back(), "outcome: " + outcome);
  }
}

TEST(Replay, TellsEachStep) {
  Bodies program({[](Actor& core) {
                    core.store(0, 7);
                    core.write(1, 1, 5);
                    core.through(0, 2, 6);
                    core.through(0, 2, 9);
                    core.drain();
                    core.publish(1);
                    core.fence();
                    core.add(3, 2);
                    core.notify(1);
                  },
                  [](Actor& core) {
                    core.await(3, 2);
                    core.change(3, 4, 5);
                    core.pause();
                    core.write(1, 0, 3);
                    core.read(1);
                    core.refresh(1);
                    core.read(1, 1);
                  }});
  const Lines expected{
      "start   core 0  stores 7 to word 0:0: in its buffer",
      "0v0     core 0  writes 5 to line 0:64 + 8: in its cache; "
      "writes 6 through to line 0:0 + 16: on its way",
      "0       core 0  writes 9 through to line 0:0 + 16: on its way",
      "w0.2    core 0  its write-through to line 0:0 + 16 reaches memory: 9",
      "0       core 0  drain: its write-throughs are in memory",
      "0       core 0  publishes line 0:64: all of it is in memory",
      "s0      core 0  its store of 7 to word 0:0 reaches memory",
      "0       core 0  fence: its store buffer is empty",
      "0       core 0  atomically changes word 1:8 from 0 to 2",
      "1       core 1  has waited for word 1:8: 2",
      "1       core 1  atomically finds 2 in word 1:8 and leaves it",
      "1       core 1  has paused",
      "1v1     core 1  writes 3 to line 0:64 + 0: in its cache, beside neighbours that are stale",
      "1       core 1  reads line 0:64 + 0: 3 (its own copy)",
      "e1.1    core 1  evicts the written line 0:64: all of it overwrites memory",
      "1       core 1  refreshes line 0:64",
      "1v0     core 1  reads line 0:64 + 8: 0",
      "outcome: | | 7 0",
  };
  const Told all = told(program, "0v0 0 w0.2 0 0 s0 0 0 1 1 1 1v1 1 e1.1 1 1v0", {.retries = 1});
  EXPECT_TRUE(all.possible);
  EXPECT_EQ(all.lines, expected);
}

TEST(Replay, TellsWhatWasOldAndWhatIsLost) {
  Bodies program({[](Actor& core) { core.through(0, 0, 6), core.drain(); },
                  [](Actor& core) {
                    core.saw(core.read(0));
                    core.write(0, 1, 3);
                    core.refresh(0);
                    core.load(0);
                  }});
  const Lines expected{
      "start   core 0  writes 6 through to line 0:0 + 0: on its way",
      "w0.0    core 0  its write-through to line 0:0 + 0 reaches memory: 6",
      "0       core 0  drain: its write-throughs are in memory",
      "1v1     core 1  reads line 0:0 + 0: 0 (as it was 1 changes ago)",
      "1v0     core 1  writes 3 to line 0:0 + 8: in its cache",
      "1       core 1  refreshes line 0:0: its unpublished bytes there are lost",
      "1       core 1  loads 0 from word 0:0",
      "outcome: | 0 | 0 0",
  };
  EXPECT_EQ(told(program, "w0.0 0 1v1 1v0 1 1").lines, expected);
}

TEST(Replay, EndsAtWhatIsNotPossible) {
  Bodies program(
      {[](Actor& core) { core.add(0, 1), core.await(1, 1); }, [](Actor& core) { core.load(2); }});
  const Told wrong = told(program, "0 0 1");
  EXPECT_FALSE(wrong.possible);
  EXPECT_EQ(wrong.lines, (Lines{"0       core 0  atomically changes word 0:0 from 0 to 1",
                                "0 is not possible here: core 0: wait for word 0:8, which holds 0; "
                                "core 1: load word 1:0"}));
  EXPECT_FALSE(told(program, "0v0").possible) << "no access to a line";
  EXPECT_FALSE(told(program, "s0").possible);
  EXPECT_FALSE(told(program, "e0.0").possible);
}

TEST(Replay, SaysHowFarThePathGoes) {
  Bodies program(
      {[](Actor& core) { core.add(0, 1), core.await(1, 1); }, [](Actor& core) { core.load(2); }});
  const Told some = told(program, "1");
  EXPECT_TRUE(some.possible);
  EXPECT_EQ(some.lines.back(), "not at an end: core 0: atomic on word 0:0; core 1: has ended");
  const Told all = told(program, "1 0");
  EXPECT_TRUE(all.possible);
  EXPECT_EQ(all.lines.back(),
            "deadlock: core 0: wait for word 0:8, which holds 0; core 1: has ended");
}

TEST(Replay, SaysAFailureOnTheWay) {
  Bodies program({[](Actor& core) { core.add(0, 1), core.fail("bad: one"), core.add(0, 1); }});
  const Told failed = told(program, "0");
  EXPECT_TRUE(failed.possible);
  EXPECT_EQ(failed.lines.back(), "failure: bad: one");
}

// ---- Counterexamples ----------------------------------------------------------------------------

// Core 1 fails once it sees the store of core 0; core 2 has nothing to do with it.
std::vector<Bodies::Body> seen_too_early() {
  return {[](Actor& core) { core.load(1), core.store(0, 1), core.load(1); },
          [](Actor& core) {
            if (core.load(0) == 1) core.fail("early: seen");
          },
          [](Actor& core) {
            for (int i = 0; i < 3; ++i) core.add(2, 1);
          }};
}

TEST(Exploration, StopsAtAFailureOnTheWay) {
  Bodies program(seen_too_early());
  const Coverage coverage = explore(program, {});
  ASSERT_TRUE(coverage.counterexample.has_value());
  EXPECT_EQ(coverage.counterexample->what, "early: seen");
  const std::string path = to_text(coverage.counterexample->path);
  EXPECT_EQ(told(program, path).lines.back(), "failure: early: seen");
  EXPECT_EQ(path.back(), '1') << "its last step is the one that fails";
}

TEST(Exploration, NamesADeadlock) {
  Bodies program({[](Actor& core) { core.load(0), core.await(1, 1); }});
  const Coverage coverage = explore(program, {});
  ASSERT_TRUE(coverage.counterexample.has_value());
  EXPECT_EQ(coverage.counterexample->what, "deadlock: core 0: wait for word 0:8, which holds 0");
  EXPECT_EQ(to_text(coverage.counterexample->path), "0");
}

TEST(Shorten, LeavesOutWhatNeedNotHappen) {
  Bodies program(seen_too_early());
  std::vector<Transition> path;
  ASSERT_TRUE(from_text("2 0 2 0 s0 2 1", path));
  const Counterexample shorter = shorten(program, {}, {.what = "early: seen", .path = path});
  EXPECT_EQ(to_text(shorter.path), "0 s0 1");
  EXPECT_EQ(shorter.what, "early: seen");
  // The steps after the failure need not happen either.
  ASSERT_TRUE(from_text("0 s0 1 2", path));
  EXPECT_EQ(to_text(shorten(program, {}, {.what = "early: seen", .path = path}).path), "0 s0 1");
}

TEST(Shorten, KeepsTheKindOfFailure) {
  // With core 1 first it is another failure, by a shorter path.
  Bodies program(
      {[](Actor& core) { core.add(0, 1); },
       [](Actor& core) { core.fail(core.add(0, 1) == 0 ? "other: short" : "one: long"); }});
  std::vector<Transition> path;
  ASSERT_TRUE(from_text("0 1", path));
  const Counterexample kept = shorten(program, {}, {.what = "one: long", .path = path});
  EXPECT_EQ(to_text(kept.path), "0 1");
  EXPECT_EQ(kept.what, "one: long");
  EXPECT_EQ(to_text(shorten(program, {}, {.what = "other: long", .path = path}).path), "1");
}

TEST(Shorten, KeepsADeadlock) {
  Bodies program({[](Actor& core) { core.add(0, 1), core.await(1, 1); },
                  [](Actor& core) { core.store(2, 1); }});
  std::vector<Transition> path;
  ASSERT_TRUE(from_text("0 s1", path));
  const Counterexample kept = shorten(program, {}, {.what = "deadlock: somewhere", .path = path});
  EXPECT_EQ(to_text(kept.path), "0 s1") << "no deadlock while a store can leave";
}

TEST(Shorten, KeepsAnOutcomeThatIsRefused) {
  Bodies program(store_buffering());
  program.refuse("1 | 0 | 1 1");
  std::vector<Transition> path;
  ASSERT_TRUE(from_text("1 s1 0 s0", path));
  const Counterexample kept = shorten(program, {}, {.what = "refused: 1 | 0 | 1 1", .path = path});
  EXPECT_EQ(kept.path, path) << "nothing can be left out before the end";
}

// ---- Results ------------------------------------------------------------------------------------

Coverage some_coverage() {
  Coverage coverage;
  coverage.executions = 11;
  coverage.states = 12;
  coverage.steps = 13;
  coverage.merged = 14;
  coverage.left_out = 15;
  coverage.longest = 16;
  coverage.seconds = 1.239;
  return coverage;
}

constexpr const char* numbers =
    "11 executions, 12 states, 13 steps (14 executions met a known state, 15 transitions left out "
    "as independent), longest 16, 1.24 s; bounds: ";

TEST(Result, StatesItsNumbersAndBounds) {
  EXPECT_EQ(to_text(some_coverage(), {.steps = 21, .evictions = 22, .pauses = 23, .retries = 24}),
            std::string(numbers) +
                "22 evictions, 23 short pauses and 24 retries per core, "
                "3 loads in a row, 21 steps, any preemptions; complete");
  EXPECT_EQ(to_text(some_coverage(), {.loads = 25, .preemptions = 0}),
            std::string(numbers) +
                "1 evictions, 3 short pauses and 0 retries per core, "
                "25 loads in a row, 1000 steps, 0 preemptions; complete");
}

TEST(Result, StatesWhyItIsNotComplete) {
  const auto last_part = [](const Coverage& coverage) {
    const std::string text = to_text(coverage, {});
    return text.substr(text.rfind("; ") + 2);
  };
  Coverage coverage = some_coverage();
  EXPECT_TRUE(coverage.complete());
  coverage.met = {.evictions = true, .retries = true};
  EXPECT_TRUE(coverage.within_bounds());
  EXPECT_FALSE(coverage.complete());
  EXPECT_EQ(last_part(coverage), "not complete: met the bounds on evictions, retries");
  coverage.met = {.steps = true};
  coverage.cut = 3;
  EXPECT_FALSE(coverage.within_bounds());
  EXPECT_FALSE(coverage.complete());
  EXPECT_EQ(last_part(coverage), "not complete: met the bounds on steps (3 executions cut)");
  coverage.cut = 0;
  coverage.met = {.executions = true};
  coverage.stopped = true;
  EXPECT_FALSE(coverage.within_bounds());
  EXPECT_FALSE(coverage.complete());
  EXPECT_EQ(last_part(coverage), "not complete: met the bounds on executions");
  coverage.cut = 3;
  coverage.counterexample = Counterexample{};
  EXPECT_EQ(last_part(coverage), "stopped at a counterexample");
}

}  // namespace
}  // namespace tombolo::litmus
