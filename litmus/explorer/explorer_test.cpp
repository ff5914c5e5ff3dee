// SPDX-License-Identifier: Apache-2.0
// Purpose: tests the explorer: merging and sleep sets lose no outcome on random small programs, a
// deadlock is found, and a counterexample can be replayed.
// Thread safety: -
#include "litmus/explorer/explorer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <set>

#include "base/random.h"
#include "litmus/explorer/explored.h"
#include "litmus/explorer/testing/bodies.h"

namespace tombolo::litmus {
namespace {

// Cores that each do a few random operations on two words and on two lines of data, often with the
// same values. Each result is part of the outcome.
class RandomProgram final : public Program {
 public:
  RandomProgram(std::uint64_t seed, machine::Home cores, unsigned operations)
      : cores_(cores), operations_(operations), seed_(seed) {}

  MemoryShape shape() const override {
    return {.cores = cores_, .sync_bytes = 16, .data_bytes = 2 * line_bytes};
  }
  void begin() override { seen_.assign(cores_, {}); }
  void run(const machine::Attachment& at, Run&) override {
    Explored core(at);
    Random random = Random::stream(seed_, at.self);
    for (unsigned i = 0; i < operations_; ++i) one(core, random, 1 + random.below(2));
  }
  std::string outcome(const Memory& memory, Run&) override {
    std::string text;
    for (const std::string& core : seen_) text += core + "| ";
    for (const unsigned word : {0u, 1u}) text += fmt::format("{} ", memory.load(word));
    return text;
  }

 private:
  void one(Explored& core, Random& random, std::uint64_t value) {
    const auto word = core.word({0, random.below(2) * 8});
    const machine::DataPlace place{0, random.below(2) * line_bytes + random.below(2) * 8};
    const auto saw = [&](std::uint64_t v) { seen_[core.self()] += fmt::format("{} ", v); };
    std::uint64_t v = value;
    switch (random.below(14)) {
      case 0:
        return saw(core.load(word));
      case 1:
        return core.store(word, value);
      case 2:
        return saw(core.fetch_add(word, 1));
      case 3:
        return saw(core.compare_exchange(word, 0, value));
      case 4:
        return core.fence();
      case 5:
        (void)core.read(place, &v, 8).ok();
        return saw(v);
      case 6:
        (void)core.write(place, &v, 8).ok();
        return;
      case 7:
        // The second and third change nothing if the write of the first is still on its way.
        for (unsigned times = 0; times < 1 + value; ++times)
          (void)core.write_through(place, &v, 8).ok();
        return;
      case 8:
        core.publish(place, 8);
        return core.drain();
      case 9:
        return core.refresh(place, 8);
      case 10:
        return (void)core.pause(1).ok();
      case 11:
        return core.fence_heavy();
      case 12:
        if (core.load(word) == 0) (void)core.pause(1).ok();
        return saw(core.load(word));
      default:
        // Held back at the fourth.
        for (unsigned times = 0; times < 4; ++times) v = core.load(word);
        return saw(v);
    }
  }

  machine::Home cores_;
  unsigned operations_;
  std::uint64_t seed_;
  std::vector<std::string> seen_;
};

// Nothing if the bound on executions was met.
std::optional<std::set<std::string>> outcomes(Program& program, Bounds bounds, bool merge,
                                              bool sleep) {
  bounds.merge = merge;
  bounds.sleep = sleep;
  const Coverage coverage = explore(program, bounds);
  EXPECT_FALSE(coverage.counterexample.has_value()) << coverage.counterexample->what;
  if (!coverage.within_bounds()) return std::nullopt;
  std::set<std::string> found;
  for (const auto& [outcome, count] : coverage.outcomes) found.insert(outcome);
  return found;
}

TEST(Explorer, ReductionsLoseNoOutcome) {
  std::size_t most = 0;
  unsigned compared = 0;
  for (std::uint64_t seed = 1; seed <= 600; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    RandomProgram program(seed, 2, seed % 2 == 0 ? 3 : 4);
    const Bounds bounds{.evictions = seed % 3 == 0 ? 0u : 1u, .executions = 30'000};
    const auto all = outcomes(program, bounds, false, false);
    if (!all) continue;  // too many executions without any reduction
    ++compared;
    most = std::max(most, all->size());
    ASSERT_EQ(outcomes(program, bounds, true, false), all);
    ASSERT_EQ(outcomes(program, bounds, false, true), all);
    ASSERT_EQ(outcomes(program, bounds, true, true), all);
  }
  EXPECT_GT(most, 5u);
  EXPECT_GT(compared, 400u);
}

// Longer ones: merging alone is the reference, which the test above has compared.
TEST(Explorer, SleepSetsLoseNoOutcomeWithThreeCores) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    RandomProgram program(seed, 3, 4);
    const Bounds bounds{.evictions = 2};
    const auto merged = outcomes(program, bounds, true, false);
    ASSERT_TRUE(merged.has_value());
    ASSERT_EQ(outcomes(program, bounds, true, true), merged);
  }
}

// Cores that look at few words, store to them and pause, in every order: whether a pause lasts
// depends on the values seen, and when.
testing::Bodies program_of_pauses(std::uint64_t seed) {
  std::vector<testing::Bodies::Body> bodies;
  for (const std::uint64_t self : {0u, 1u})
    bodies.emplace_back([=](testing::Actor& core) {
      Random random = Random::stream(seed, self);
      for (unsigned i = 0; i < 5; ++i) {
        const auto word = static_cast<unsigned>(random.below(3));
        const std::uint64_t v = 1 + random.below(2);
        switch (random.below(5)) {
          case 0:
            core.load(word);
            break;
          case 1:
            core.store(word, v);
            break;
          case 2:
            core.swap(word, v);
            break;
          case 3:
            core.pause();
            break;
          default:
            core.saw(core.add(word, 1));
        }
      }
      core.saw(core.load(0));
    });
  return testing::Bodies(std::move(bodies));
}

TEST(Explorer, SleepSetsKnowWhatAPauseWaitsFor) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    testing::Bodies program = program_of_pauses(seed);
    const Bounds bounds{.evictions = 0};
    const auto merged = outcomes(program, bounds, true, false);
    ASSERT_TRUE(merged.has_value());
    ASSERT_EQ(outcomes(program, bounds, false, true), merged);
    ASSERT_EQ(outcomes(program, bounds, true, true), merged);
  }
}

