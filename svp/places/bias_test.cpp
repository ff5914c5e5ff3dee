// SPDX-License-Identifier: Apache-2.0
// Purpose: tests the bias of an exclusive place to a worker: when it comes, how it is taken away
// while a family of the worker is in the place, was taken by another worker, or is none, and that
// families are ended, stopped and left there as at any other place.
// Thread safety: -
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "host/memory/testing/system_calls.h"
#include "svp/api/include/tombolo/svp.hpp"

namespace tombolo::svp {

// Steps of a worker, for whose bias another thread comes between two of them.
struct LateEnter {
  // The worker has stored a turn.
  LateEnter(Exclusive& at, Worker& of) : place(at), worker(of), seen(at.last_.load()) {
    place.inside_[bias()].store(Exclusive::number_of(turn) + 1);
  }
  // It looks whether it has the bias still.
  bool enter() const {
    place.inside_[bias()].store(0);  // stored anew
    return place.enter_by_bias(turn, seen, bias());
  }
  std::uint64_t bias() const { return Exclusive::bias_to(worker, seen); }

  Exclusive& place;
  Worker& worker;
  std::uint64_t seen;
  mutable Turn turn;
};

namespace {

// A place that can be looked at.
struct LookedAt {
  Exclusive exclusive;
  OwnedRecord record{nullptr, &exclusive};

  operator Place() const { return record.name(); }  // NOLINT: as ExclusivePlace

  // A family of the calling worker's that is created and synced, without threads.
  void pass() {
    Worker& worker = *Worker::here();
    Turn turn;
    ASSERT_TRUE(exclusive.enter_if_empty(turn, worker));
    exclusive.end_own(turn, worker);
  }
  // How many of them pass before the place is biased; `most` if it is not.
  unsigned passes_before_bias(unsigned most) {
    for (unsigned passed = 0; passed < most; ++passed) {
      if (exclusive.is_biased()) return passed;
      pass();
    }
    return most;
  }
  bool bias() { return passes_before_bias(Exclusive::first_row + 2) <= Exclusive::first_row + 1; }
};

// Families of a thread that is no worker, one after the other.
void from_outside(const Place& place, const std::function<void()>& body) {
  std::thread other([&] { EXPECT_TRUE(create(place, [&] { body(); }).sync().done()); });
  other.join();
}

class Bias : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!Worker::Core::fences_asymmetrically()) GTEST_SKIP() << "no membarrier on this host";
  }
  template <class Body>
  void inside(unsigned workers, Body&& body) {
    LocalPlace place(workers);
    auto family = create(place, std::forward<Body>(body));
    EXPECT_TRUE(family.sync().done());
  }
};

TEST_F(Bias, ComesAfterARowOfFamiliesThatIsLongerEachTime) {
  LookedAt place;
  inside(1, [&] {
    unsigned row = Exclusive::first_row;
    for (unsigned n = 0; n < Exclusive::most_biases; ++n) {
      // The first family of a worker begins its row.
      EXPECT_EQ(place.passes_before_bias(2 * row), n == 0 ? row + 1 : row);
      EXPECT_TRUE(place.exclusive.is_biased());
      place.pass();
      from_outside(place, [] {});
      EXPECT_FALSE(place.exclusive.is_biased());
      row *= Exclusive::row_factor;
    }
    EXPECT_EQ(place.passes_before_bias(row / Exclusive::row_factor * 2),
              row / Exclusive::row_factor * 2)
        << "there is none left";
  });
}

TEST_F(Bias, ComesAfterARowOfOneWorkerAlone) {
  LookedAt place;
  inside(1, [&] {
    place.passes_before_bias(Exclusive::first_row);
    inside(1, [&] {
      EXPECT_EQ(place.passes_before_bias(Exclusive::first_row), Exclusive::first_row)
          << "those before were another worker's";
      from_outside(place, [] {});
      EXPECT_EQ(place.passes_before_bias(Exclusive::first_row / 2), Exclusive::first_row / 2)
          << "another one was between";
      auto first = create(place, [] {});
      auto second = create(place, [] {});
      first.sync();
      second.sync();
      EXPECT_EQ(place.passes_before_bias(2 * Exclusive::first_row), Exclusive::first_row)
          << "another one was behind";
    });
  });
}

TEST_F(Bias, IsOfNoOtherWorker) {
  LookedAt place;
  inside(1, [&] {
    ASSERT_TRUE(place.bias());
    long count = 0;
    inside(1, [&] {
      EXPECT_TRUE(create(place, [&] { ++count; }).sync().done());
      EXPECT_FALSE(place.exclusive.is_biased());
    });
    EXPECT_EQ(count, 1);
  });
}

