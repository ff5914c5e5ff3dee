// SPDX-License-Identifier: Apache-2.0
// Promises of the caller (Assertions): correct ones change nothing. On a machine that loses
// unpublished data, wrong ones show that the work was left out.
#include <gtest/gtest.h>

#include "windows/testing/processes.h"

namespace tombolo::windows::testing {
namespace {

class AssertionsTest : public OnEachMachine {};
INSTANTIATE_TEST_SUITE_P(On, AssertionsTest, ::testing::ValuesIn(test_machines()), name_of_machine);

TEST_P(AssertionsTest, CorrectPromisesOfFencesChangeNothing) {
  run(GetParam(), {.processes = 2}, [](Process& p) {
    p.fence({.no_precede = true});
    for (int round = 1; round <= 10; ++round) {
      // Only 0 puts, only 1 is put to, neither stores.
      if (p.self() == 0) p.put(1, 0, round);
      p.fence({.no_store = true, .no_put = true});
      // Neither puts; both got before.
      EXPECT_EQ(p.get(1, 0), round);
      p.fence({.no_store = true, .no_put = true, .no_precede = true, .no_succeed = true});
      if (p.self() == 1) {
        EXPECT_EQ(p.load(0), round);
        p.store(64, round);
      }
      p.fence({.no_put = p.self() == 0, .no_precede = true});
      EXPECT_EQ(p.get(1, 64), round);
    }
    p.fence({.no_succeed = true});
  });
}

TEST_P(AssertionsTest, ThePromiseOfNoPutEndsWithTheNextFence) {
  run(GetParam(), {.processes = 2}, [](Process& p) {
    for (int round = 1; round <= 10; ++round) {
      p.fence({.no_put = true});
      p.fence();
      p.put(p.right(), 0, round);
      p.fence({.no_put = true});
      EXPECT_EQ(p.load(0), round);
    }
  });
}

TEST_P(AssertionsTest, CorrectPromisesOfPostAndStartChangeNothing) {
  run(GetParam(), {.processes = 2}, [](Process& p) {
    for (int round = 1; round <= 10; ++round) {
      if (p.self() == 0) {
        p.post({1}, {.no_check = true, .no_store = true});
        p.barrier();
        p.wait();
        EXPECT_EQ(p.load(8), round);
        p.store(12, round);
        p.post({1}, {.no_check = true, .no_put = true});
        p.barrier();
        p.wait();
        EXPECT_EQ(p.load(12), round);
      } else {
        p.barrier();
        p.start({0}, {.no_check = true});
        p.put(0, 8, round);
        p.complete();
        p.barrier();
        p.start({0}, {.no_check = true});
        EXPECT_EQ(p.get(0, 12), round);
        p.complete();
      }
    }
  });
}

TEST_P(AssertionsTest, ThePromiseOfNoPutEndsWithTheWait) {
  run(GetParam(), {.processes = 2}, [](Process& p) {
    for (int round = 1; round <= 10; ++round) {
      for (const bool puts : {false, true}) {
        if (p.self() == 0) {
          p.post({1}, {.no_put = !puts});
          p.wait();
          EXPECT_EQ(p.load(8), puts ? round : round - 1);
        } else {
          p.start({0});
          if (puts) p.put(0, 8, round);
          p.complete();
        }
      }
    }
  });
}

TEST_P(AssertionsTest, ThePromiseOfNoPutSaysNothingOfEarlierPuts) {
  run(GetParam(), {.processes = 2}, [](Process& p) {
    for (int round = 1; round <= 10; ++round) {
      if (p.self() == 1) {
        p.lock(Access::exclusive, 0);
        p.put(0, 8, round);
        p.unlock(0);
      }
      p.barrier();
      if (p.self() == 0) {
        p.post({1}, {.no_put = true});
        p.wait();
        EXPECT_EQ(p.load(8), round);
      } else {
        p.start({0});
        p.complete();
      }
      p.barrier();
    }
  });
}

TEST_P(AssertionsTest, LocksThatNeedNoCheckKeepTheDataInStep) {
  run(GetParam(), {.processes = 2}, [](Process& p) {
    const Assertions unchecked{.no_check = true};
    for (int round = 1; round <= 10; ++round) {
      // One after the other.
      if (p.self() == 0) {
        p.lock(Access::exclusive, 1, unchecked);
        p.put(1, 0, round);
        p.unlock(1);
      }
      p.barrier();
      if (p.self() == 1) {
        p.lock_all(unchecked);
        EXPECT_EQ(p.load(0), round);
        p.store(4, round);
        p.unlock_all();
      }
      p.barrier();
      if (p.self() == 0) {
        p.lock_all(unchecked);
        EXPECT_EQ(p.get(1, 4), round);
        p.unlock_all();
      }
      p.barrier();
    }
  });
}

TEST_P(AssertionsTest, AFenceThatStartsNothingOpensNoEpoch) {
  run(GetParam(), {.processes = 2}, [](Process& p) {
    int value = 1;
    p.fence({.no_succeed = true});
    EXPECT_EQ(p.window().put(0, 0, &value, 4).code(), Code::epoch);
    p.fence();
    p.put(p.right(), 0, value);
    p.fence({.no_succeed = true});
    EXPECT_EQ(p.load(0), 1);
  });
}

// MUST APPEAR: each of these programs breaks its promise and sees old bytes. Without evictions, or
// they might bring the new ones.

template <class C>
class WrongPromiseTest : public ::testing::Test {};
TYPED_TEST_SUITE(WrongPromiseTest, MachinesThatLose, MachineNames);

const World wrong{.processes = 2, .may_lose = true};

// The machine tells one fact: this process has broken a promise of its own.
template <class C>
void expect_broken(Process& p, machine::Loss loss, std::uint64_t bytes, machine::Home putter) {
  if constexpr (tells_losses<C>) {
    const auto losses = p.window().take_losses();
    ASSERT_EQ(losses.size(), 1u);
    EXPECT_EQ(losses[0].loss, loss);
    EXPECT_EQ(losses[0].bytes, bytes);
    EXPECT_EQ(losses[0].home, p.self());
    EXPECT_EQ(losses[0].culprit.rank, p.self());
    EXPECT_EQ(losses[0].victim.rank, putter);
  }
}

TYPED_TEST(WrongPromiseTest, PostWithNoStorePublishesNothing) {
  run_once<TypeParam>(wrong, {}, [](Process& p) {
    if (p.self() == 0) {
      p.store(0, 1);
      p.post({1}, {.no_store = true});
      expect_broken<TypeParam>(p, machine::Loss::broken_no_store, 1, machine::Writer::nobody);
      p.wait();
    } else {
      p.start({0});
      EXPECT_EQ(p.get(0, 0), 0);
      p.complete();
    }
  });
}

TYPED_TEST(WrongPromiseTest, FenceWithNoStorePublishesNothing) {
  run_once<TypeParam>(wrong, {}, [](Process& p) {
    p.fence({.no_put = true});
    if (p.self() == 0) p.store(0, 1);
    p.fence({.no_store = true, .no_put = true});
    if (p.self() == 0)
      expect_broken<TypeParam>(p, machine::Loss::broken_no_store, 1, machine::Writer::nobody);
    if (p.self() == 1) {
      EXPECT_EQ(p.get(0, 0), 0);
    }
    p.fence({.no_store = true, .no_put = true});
  });
}

TYPED_TEST(WrongPromiseTest, PostWithNoPutRefreshesNothingAtTheWait) {
  run_once<TypeParam>(wrong, {}, [](Process& p) {
    if (p.self() == 0) {
      p.post({1}, {.no_put = true});
      p.wait();
      EXPECT_EQ(p.load(0), 0);
      expect_broken<TypeParam>(p, machine::Loss::broken_no_put, 1, 1);
      p.sync();
      EXPECT_EQ(p.load(0), 1);
    } else {
      p.start({0});
      p.put(0, 0, 1);
      p.complete();
    }
  });
}

TYPED_TEST(WrongPromiseTest, FenceWithNoPutRefreshesNothingAtTheNextFence) {
  run_once<TypeParam>(wrong, {}, [](Process& p) {
    p.fence({.no_put = true});
    p.barrier();  // that fence may refresh
    if (p.self() == 0) p.put(1, 0, 1);
    p.fence();
    if (p.self() == 1) {
      EXPECT_EQ(p.load(0), 0);
      expect_broken<TypeParam>(p, machine::Loss::broken_no_put, 1, 0);
    }
    p.fence();
    if (p.self() == 1) {
      EXPECT_EQ(p.load(0), 1);
    }
  });
}

// A peer that is ahead puts for the next epoch before the owner has looked.
TYPED_TEST(WrongPromiseTest, APutAfterTheFenceBreaksNoPromise) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed)
    run_once<TypeParam>({.processes = 3}, {.seed = seed, .evictions = 3}, [](Process& p) {
      for (int round = 0; round < 20; ++round) {
        p.fence({.no_put = true});
        p.fence({.no_succeed = round % 2 == 0});
        if (round % 2 == 0) p.lock_shared(p.right());
        p.put(p.right(), 0, round);
        if (round % 2 == 0) p.unlock(p.right());
        p.fence();
      }
    });
}

