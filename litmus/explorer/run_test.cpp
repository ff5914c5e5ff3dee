// SPDX-License-Identifier: Apache-2.0
// Purpose: steers single executions, and shows after each step the possible choices: which step
// waits for which other, which values a core sees, when one is held back, and when it is let go on.
// Thread safety: -
#include "litmus/explorer/run.h"

#include <gtest/gtest.h>

#include <array>

#include "litmus/explorer/testing/bodies.h"

namespace tombolo::litmus {
namespace {

using testing::Actor;
using testing::Bodies;
using testing::choices_of;
using testing::steer;

void nothing(Actor&) {}

// A program with its run, at the beginning.
struct Steered {
  explicit Steered(std::vector<Bodies::Body> bodies, const Bounds& bounds = {.evictions = 0})
      : program(std::move(bodies)), run(program, bounds) {
    run.restart();
  }
  std::string now() { return choices_of(run); }
  std::string after(const std::string& path) { return steer(run, path); }
  std::string outcome() { return run.ended() ? run.outcome() : "not at an end"; }

  Bodies program;
  Run run;
};

// ---- Sync words ---------------------------------------------------------------------------------

TEST(Steered, StoreIsSeenByItsCoreBeforeItLeaves) {
  Steered two({[](Actor& core) { core.store(0, 7), core.saw(core.load(0)); },
               [](Actor& core) { core.saw(core.load(0)); }});
  EXPECT_EQ(two.now(), "0 s0 1");
  EXPECT_EQ(two.after("0 1"), "s0") << "no end before the buffer is empty";
  EXPECT_EQ(two.outcome(), "not at an end");
  EXPECT_EQ(two.after("s0"), "");
  EXPECT_EQ(two.outcome(), "7 | 0 | 7 0");
}

TEST(Steered, AtomicWaitsForEarlierStores) {
  Steered two({[](Actor& core) { core.store(0, 1), core.saw(core.add(1, 1)); },
               [](Actor& core) { core.add(1, 5); }});
  EXPECT_EQ(two.now(), "s0 1");
  EXPECT_EQ(two.after("s0"), "0 1");
  EXPECT_EQ(two.after("1 0"), "");
  EXPECT_EQ(two.outcome(), "5 | | 1 6");
}

TEST(Steered, AtomicsChangeWhatTheySay) {
  Steered one({[](Actor& core) {
    core.saw(core.swap(0, 4));
    core.saw(core.change(0, 3, 9));
    core.saw(core.change(0, 4, 6));
    core.saw(core.add(0, 2));
  }});
  EXPECT_EQ(one.after("0 0 0 0"), "");
  EXPECT_EQ(one.outcome(), "0 4 4 6 | 8 0");
}

TEST(Steered, FenceThatNeedNotWaitIsTheOnlyChoice) {
  Steered two({[](Actor& core) { core.store(0, 1), core.fence(), core.load(1); },
               [](Actor& core) { core.load(0), core.load(1); }});
  EXPECT_EQ(two.now(), "s0 1");
  EXPECT_EQ(two.after("s0"), "0");
  EXPECT_TRUE(two.run.is_forced({.core = 0}));
  EXPECT_FALSE(two.run.is_forced({.core = 1}));
  EXPECT_EQ(two.after("0"), "0 1");
  EXPECT_FALSE(two.run.is_forced({.core = 0})) << "a load";
}

TEST(Steered, FenceWithAnEmptyBufferIsNoStep) {
  Steered one({[](Actor& core) { core.fence(), core.drain(), core.publish(0); }});
  EXPECT_EQ(one.now(), "");
  EXPECT_TRUE(one.run.ended());
}

TEST(Steered, FenceOfAllWaitsForTheStoresOfEachCore) {
  const auto stores = [](unsigned word) {
    return [=](Actor& core) { core.store(word, 1), core.load(0), core.load(1); };
  };
  Steered three({[](Actor& core) { core.store(0, 1), core.fence_all(), core.load(1); }, stores(1),
                 stores(2)});
  EXPECT_EQ(three.now(), "s0 1 s1 2 s2") << "its own store comes first";
  EXPECT_EQ(three.after("s0"), "0 1 s1 2 s2") << "the others' may come behind their fences";
  EXPECT_EQ(three.after("1"), "1 s1 2 s2") << "one behind which its core has gone on may not";
  EXPECT_EQ(three.run.where_everybody_is(),
            "core 0: fence of core 1; core 1: load word 0:8; core 2: load word 0:0");
  EXPECT_EQ(three.after("s1"), "0 1 2 s2");
  EXPECT_EQ(three.after("2"), "0 1 2 s2") << "one core after the other";
  EXPECT_EQ(three.after("0"), "1 2 s2");
  EXPECT_EQ(three.after("s2"), "0 1 2");
  EXPECT_EQ(three.after("0"), "0 1 2");
  EXPECT_EQ(three.run.where_everybody_is(),
            "core 0: load word 0:8; core 1: load word 0:8; core 2: load word 0:8");
}

TEST(Steered, FenceOfAllWithoutOthersIsAFence) {
  Steered one({[](Actor& core) { core.store(0, 1), core.fence_all(), core.load(1); }});
  EXPECT_EQ(one.now(), "s0");
  EXPECT_EQ(one.run.where_everybody_is(), "core 0: fence");
}

TEST(Steered, WaitLastsUntilItsValueIsSeen) {
  Steered two({[](Actor& core) { core.await(0, 2); },
               [](Actor& core) { core.add(0, 1), core.add(0, 1), core.add(0, 1); }});
  EXPECT_EQ(two.now(), "1");
  EXPECT_EQ(two.after("1"), "1");
  EXPECT_EQ(two.after("1"), "0 1");
  EXPECT_EQ(two.after("1"), "") << "missed: a deadlock";
  EXPECT_FALSE(two.run.ended());
}

TEST(Steered, WaitSeesItsOwnStore) {
  Steered one({[](Actor& core) { core.store(0, 1), core.await(0, 1); }});
  EXPECT_EQ(one.now(), "0 s0");
}

// ---- Waiting and waking (R6) --------------------------------------------------------------------

std::string failure_of(const Bodies::Body& first, const Bodies::Body& second,
                       const std::string& path) {
  Steered two({first, second});
  EXPECT_EQ(two.after(path), "");
  (void)two.outcome();
  return two.run.failure();
}

TEST(Wait, IsForAWordOfTheOwnHome) {
  EXPECT_EQ(Steered({nothing, [](Actor& core) { core.await(1, 0); }}).run.failure(),
            "R6: core 1 waits for word 0:8, which is at another home");
  EXPECT_EQ(Steered({nothing, [](Actor& core) { core.await(3, 0); }}).run.failure(), "");
}

TEST(Wait, AsksForANotifyAfterAChange) {
  const Bodies::Body waits = [](Actor& core) { core.await(1, 1); };
  const Bodies::Body adds = [](Actor& core) { core.add(1, 1); };
  const Bodies::Body adds_and_wakes = [](Actor& core) { core.add(1, 1), core.notify(0); };
  const std::string added =
      "R6: core 1 changes word 0:8, for which core 0 waits, and does not notify it";
  EXPECT_EQ(failure_of(waits, adds, "1 0"), added);
  EXPECT_EQ(failure_of(waits, adds_and_wakes, "1 0"), "");
  EXPECT_EQ(failure_of(
                waits, [](Actor& core) { core.notify(0), core.add(1, 1); }, "1 0"),
            added)
      << "too early";
  EXPECT_EQ(failure_of(
                waits, [](Actor& core) { core.add(1, 1), core.notify(1); }, "1 0"),
            added)
      << "another one";
  EXPECT_EQ(failure_of(
                waits, [](Actor& core) { core.store(1, 1); }, "s1 0"),
            added);
  EXPECT_EQ(failure_of(
                waits, [](Actor& core) { core.store(1, 1), core.notify(0); }, "s1 0"),
            "");
}

TEST(Wait, AsksForNoNotifyThatWouldWakeNoOne) {
  const Bodies::Body waits = [](Actor& core) { core.await(1, 0); };
  EXPECT_EQ(failure_of(
                waits, [](Actor& core) { core.add(0, 1); }, "0 1"),
            "")
      << "another word";
  EXPECT_EQ(failure_of(
                waits, [](Actor& core) { core.change(1, 5, 6); }, "0 1"),
            "")
      << "no change";
  EXPECT_EQ(
      failure_of([](Actor& core) { core.load(1); }, [](Actor& core) { core.add(1, 1); }, "0 1"), "")
      << "no wait";
  EXPECT_EQ(failure_of([](Actor& core) { core.add(1, 1), core.await(1, 1); }, nothing, "0 0"), "")
      << "its own change";
}

// ---- Waiting loops ------------------------------------------------------------------------------

TEST(Steered, PauseLastsUntilSomethingSeenHasChanged) {
  Steered two({[](Actor& core) { core.load(0), core.pause(), core.load(0); },
               [](Actor& core) { core.add(1, 1), core.store(0, 1), core.load(1); }});
  EXPECT_EQ(two.after("0"), "1") << "nothing has";
  EXPECT_EQ(two.after("1"), "1 s1") << "another word has, or a store that is not yet seen";
  EXPECT_EQ(two.after("s1"), "0 1");
}

TEST(Steered, PauseLastsUntilALineSeenHasChanged) {
  Steered two({[](Actor& core) { core.read(0), core.pause(), core.load(0); },
               [](Actor& core) { core.through(1, 0, 1), core.through(0, 0, 1), core.add(0, 1); }});
  EXPECT_EQ(two.after("0v0"), "1 w1.8 w1.0");
  EXPECT_EQ(two.after("w1.8"), "1 w1.0") << "another line";
  EXPECT_EQ(two.after("w1.0"), "0 1");
}

TEST(Steered, PauseDoesNotLastAfterAChangeThatItsCoreHasSeen) {
  Steered two({[](Actor& core) { core.load(0), core.load(0), core.pause(); },
               [](Actor& core) { core.add(0, 1), core.load(1); }});
  EXPECT_EQ(two.after("0 1 0"), "0 1") << "the two loads differed";
  EXPECT_EQ(two.after("0"), "1");
}

TEST(Steered, ChangeThatWasSeenIsNotForgottenByAnEqualLook) {
  Steered word({[](Actor& core) { core.load(0), core.load(0), core.load(0), core.pause(); },
                [](Actor& core) { core.add(0, 1), core.load(1); }});
  EXPECT_EQ(word.after("0 1 0 0"), "0 1");
  Steered line({[](Actor& core) { core.read(0), core.read(0), core.read(0), core.pause(); },
                [](Actor& core) { core.through(0, 0, 1), core.drain(), core.load(1); }});
  EXPECT_EQ(line.after("0v0 w1.0 1 0v0 0v0"), "0 1");
}

TEST(Steered, PauseAfterAChangeIsNoRetry) {
  Steered two({[](Actor& core) { core.load(0), core.pause(), core.load(0), core.pause(); },
               [](Actor& core) { core.add(0, 1), core.load(1); }},
              {.evictions = 0, .retries = 1});
  EXPECT_EQ(two.after("0 1 0 0"), "0 1") << "the retry is left";
}

TEST(Steered, OwnStoreIsNoChange) {
  Steered two({[](Actor& core) { core.load(0), core.store(0, 1), core.pause(); },
               [](Actor& core) { core.load(1); }});
  EXPECT_EQ(two.after("0"), "s0 1");
  EXPECT_EQ(two.after("s0"), "1");
}

// Its own store comes over the change, of which nothing is left to see.
TEST(Steered, PauseDoesNotLastAfterAStoreOverAChange) {
  const auto stores = [](Actor& core) { core.load(0), core.store(0, 2), core.pause(); };
  const auto changes = [](Actor& core) { core.swap(0, 2), core.load(1); };
  Steered before({stores, changes});
  EXPECT_EQ(before.after("0"), "s0 1");
  EXPECT_EQ(before.after("1"), "s0 1") << "not known before the store has left";
  EXPECT_EQ(before.after("s0"), "0 1");
  Steered after({stores, changes});
  EXPECT_EQ(after.after("0 s0 1"), "1") << "the word has the value that the core stored";
}

TEST(Steered, OwnAtomicIsNoChange) {
  Steered two(
      {[](Actor& core) { core.add(0, 1), core.pause(); }, [](Actor& core) { core.load(1); }});
  EXPECT_EQ(two.after("0"), "1");
}

TEST(Steered, EachPauseLooksAfresh) {
  Steered two({[](Actor& core) { core.load(0), core.pause(), core.load(1), core.pause(); },
               [](Actor& core) { core.add(0, 1), core.add(0, 1), core.load(0); }});
  EXPECT_EQ(two.after("0 1 0 0"), "1") << "word 0 was looked at before the first pause only";
  EXPECT_EQ(two.after("1"), "1");
}

TEST(Steered, FourthEqualLoadIsHeldBack) {
  Steered two({[](Actor& core) {
                 for (int i = 0; i < 5; ++i) core.saw(core.load(0));
               },
               [](Actor& core) { core.add(1, 1), core.add(0, 1); }});
  EXPECT_EQ(two.after("0 0"), "0 1");
  EXPECT_EQ(two.after("0"), "1");
  EXPECT_EQ(two.after("1"), "1") << "another word has changed";
  EXPECT_EQ(two.after("1"), "0");
  EXPECT_EQ(two.after("0 0"), "");
  EXPECT_EQ(two.outcome(), "0 0 0 1 1 | | 1 1");
}

// Only loads of one word with nothing between them are a loop.
TEST(Steered, LoadsWithSomethingBetweenAreNotHeldBack) {
  const auto loads_with = [](const std::function<void(Actor&)>& between) {
    return [=](Actor& core) {
      core.load(0), core.load(0);
      between(core);
      core.load(0), core.load(0);
    };
  };
  const auto may_go_on = [&](const std::function<void(Actor&)>& between) {
    Steered two({loads_with(between), [](Actor& core) { core.load(1); }});
    return two.after("0 0 0 0");
  };
  EXPECT_EQ(may_go_on([](Actor& core) { core.load(1); }), "0 1");
  EXPECT_EQ(may_go_on([](Actor& core) { core.add(1, 1); }), "0 1");
  EXPECT_EQ(may_go_on([](Actor& core) { core.refresh(0); }), "0 1");
  EXPECT_EQ(may_go_on(nothing), "0 is not among: 1");
}

TEST(Steered, LoopOfLoadsEndsAfterNineIfNothingElseCanHappen) {
  Steered one({[](Actor& core) {
    while (core.load(0) == 0) continue;
  }});
  EXPECT_EQ(one.after("0 0 0 0 0 0 0 0"), "0");
  EXPECT_EQ(one.after("0"), "");
  EXPECT_FALSE(one.run.ended());
}

TEST(Steered, LoopOfPausesEndsAfterThreeIfNothingElseCanHappen) {
  Steered one({[](Actor& core) {
    while (core.load(0) == 0) core.pause();
  }});
  EXPECT_EQ(one.after("0 0 0 0 0 0"), "0");
  EXPECT_EQ(one.after("0"), "");
  EXPECT_FALSE(one.run.ended());
}

// Each time the same value, but not at the same place.
TEST(Steered, LoopThatLooksElsewhereGoesOn) {
  const auto ends = [](const std::function<void(Actor&, unsigned)>& look) {
    Steered one({[=](Actor& core) {
      for (unsigned i = 0; i < 6; ++i) look(core, i), core.pause();
    }});
    std::vector<Transition> choices;
    while (one.run.enabled(choices)) one.run.apply(choices.front());
    return one.run.ended();
  };
  EXPECT_TRUE(ends([](Actor& core, unsigned i) { core.load(i % 2); }));
  EXPECT_TRUE(ends([](Actor& core, unsigned i) { core.read(i % 2); }));
  EXPECT_TRUE(ends([](Actor& core, unsigned i) { core.read(0, i % 2); }));
  EXPECT_TRUE(ends([](Actor& core, unsigned i) { core.change(i % 2, 1, 1); }));
  EXPECT_TRUE(ends([](Actor& core, unsigned i) { core.store(0, i); }));
  EXPECT_TRUE(ends([](Actor& core, unsigned i) { core.load(1), core.write(0, 0, i); }));
  EXPECT_TRUE(ends([](Actor& core, unsigned i) { core.load(1), core.through(0, 0, i); }));
  EXPECT_FALSE(ends([](Actor& core, unsigned) { core.load(0); }));
  EXPECT_FALSE(ends([](Actor& core, unsigned) { core.load(1), core.write(0, 0, 1); }));
}

// A loop that sees something else each time is not the same again.
TEST(Steered, LoopThatChangesGoesOn) {
  Steered one({[](Actor& core) {
    for (unsigned i = 0; i < 6; ++i) core.add(0, 1), core.pause();
  }});
  EXPECT_EQ(one.after("0 0 0 0 0 0 0 0 0 0 0 0"), "");
  EXPECT_TRUE(one.run.ended());
}

TEST(Steered, HeldBackCoresAreLetGoOnOnlyIfNoOtherCanStep) {
  const auto sleeper = [](Actor& core) { core.load(0), core.pause(), core.add(1, 1); };
  Steered three({sleeper, sleeper, [](Actor& core) { core.store(1, 1); }});
  EXPECT_EQ(three.after("0 1"), "s2") << "something can still happen";
  EXPECT_EQ(three.after("s2"), "0 1") << "any of them";
  EXPECT_EQ(three.after("1"), "1");
}

// ---- Data ---------------------------------------------------------------------------------------

TEST(Steered, ReadSeesAnyVersionThatDiffers) {
  const auto writer = [](Actor& core) {
    core.through(0, 0, 5), core.drain();
    core.through(0, 1, 6), core.drain();
  };
  const auto reads = [](unsigned unit) {
    return [=](Actor& core) { core.saw(core.read(0, unit)); };
  };
  Steered first({writer, reads(0)});
  EXPECT_EQ(first.now(), "1v0 w0.0");
  EXPECT_EQ(first.after("w0.0"), "0") << "the drain";
  EXPECT_EQ(first.after("0 w0.1 0"), "1v2 1v1")
      << "the newest shows the same bytes as the one before";
  EXPECT_EQ(first.after("1v1"), "");
  EXPECT_EQ(first.outcome(), "| 5 | 0 0");
  Steered second({writer, reads(1)});
  EXPECT_EQ(second.after("w0.0 0 w0.1 0"), "1v2 1v0");
  EXPECT_EQ(second.after("1v2"), "");
  EXPECT_EQ(second.outcome(), "| 0 | 0 0");
}

// The bytes that a write does not write are fetched: they may be old.
TEST(Steered, WriteFetchesNeighboursOfAnyVersion) {
  const auto neighbour = [](Actor& core) { core.through(0, 0, 5), core.drain(); };
  const auto writes = [](unsigned unit) {
    return [=](Actor& core) { core.write(0, unit, 6), core.publish(0); };
  };
  Steered beside({neighbour, writes(1)});
  EXPECT_EQ(beside.after("w0.0 0"), "1v1 1v0");
  EXPECT_EQ(beside.after("1v1 1"), "");
  EXPECT_EQ(beside.run.memory().at(0, 2)[0], std::byte{0}) << "overwritten by the old one";
  Steered same({neighbour, writes(0)});
  EXPECT_EQ(same.after("w0.0 0"), "1v1") << "the bytes that it overwrites make no difference";
}

TEST(Steered, RefreshSeesTheNewest) {
  Steered two({[](Actor& core) { core.through(0, 0, 5), core.drain(); },
               [](Actor& core) { core.refresh(0), core.saw(core.read(0)); }});
  EXPECT_EQ(two.after("w0.0 0 1"), "1v0");
  EXPECT_EQ(two.after("1v0"), "");
  EXPECT_EQ(two.outcome(), "| 5 | 0 0");
}

TEST(Steered, AccessToADirtyLineIsAStepOnlyIfItMayBeEvicted) {
  const auto body = [](Actor& core) {
    core.write(0, 0, 5), core.saw(core.read(0)), core.publish(0);
  };
  Steered kept({body}, {.evictions = 0});
  EXPECT_EQ(kept.after("0v0"), "0");
  EXPECT_EQ(kept.after("0"), "") << "the publish";
  Steered evicted({body}, {.evictions = 1});
  EXPECT_EQ(evicted.after("0v0"), "0 e0.0");
  EXPECT_EQ(evicted.after("e0.0"), "0v0") << "clean again";
  EXPECT_EQ(evicted.after("0v0"), "") << "nothing to publish";
  EXPECT_EQ(kept.outcome(), evicted.outcome());
}

TEST(Steered, EvictionsOfAllCoresAreCountedTogether) {
  const auto body = [](unsigned line) {
    return [=](Actor& core) { core.write(line, 0, 5), core.add(0, 1); };
  };
  Steered two({body(0), body(3)}, {.evictions = 1});
  EXPECT_EQ(two.after("0v0 1v0"), "0 1 e0.0 e1.3");
  EXPECT_EQ(two.after("e1.3"), "0 1");
  EXPECT_EQ(two.run.memory().at(3, 1)[0], std::byte{5});
  EXPECT_EQ(two.run.memory().latest(0), 0u);
}

TEST(Steered, PublishOfALineThatIsEvictedMeanwhileDoesNothing) {
  Steered two({[](Actor& core) { core.write(0, 0, 5), core.publish(0); },
               [](Actor& core) { core.through(0, 0, 6), core.drain(); }},
              {.evictions = 1});
  EXPECT_EQ(two.after("0v0 e0.0 w1.0 1"), "0");
  EXPECT_EQ(two.after("0"), "");
  EXPECT_EQ(two.run.memory().at(0, 2)[0], std::byte{6});
  EXPECT_EQ(two.run.memory().latest(0), 2u);
}

TEST(Steered, DrainWaitsForAllThatWasWrittenThrough) {
  Steered one({[](Actor& core) { core.through(0, 1, 1), core.through(1, 2, 1), core.drain(); }});
  EXPECT_EQ(one.now(), "w0.1 w0.10");
  EXPECT_EQ(one.after("w0.10"), "w0.1");
  EXPECT_EQ(one.after("w0.1"), "0");
  EXPECT_EQ(one.after("0"), "");
}

TEST(Steered, SecondWriteThroughMayFindTheFirstOnItsWay) {
  const auto body = [](Actor& core) { core.through(0, 0, 1), core.through(0, 0, 2), core.drain(); };
  Steered combined({body});
  EXPECT_EQ(combined.now(), "0 w0.0");
  EXPECT_EQ(combined.after("0 w0.0 0"), "");
  EXPECT_EQ(combined.run.memory().latest(0), 1u);
  Steered apart({body});
  EXPECT_EQ(apart.after("w0.0 0 w0.0 0"), "");
  EXPECT_EQ(apart.run.memory().latest(0), 2u);
}

// ---- Ranges of bytes ----------------------------------------------------------------------------

// 30 bytes from byte 51: the last unit of line 0 but one, in part, to a part of line 1.
class Range : public ::testing::Test {
 protected:
  static constexpr machine::DataPlace place{0, 51};
  using Bytes = std::array<std::byte, 30>;
  Range() {
    for (std::size_t i = 0; i < pattern.size(); ++i) pattern[i] = static_cast<std::byte>(i + 1);
  }
  void expect_in_memory(const Memory& memory) const {
    for (std::size_t i = 0; i < 2 * line_bytes; ++i) {
      const bool inside = i >= place.offset && i < place.offset + pattern.size();
      const auto line = static_cast<std::uint32_t>(i / line_bytes);
      EXPECT_EQ(memory.at(line, memory.latest(line))[i % line_bytes],
                inside ? pattern[i - place.offset] : std::byte{0})
          << "byte " << i;
    }
  }
  Bytes pattern{};
};

TEST_F(Range, IsWrittenPublishedAndReadLineByLine) {
  Bytes seen{};
  Steered one({[&](Actor& core) {
    (void)core.core().write(place, pattern.data(), pattern.size()).ok();
    core.core().publish(place, pattern.size());
    core.core().refresh(place, pattern.size());
    (void)core.core().read(place, seen.data(), seen.size()).ok();
  }});
  EXPECT_EQ(one.after("0v0 0v0 0"), "0") << "two writes, the first publish";
  EXPECT_EQ(one.run.memory().latest(0), 1u);
  EXPECT_EQ(one.run.memory().latest(1), 0u);
  EXPECT_EQ(one.after("0 0 0 0v0 0v0"), "");
  EXPECT_EQ(seen, pattern);
  expect_in_memory(one.run.memory());
}

TEST_F(Range, IsWrittenThroughUnitByUnit) {
  Steered one({[&](Actor& core) {
    (void)core.core().write_through(place, pattern.data(), pattern.size()).ok();
    core.drain();
  }});
  EXPECT_EQ(one.now(), "w0.6 w0.7 w0.8 w0.9 w0.10");
  EXPECT_EQ(one.after("w0.10 w0.7 w0.9 w0.6 w0.8 0"), "");
  expect_in_memory(one.run.memory());
}

TEST_F(Range, LeavesTheOtherBytesOfItsUnitsAlone) {
  Steered two({[&](Actor& core) {
                 (void)core.core().write_through(place, pattern.data(), pattern.size()).ok();
                 core.drain();
               },
               [](Actor& core) { core.through(0, 6, ~std::uint64_t{0}), core.drain(); }});
  EXPECT_EQ(two.after("w1.6 1 w0.6"), "w0.7 w0.8 w0.9 w0.10");
  const LineBytes line = two.run.memory().at(0, 2);
  EXPECT_EQ(line[50], std::byte{255}) << "before the range";
  EXPECT_EQ(line[51], pattern[0]);
}

TEST_F(Range, OfNoBytesIsNoStep) {
  Steered one({[&](Actor& core) {
    core.core().refresh(place, 0);
    (void)core.core().read(place, pattern.data(), 0).ok();
  }});
  EXPECT_EQ(one.now(), "");
}

// ---- The run ------------------------------------------------------------------------------------

TEST(TheRun, KeepsTheFirstFailure) {
  Steered one({[](Actor& core) { core.load(0), core.fail("first"), core.fail("second"); }});
  EXPECT_EQ(one.run.failure(), "");
  EXPECT_EQ(one.after("0"), "");
  EXPECT_EQ(one.run.failure(), "first");
  one.run.restart();
  EXPECT_EQ(one.run.failure(), "");
}

// The operations of a given-up core on its way out are no part of the next execution.
TEST(TheRun, ForgetsWhatItGivesUp) {
  struct AtTheEnd {
    Actor& core;
    ~AtTheEnd() {
      core.store(0, 9);
      core.add(1, 9);
      core.fail("given up");
    }
  };
  Steered two({[](Actor& core) {
                 const AtTheEnd last{core};
                 core.write(0, 0, 1), core.through(1, 0, 1), core.load(0), core.load(1);
               },
               [](Actor& core) { core.load(0); }},
              {.evictions = 1, .preemptions = 3});
  const std::uint64_t key = two.run.key();
  const std::string choices = two.now();
  for (const char* path : {"0v0 e0.0", "0v0 w0.8 1", "1 0v0 0"}) {
    EXPECT_EQ(two.after(path).find("not among"), std::string::npos);
    EXPECT_NE(two.run.key(), key);
    two.run.restart();
    EXPECT_EQ(two.run.key(), key) << path;
    EXPECT_EQ(two.now(), choices);
    EXPECT_EQ(two.run.failure(), "");
  }
}

TEST(TheRun, IsTheSameByTheSamePath) {
  Steered two({[](Actor& core) { core.through(0, 0, 1), core.load(0), core.drain(); },
               [](Actor& core) { core.store(0, 1), core.read(0), core.add(1, 1); }});
  std::array<std::vector<std::uint64_t>, 2> keys;
  for (auto& all : keys) {
    two.run.restart();
    for (const char* one : {"w0.0", "1v1", "s1", "1", "0", "0"}) {
      if (steer(two.run, one).find("not among") != std::string::npos) break;
      all.push_back(two.run.key());
    }
  }
  EXPECT_EQ(keys[0].size(), 5u);
  EXPECT_EQ(keys[0], keys[1]);
}

std::uint64_t key_after(const std::vector<Bodies::Body>& bodies, const std::string& path,
                        const Bounds& bounds = {}) {
  Steered steered(bodies, bounds);
  EXPECT_EQ(steered.after(path).find("not among"), std::string::npos) << path;
  return steered.run.key();
}

TEST(TheKey, IsOneForOrdersThatMakeNoDifference) {
  const std::vector<Bodies::Body> apart{[](Actor& core) { core.add(0, 1), core.load(0); },
                                        [](Actor& core) { core.add(1, 1), core.load(1); }};
  EXPECT_EQ(key_after(apart, "0 1"), key_after(apart, "1 0"));
  // With a bound on preemptions they do: the turn is with another core.
  EXPECT_NE(key_after(apart, "0 1", {.preemptions = 3}),
            key_after(apart, "1 0", {.preemptions = 3}));
}

TEST(TheKey, TellsWhatACoreHasSeen) {
  const std::vector<Bodies::Body> common{[](Actor& core) { core.add(0, 1), core.load(1); },
                                         [](Actor& core) { core.add(0, 1), core.load(1); }};
  EXPECT_NE(key_after(common, "0 1"), key_after(common, "1 0"));
}

TEST(TheKey, TellsWhichEvictionsAreLeft) {
  const std::vector<Bodies::Body> body{
      [](Actor& core) { core.write(0, 0, 1), core.publish(0), core.load(0); }};
  // Line 0 is in memory either way, and the core is where it was.
  EXPECT_NE(key_after(body, "0v0 e0.0 0"), key_after(body, "0v0 0"));
}

TEST(TheKey, TellsWhichRetriesAreLeft) {
  const std::vector<Bodies::Body> bodies{
      [](Actor& core) { core.load(0), core.pause(), core.load(1); },
      [](Actor& core) { core.add(0, 1), core.load(1); }};
  // The pause before the change is a retry.
  EXPECT_NE(key_after(bodies, "0 0 1", {.retries = 1}), key_after(bodies, "0 1 0", {.retries = 1}));
}

// The next operation of a core may depend on the code before its first operation.
TEST(TheKey, TellsWhatACoreIsAboutToDo) {
  const auto about = [](const Bodies::Body& body) { return key_after({body, nothing}, ""); };
  const std::vector<std::uint64_t> keys{
      about(nothing),
      about([](Actor& core) { core.load(0); }),
      about([](Actor& core) { core.load(1); }),
      about([](Actor& core) { core.add(0, 1); }),
      about([](Actor& core) { core.pause(); }),
      about([](Actor& core) { core.read(0, 0); }),
      about([](Actor& core) { core.read(0, 1); }),
      about([](Actor& core) { core.read(1, 0); }),
      about([](Actor& core) { core.write(0, 0, 1); }),
      about([](Actor& core) { core.refresh(0); }),
  };
  for (std::size_t i = 0; i < keys.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(keys[i], keys[j]) << i << " and " << j;
}

TEST(TheRun, SaysWhereEverybodyIs) {
  const auto at = [](const Bodies::Body& body) {
    return Steered({body}, {.evictions = 1}).run.where_everybody_is();
  };
  EXPECT_EQ(at(nothing), "core 0: has ended");
  EXPECT_EQ(at([](Actor& core) { core.load(1); }), "core 0: load word 0:8");
  EXPECT_EQ(at([](Actor& core) { core.add(0, 1); }), "core 0: atomic on word 0:0");
  EXPECT_EQ(at([](Actor& core) { core.store(0, 1), core.fence(); }), "core 0: fence");
  EXPECT_EQ(at([](Actor& core) { core.await(1, 1); }), "core 0: wait for word 0:8, which holds 0");
  EXPECT_EQ(at([](Actor& core) { core.pause(); }),
            "core 0: pause, and nothing has changed that it looked at");
  EXPECT_EQ(at([](Actor& core) { core.read(1); }), "core 0: read line 0:64");
  EXPECT_EQ(at([](Actor& core) { core.write(0, 1, 1); }), "core 0: write line 0:0");
  EXPECT_EQ(at([](Actor& core) { core.through(1, 0, 1), core.through(1, 0, 1); }),
            "core 0: write through line 0:64");
  EXPECT_EQ(at([](Actor& core) { core.refresh(1); }), "core 0: refresh line 0:64");
  EXPECT_EQ(at([](Actor& core) { core.through(1, 0, 1), core.drain(); }), "core 0: drain");
  Steered two({[](Actor& core) { core.write(2, 0, 1), core.publish(2); },
               [](Actor& core) { core.load(3); }});
  EXPECT_EQ(two.after("0v0"), "0 1");
  EXPECT_EQ(two.run.where_everybody_is(), "core 0: publish line 1:0; core 1: load word 1:8");
}

}  // namespace
}  // namespace tombolo::litmus
