// SPDX-License-Identifier: Apache-2.0
// Purpose: tests local and exclusive places, and names of places that have ended.
// Thread safety: -
#include "svp/places/place.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "svp/api/include/tombolo/svp.hpp"

namespace tombolo::svp {
namespace {

class Places : public ::testing::TestWithParam<unsigned> {
 protected:
  template <class Body>
  Exit inside(Body&& body) {
    auto family = create(place_, std::forward<Body>(body));
    return family.sync();
  }
  LocalPlace place_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Workers, Places, ::testing::Values(1u, 2u, 4u));

TEST_P(Places, HaveTheirOwnWorkers) {
  EXPECT_EQ(place_.workers(), GetParam());
  inside([&] {
    LocalPlace elsewhere(2);
    const Pool* const here = &Worker::here()->pool();
    const Pool* there = nullptr;
    const Pool* nested = nullptr;
    const Pool* back = nullptr;
    auto family = create(elsewhere, [&] {
      there = &Worker::here()->pool();
      auto inner = create([&] { nested = &Worker::here()->pool(); });
      inner.sync();
      auto home = create(place_, [&] { back = &Worker::here()->pool(); });
      home.sync();
    });
    EXPECT_TRUE(family.sync().done());
    EXPECT_NE(here, there);
    EXPECT_EQ(there, nested);
    EXPECT_EQ(here, back);
  });
}

TEST_P(Places, DefaultIsThatOfTheCreator) {
  inside([] {
    const Pool* const here = &Worker::here()->pool();
    auto family =
        create(Place(), {.limit = 10}, [&](Index) { EXPECT_EQ(&Worker::here()->pool(), here); });
    EXPECT_TRUE(family.sync().done());
  });
}

TEST_P(Places, ExclusiveRunsOneFamilyAtATime) {
  ExclusivePlace counter;
  std::atomic<int> inside_now{0};
  long count = 0;  // not atomic
  inside([&] {
    auto family = create({.limit = 2000}, [&](Index) {
      auto add = create(counter, [&] {
        EXPECT_EQ(++inside_now, 1);
        ++count;
        --inside_now;
      });
      add.sync();
    });
    EXPECT_TRUE(family.sync().done());
  });
  EXPECT_EQ(count, 2000);
}

TEST_P(Places, ExclusiveKeepsTheOrderOfCreates) {
  ExclusivePlace place(place_);
  std::vector<int> order;
  inside([&] {
    const auto make = [&](int i) { return create(place, [&order, i] { order.push_back(i); }); };
    using One = decltype(make(0));
    std::vector<std::unique_ptr<One>> all;
    for (int i = 0; i < 200; ++i) all.emplace_back(new One(make(i)));
    for (std::size_t i = all.size(); i-- > 0;) all[i]->sync();  // the last one first
  });
  ASSERT_EQ(order.size(), 200u);
  for (int i = 0; i < 200; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST_P(Places, ExclusiveMayBlockInside) {
  ExclusivePlace place;
  inside([&] {
    Global<int> value;
    int seen = 0;
    auto first = create(place, [&] { seen = value.read(); });
    auto second = create(place, [&] { seen *= 2; });
    auto writer = create([&] { value.write(21); });
    second.sync();
    first.sync();
    writer.sync();
    EXPECT_EQ(seen, 42);
  });
}

// The worker of a thread that has ended its family runs the next one, of whichever thread, before
// it goes on, and goes on with the thread where that one blocks.
TEST_P(Places, ExclusiveHandsOnBeforeAThreadGoesOn) {
  ExclusivePlace place;
  inside([&] {
    bool ran = false;
    auto first = create(place, [] {});
    auto second = create(place, [&] { ran = true; });
    first.sync();
    if (GetParam() == 1) {
      EXPECT_TRUE(ran);
    }
    second.sync();
    EXPECT_TRUE(ran);

    Global<int> value;
    int seen = 0;
    auto third = create(place, [] {});
    auto reader = create(place, [&] { seen = value.read(); });
    third.sync();
    value.write(21);
    reader.sync();
    EXPECT_EQ(seen, 21);
  });
}

// VEX3.
TEST_P(Places, ExclusiveLetsAThreadGoOnBeforeLongFamilies) {
  ExclusivePlace place;
  inside([&] {
    const auto nap = [] { std::this_thread::sleep_for(std::chrono::milliseconds(2)); };
    for (int round = 0; round < 3; ++round) {
      bool ran = false;
      auto first = create(place, nap);
      auto second = create(place, [&] {
        nap();
        ran = true;
      });
      first.sync();
      if (GetParam() == 1) {
        EXPECT_EQ(ran, round == 0) << "that was not known before";
      }
      second.sync();
      EXPECT_TRUE(ran);
    }
  });
}

TEST_P(Places, ExclusiveServesManyThatWait) {
  ExclusivePlace place;
  long count = 0;  // not atomic
  inside([&] {
    auto family = create({.limit = 200}, [&](Index) {
      const auto add = [&] { ++count; };
      using One = decltype(create(place, add));
      std::vector<std::unique_ptr<One>> all;
      for (int i = 0; i < 10; ++i) all.emplace_back(new One(create(place, add)));
      for (auto& one : all) one->sync();
    });
    EXPECT_TRUE(family.sync().done());
  });
  EXPECT_EQ(count, 2000);
}

TEST_P(Places, ExclusiveServesThreadsThatAreNoWorkers) {
  ExclusivePlace here(place_);
  ExclusivePlace anywhere;
  long count = 0;
  long others = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        auto one = create(here, [&] { ++count; });
        auto two = create(anywhere, [&] { ++others; });
        EXPECT_TRUE(one.sync().done());
        EXPECT_TRUE(two.sync().done());
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, 600);
  EXPECT_EQ(others, 600);
}

TEST_P(Places, ExclusiveGoesOnAfterKillAndFailure) {
  ExclusivePlace place;
  inside([&] {
    int after = 0;
    std::atomic<bool> asked{false};
    auto failing = create(place, [&] {
      while (!asked) std::this_thread::yield();
      throw 1;
    });
    auto killed = create(place, [] { FAIL(); });
    auto last = create(place, [&] { after = 1; });
    killed.kill();
    asked = true;
    EXPECT_EQ(killed.sync().reason, ExitReason::killed);
    EXPECT_EQ(failing.sync().reason, ExitReason::failed);
    EXPECT_TRUE(last.sync().done());
    EXPECT_EQ(after, 1);
  });
}

// VEX4: the sync of the second one waits for no turn, which may come after the creator has gone on.
TEST_P(Places, ExclusiveLetsStoppedFamiliesLeaveTheQueue) {
  ExclusivePlace place;
  inside([&] {
    Global<int> value;
    int seen = 0;
    auto first = create(
        place, [&](Global<int>& v) { seen = v.read(); }, value);
    auto second = create(place, [] { FAIL(); });
    auto third = create(place, [&] { seen *= 2; });
    second.kill();
    EXPECT_EQ(second.sync().reason, ExitReason::killed);
    value.write(21);
    EXPECT_TRUE(first.sync().done());
    EXPECT_TRUE(third.sync().done());
    EXPECT_EQ(seen, 42);
  });
}

TEST_P(Places, ExclusiveLetsAnExceptionLeaveFamiliesInTheQueue) {
  ExclusivePlace place;
  inside([&] {
    bool ran = false;
    auto outer = create([&] {
      Global<int> value;
      auto first = create(
          place, [](Global<int>& v) { v.read(); }, value);
      auto second = create(place, [&] { ran = true; });
      throw std::runtime_error("by chance");
    });
    EXPECT_EQ(outer.sync().reason, ExitReason::failed);
    EXPECT_FALSE(ran);
    EXPECT_TRUE(create(place, [] {}).sync().done());
  });
}

// Those before it have left between the two looks of a create.
TEST_P(Places, ExclusiveKeepsATurnThatIsTheFirst) {
  inside([&] {
    Exclusive place;
    QueuedTurn turn;
    EXPECT_TRUE(place.enter(turn, nullptr));
    EXPECT_FALSE(place.give_up(turn));
    place.end_own(turn, *Worker::here());
  });
}

// Each is the first of its queue, and its thread waits behind the other.
TEST_P(Places, ExclusiveFamiliesThatWaitForEachOtherAreFreedByAKill) {
  ExclusivePlace one;
  ExclusivePlace other;
  std::atomic<int> begun{0};
  std::atomic<bool> both{false};
  bool ran = false;
  inside([&] {
    const auto begin = [&] {
      while (!both) std::this_thread::yield();
      ++begun;
    };
    auto killed = create(one, [&] {
      begin();
      create(other, [] { FAIL(); }).sync();
    });
    auto freed = create(other, [&] {
      begin();
      create(one, [&] { ran = true; }).sync();
    });
    both = true;
    std::thread killer([&] {
      while (begun < 2) std::this_thread::yield();
      killed.kill();
    });
    EXPECT_EQ(killed.sync().reason, ExitReason::killed);
    EXPECT_TRUE(freed.sync().done());
    EXPECT_TRUE(ran);
    killer.join();
  });
}

TEST_P(Places, ExclusiveLetsStoppedFamiliesOfThreadsThatAreNoWorkersLeaveTheQueue) {
  ExclusivePlace place(place_);
  Global<int> value;
  auto first = create(
      place, [](Global<int>& v) { v.read(); }, value);
  auto second = create(place, [] { FAIL(); });
  auto third = create(place, [] { FAIL(); });
  second.kill();
  EXPECT_EQ(second.sync().reason, ExitReason::killed);
  std::thread killer([&] { third.kill(); });
  EXPECT_EQ(third.sync().reason, ExitReason::killed);
  killer.join();
  value.write(1);
  EXPECT_TRUE(first.sync().done());
}

class PlacesDeathTest : public ::testing::Test {
 protected:
  PlacesDeathTest() { ::testing::GTEST_FLAG(death_test_style) = "threadsafe"; }
};

TEST_F(PlacesDeathTest, AnEndedPlaceDoesNotExist) {
  EXPECT_DEATH(
      {
        Place name;
        {
          LocalPlace place(1);
          name = place;
        }
        LocalPlace other(1);  // which may have its record
        create(name, [] {}).sync();
      },
      "create: the place does not exist any more");
}

TEST_F(PlacesDeathTest, ExitDoesNotWaitForFamiliesThatAreNotSynced) {
  EXPECT_EXIT(
      {
        auto family = create({.limit = unbounded}, [](Index) {});
        std::exit(3);
      },
      ::testing::ExitedWithCode(3), "");
}

TEST_F(PlacesDeathTest, ExclusiveWithinItselfCouldNotEnd) {
  EXPECT_DEATH(
      {
        ExclusivePlace place;
        auto outer = create(place, [&] {
          auto between = create([&] { create(place, [] {}).sync(); });
          between.sync();
        });
        outer.sync();
      },
      "create at an exclusive place, from within a family of that place");
}

TEST_F(PlacesDeathTest, AnExclusivePlaceEndsAfterItsFamilies) {
  EXPECT_DEATH(
      {
        auto place = std::make_unique<ExclusivePlace>();
        auto family = create(*place, [] {
          for (;;) checkpoint();
        });
        place.reset();
      },
      "an exclusive place ends before its families are synced");
}

}  // namespace
}  // namespace tombolo::svp