TEST_F(Bias, IsTakenAwayBehindTheFamilyInsideEachTime) {
  LookedAt place;
  inside(1, [&] {
    for (unsigned n = 0; n < Exclusive::most_biases; ++n) {
      (void)place.passes_before_bias(1u << 20);
      ASSERT_TRUE(place.exclusive.is_biased());
      std::vector<int> order;
      std::atomic<bool> entered{false};
      auto first = create(place, [&] { order.push_back(1); });
      std::thread other([&] {
        auto second = create(place, [&] { order.push_back(2); });
        entered = true;
        EXPECT_TRUE(second.sync().done());
      });
      while (!entered) std::this_thread::yield();
      EXPECT_FALSE(place.exclusive.is_biased());
      auto third = create(place, [&] { order.push_back(3); });
      EXPECT_TRUE(first.sync().done());
      EXPECT_TRUE(third.sync().done());
      other.join();
      EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
      EXPECT_TRUE(create(place, [] {}).sync().done());
    }
  });
}

TEST_F(Bias, IsTakenAwayByItsOwnWorkersSecondFamily) {
  LookedAt place;
  inside(1, [&] {
    ASSERT_TRUE(place.bias());
    std::vector<int> order;
    auto first = create(place, [&] { order.push_back(1); });
    EXPECT_TRUE(place.exclusive.is_biased());
    auto second = create(place, [&] { order.push_back(2); });
    auto third = create(place, [&] { order.push_back(3); });
    EXPECT_TRUE(third.sync().done());
    EXPECT_TRUE(second.sync().done());
    EXPECT_TRUE(first.sync().done());
    EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
    EXPECT_TRUE(create(place, [] {}).sync().done());
  });
}

// Another worker has taken the family; or its own, while the creator blocks.
TEST_F(Bias, StaysWhereItsFamilyDoesNotRunInItsCreator) {
  for (const unsigned workers : {1u, 2u}) {
    SCOPED_TRACE(workers);
    LookedAt place;
    inside(workers, [&] {
      ASSERT_TRUE(place.bias());
      Global<int> value;
      Worker* ran_by = nullptr;
      auto family = create(
          place,
          [&](Global<int>& v) {
            ran_by = Worker::here();
            v.write(1);
          },
          value);
      if (workers == 1) {
        EXPECT_EQ(value.read(), 1);
      } else {
        while (family.state.load() != Worker::Hand::done_value) checkpoint();
        EXPECT_NE(ran_by, Worker::here());
      }
      EXPECT_TRUE(family.sync().done());
      EXPECT_TRUE(place.exclusive.is_biased());
      bool ran = false;
      EXPECT_TRUE(create(place, [&] { ran = true; }).sync().done());
      EXPECT_TRUE(ran);
      EXPECT_TRUE(place.exclusive.is_biased());
    });
  }
}

TEST_F(Bias, IsTakenAwayBehindAFamilyThatAnotherWorkerRuns) {
  LookedAt place;
  inside(2, [&] {
    ASSERT_TRUE(place.bias());
    std::atomic<bool> begun{false};
    std::atomic<bool> entered{false};
    std::vector<int> order;
    auto first = create(place, [&] {
      begun = true;
      while (!entered) std::this_thread::yield();
      order.push_back(1);
    });
    while (!begun) checkpoint();
    EXPECT_TRUE(place.exclusive.is_biased()) << "another worker has only taken the family";
    std::thread other([&] {
      auto second = create(place, [&] { order.push_back(2); });
      EXPECT_FALSE(place.exclusive.is_biased());
      entered = true;
      EXPECT_TRUE(second.sync().done());
    });
    other.join();
    EXPECT_TRUE(first.sync().done());
    EXPECT_EQ(order, (std::vector<int>{1, 2}));
    EXPECT_TRUE(create(place, [] {}).sync().done());
  });
}

TEST_F(Bias, IsTakenAwayByAFamilyThatIsStoppedThen) {
  LookedAt place;
  inside(1, [&] {
    ASSERT_TRUE(place.bias());
    int ran = 0;
    auto first = create(place, [&] { ++ran; });
    auto second = create(place, [] { FAIL(); });
    auto third = create(place, [&] { ++ran; });
    second.kill();
    EXPECT_EQ(second.sync().reason, ExitReason::killed) << "it does not wait for its turn";
    EXPECT_TRUE(first.sync().done());
    EXPECT_TRUE(third.sync().done());
    EXPECT_EQ(ran, 2);
    EXPECT_TRUE(create(place, [] {}).sync().done());
  });
}

TEST_F(Bias, OutlivesFamiliesThatEndEarly) {
  LookedAt place;
  inside(1, [&] {
    ASSERT_TRUE(place.bias());
    auto killed = create(place, [] { FAIL(); });
    killed.kill();
    EXPECT_EQ(killed.sync().reason, ExitReason::killed);
    EXPECT_EQ(create(place, [] { throw std::runtime_error("by chance"); }).sync().reason,
              ExitReason::failed);
    EXPECT_EQ(create(place, [] { break_family(7); }).sync().value, 7);
    auto outer = create([&] {
      auto left = create(place, [] { FAIL(); });
      throw std::runtime_error("by chance");
    });
    EXPECT_EQ(outer.sync().reason, ExitReason::failed);
    EXPECT_TRUE(place.exclusive.is_biased());
    place.pass();
  });
}