// MUST APPEAR without any promise: unsynchronized data is old.

TYPED_TEST(WrongPromiseTest, APutWithoutFlushIsNotInMemory) {
  run_once<TypeParam>(wrong, {}, [](Process& p) {
    p.lock_all();
    if (p.self() == 0) p.put(1, 0, 1);
    p.barrier();
    if (p.self() == 1) {
      EXPECT_EQ(p.get(1, 0), 0);
    }
    p.barrier();
    p.unlock_all();
  });
}

TYPED_TEST(WrongPromiseTest, FlushLocalBringsNothingToMemory) {
  run_once<TypeParam>(wrong, {}, [](Process& p) {
    p.lock_all();
    if (p.self() == 0) {
      p.put(1, 0, 1);
      p.flush_local(1);
      p.flush_local_all();
    }
    p.barrier();
    if (p.self() == 1) {
      EXPECT_EQ(p.get(1, 0), 0);
    }
    p.barrier();
    p.unlock_all();
  });
}

TYPED_TEST(WrongPromiseTest, AFlushedPutIsNotInThePlainLoadsOfTheTargetBeforeItsSync) {
  run_once<TypeParam>(wrong, {}, [](Process& p) {
    p.lock_all();
    p.barrier();
    if (p.self() == 0) {
      p.put(1, 0, 1);
      p.flush(1);
    }
    p.barrier();
    if (p.self() == 1) {
      EXPECT_EQ(p.load(0), 0);
    }
    p.unlock_all();
  });
}

TYPED_TEST(WrongPromiseTest, APlainStoreIsNotInTheGetsOfOthersBeforeASync) {
  run_once<TypeParam>(wrong, {}, [](Process& p) {
    p.lock_all();
    if (p.self() == 0) p.store(0, 1);
    p.barrier();
    if (p.self() == 1) {
      EXPECT_EQ(p.get(0, 0), 0);
    }
    p.barrier();
    p.unlock_all();
  });
}

}  // namespace
}  // namespace tombolo::windows::testing