TEST(Explorer, SleepSetsKnowWhatAStoreHasOverwritten) {
  testing::Bodies program({[](testing::Actor& core) {
                             core.load(1), core.load(2), core.store(1, 2);
                             core.pause();
                             core.add(0, 1);
                           },
                           [](testing::Actor& core) {
                             core.swap(1, 2);
                             core.saw(core.load(0));
                           }});
  for (const bool merge : {false, true})
    for (const bool sleep : {false, true})
      EXPECT_EQ(outcomes(program, {.evictions = 0}, merge, sleep)->size(), 2u)
          << merge << ", " << sleep;
}

TEST(Explorer, TakesALoopOverTwoWordsForNoDeadlock) {
  testing::Bodies program({[](testing::Actor& core) {
    for (unsigned i = 0; i < 20; ++i) {
      core.load(i % 2);
      core.pause();
    }
  }});
  const auto all = outcomes(program, {}, true, true);
  ASSERT_TRUE(all.has_value());
  EXPECT_EQ(all->size(), 1u);
}

// Cores that wait for a value that is never stored, and then draw a number each.
class Sleepers final : public Program {
 public:
  MemoryShape shape() const override { return {.cores = 3, .sync_bytes = 16, .data_bytes = 64}; }
  void begin() override { drawn_ = {}; }
  void run(const machine::Attachment& at, Run&) override {
    Explored core(at);
    if (core.load(core.word({0, 0})) == 0) (void)core.pause(1).ok();
    drawn_[core.self()] = core.fetch_add(core.word({0, 8}), 1);
  }
  std::string outcome(const Memory&, Run&) override {
    return fmt::format("{} {} {}", drawn_[0], drawn_[1], drawn_[2]);
  }

 private:
  std::array<std::uint64_t, 3> drawn_{};
};

TEST(Explorer, WakesAnySleeper) {
  Sleepers program;
  for (const bool reduced : {false, true}) {
    const auto found = outcomes(program, {}, reduced, reduced);
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->size(), 6u) << "all orders";
  }
}

// Two cores that take two test-and-set words in opposite order.
class Embrace final : public Program {
 public:
  MemoryShape shape() const override { return {.cores = 2, .sync_bytes = 16, .data_bytes = 64}; }
  void begin() override {}
  void run(const machine::Attachment& at, Run&) override {
    Explored core(at);
    const auto first = core.word({0, at.self * 8});
    const auto second = core.word({0, 8 - at.self * 8});
    for (const auto word : {first, second})
      while (core.exchange(word, 1) != 0) (void)core.pause(1).ok();
    core.store(first, 0);
    core.store(second, 0);
  }
  std::string outcome(const Memory&, Run&) override { return "done"; }
};

TEST(Explorer, FindsADeadlockAndReplaysIt) {
  Embrace program;
  const Bounds bounds;
  const Coverage coverage = explore(program, bounds);
  ASSERT_TRUE(coverage.counterexample.has_value());
  EXPECT_EQ(coverage.counterexample->what.substr(0, 8), "deadlock");
  const Counterexample shorter = shorten(program, bounds, *coverage.counterexample);
  EXPECT_LE(shorter.path.size(), coverage.counterexample->path.size());
  std::vector<Transition> path;
  ASSERT_TRUE(from_text(to_text(shorter.path), path));
  EXPECT_EQ(path, shorter.path);
  std::string last;
  EXPECT_TRUE(replay(program, bounds, path, [&](const std::string& line) { last = line; }));
  EXPECT_EQ(last.substr(0, 8), "deadlock");
}

TEST(Explorer, SaysWhenItWasCut) {
  RandomProgram program(3, 2, 4);
  EXPECT_FALSE(explore(program, {.steps = 3}).complete());
  EXPECT_FALSE(explore(program, {.executions = 2}).complete());
}

TEST(Transitions, AreReadAsTheyAreWritten) {
  std::vector<Transition> path;
  ASSERT_TRUE(from_text("0 1v2, s1 w0.12 e2.3", path));
  EXPECT_EQ(to_text(path), "0 1v2 s1 w0.12 e2.3");
  for (const char* wrong : {"x", "0v", "e1", "s1.2", "w1.", "1 1 -", "0v1x"})
    EXPECT_FALSE(from_text(wrong, path)) << wrong;
}

}  // namespace
}  // namespace tombolo::litmus