// The fence is the kernel's, once where the place is empty.
TEST_F(Bias, IsTakenAwayByAFenceInAllThreads) {
  LookedAt place;
  inside(1, [&] {
    ASSERT_TRUE(place.bias());
    int fences = 0;
    const host::testing::Answering answering([&](const host::testing::Call& call) {
      if (call.number != SYS_membarrier) return host::testing::pass(call);
      EXPECT_FALSE(place.exclusive.is_biased()) << "the turn is in the queue before it";
      ++fences;
      return host::testing::pass(call);
    });
    QueuedTurn turn;
    EXPECT_TRUE(place.exclusive.enter(turn, nullptr));
    EXPECT_EQ(fences, 1);
    place.exclusive.end_own(turn, *Worker::here());
    EXPECT_EQ(fences, 1);
  });
}

// The worker has stored its turn, and sees afterwards that another thread has come, which has seen
// the turn: the other one's family goes to the workers of its own choice at once.
TEST_F(Bias, HandsTheTurnOnThatHasSeenALateOne) {
  LookedAt place;
  LocalPlace two(1);
  inside(1, [&] {
    ASSERT_TRUE(place.bias());
    Worker& worker = *Worker::here();
    const LateEnter late(place.exclusive, worker);
    bool ran = false;
    Worker* ran_by = nullptr;
    std::atomic<bool> entered{false};
    std::thread other([&] {
      auto family = create(two, [&] {
        auto second = create(place, [&] {
          ran = true;
          ran_by = Worker::here();
        });
        entered = true;
        EXPECT_TRUE(second.sync().done());
      });
      EXPECT_TRUE(family.sync().done());
    });
    while (!entered) std::this_thread::yield();
    EXPECT_FALSE(late.enter());
    other.join();  // while this thread keeps its worker
    EXPECT_TRUE(ran);
    EXPECT_NE(ran_by, &worker);
    EXPECT_TRUE(create(place, [] {}).sync().done());
  });
}

// A stress for the thread sanitizer: the steps meet by luck, and the explorer has them all.
TEST_F(Bias, IsTakenAwayAtAnyTime) {
  inside(2, [&] {
    constexpr int rounds = 100;
    for (int round = 0; round < rounds; ++round) {
      const auto place = std::make_unique<LookedAt>();
      long count = 0;  // not atomic
      ASSERT_TRUE(place->bias());
      std::atomic<bool> begun{false};
      const auto add = [&] {
        begun = true;
        for (int i = 0; i < 20; ++i) EXPECT_TRUE(create(*place, [&] { ++count; }).sync().done());
      };
      auto other = create([&] { add(); });
      while (!begun && !other.state.load()) checkpoint();
      add();
      EXPECT_TRUE(other.sync().done());
      ASSERT_EQ(count, 40) << "round " << round;
    }
  });
}

TEST_F(Bias, IsNotUsedUpWhereAnotherTurnComesFirst) {
  LookedAt place;
  inside(1, [&] {
    for (unsigned n = 0; n <= Exclusive::most_biases; ++n) {
      EXPECT_EQ(place.passes_before_bias(Exclusive::first_row - 1), Exclusive::first_row - 1);
      if (n == 0) place.pass();  // begins the row
      auto first = create(place, [] {});
      auto second = create(place, [] {});
      first.sync();
      second.sync();
      EXPECT_FALSE(place.exclusive.is_biased());
    }
    EXPECT_TRUE(place.bias());
  });
}

using BiasDeathTest = Bias;

// In a program that has not asked the kernel yet.
TEST(NoBiasDeathTest, IsThereWhereTheKernelRefusesFences) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(
      {
        const host::testing::Answering answering([](const host::testing::Call& call) {
          return call.number == SYS_membarrier ? host::testing::refuse(ENOSYS)
                                               : host::testing::pass(call);
        });
        LookedAt place;
        LocalPlace worker(1);
        constexpr unsigned most = 2 * Exclusive::first_row;
        bool never = false;
        create(worker, [&] { never = place.passes_before_bias(most) == most; }).sync();
        std::_Exit(never ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_F(BiasDeathTest, APlaceEndsAfterTheFamilyInside) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_DEATH(inside(1,
                      [] {
                        auto place = std::make_unique<LookedAt>();
                        EXPECT_TRUE(place->bias());
                        auto family = create(*place, [] {});
                        place.reset();
                      }),
               "an exclusive place ends before its families are synced");
}

TEST_F(BiasDeathTest, AFamilyWithinItselfCouldNotEnd) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_DEATH(inside(1,
                      [] {
                        LookedAt place;
                        EXPECT_TRUE(place.bias());
                        create(place, [&] { create(place, [] {}).sync(); }).sync();
                      }),
               "create at an exclusive place, from within a family of that place");
}

}  // namespace
}  // namespace tombolo::svp
