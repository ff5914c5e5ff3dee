// SPDX-License-Identifier: Apache-2.0
// Calls outside the epoch that they need: each is refused with Code::epoch and changes nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "windows/testing/processes.h"

namespace tombolo::windows::testing {
namespace {

class EpochsTest : public OnEachMachine {};
INSTANTIATE_TEST_SUITE_P(On, EpochsTest, ::testing::ValuesIn(test_machines()), name_of_machine);

void expect_refused(const Status& status, const char* call) {
  EXPECT_EQ(status.code(), Code::epoch) << call;
  EXPECT_FALSE(status.message().empty()) << call;
}

void expect_no_communication(Process& p, Home target) {
  Engine& w = p.window();
  int in = 1;
  int out = 5;
  expect_refused(w.put(target, 0, &in, 4), "put");
  expect_refused(w.get(target, 0, &out, 4), "get");
  expect_refused(w.accumulate(target, 0, Op::sum, Element::i32, &in, 1), "accumulate");
  expect_refused(w.get_accumulate(target, 0, Op::sum, Element::i32, &in, &out, 1),
                 "get_accumulate");
  expect_refused(w.compare_and_swap(target, 0, Element::i32, &in, &in, &out), "compare_and_swap");
  EXPECT_EQ(out, 5);
}

void expect_no_flush(Process& p) {
  expect_refused(p.window().flush(0), "flush");
  expect_refused(p.window().flush_all(), "flush_all");
  expect_refused(p.window().flush_local(0), "flush_local");
  expect_refused(p.window().flush_local_all(), "flush_local_all");
}

void expect_no_end_of_access(Process& p) {
  expect_refused(p.window().complete(), "complete");
  expect_refused(p.window().unlock(0), "unlock");
  expect_refused(p.window().unlock_all(), "unlock_all");
}

void expect_no_other_access(Process& p) {
  const std::vector<Home> group = {0};
  expect_refused(p.window().fence({}), "fence");
  expect_refused(p.window().start(group, {}), "start");
  expect_refused(p.window().lock_all({}), "lock_all");
}

// One of each kind of epoch works.
void expect_usable(Process& p) {
  p.fence();
  p.put(0, 0, 1);
  p.fence({.no_succeed = true});
  p.post({0});
  p.start({0});
  p.put(0, 4, 2);
  p.complete();
  p.wait();
  p.lock_exclusive(0);
  p.put(0, 8, 3);
  p.flush(0);
  p.unlock(0);
  p.lock_all();
  p.put(0, 12, 4);
  p.flush_all();
  p.unlock_all();
  p.sync();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(p.load(static_cast<Offset>(4 * i)), i + 1);
  EXPECT_TRUE(p.window().closable().ok());
}

// Alone, all groups being the process itself.
void run_alone(const TestMachine& machine, const Program& program) {
  run(machine, {.processes = 1}, [&](Process& p) {
    program(p);
    EXPECT_TRUE(p.window().closable().ok());
    p.fence();
    expect_usable(p);
  });
}

TEST_P(EpochsTest, RefusesCommunicationWithoutEpoch) {
  run_alone(GetParam(), [](Process& p) { expect_no_communication(p, 0); });
}

TEST_P(EpochsTest, RefusesTheEndOfEpochsThatAreNotOpen) {
  run_alone(GetParam(), [](Process& p) {
    bool done = true;
    expect_no_end_of_access(p);
    expect_refused(p.window().wait(), "wait");
    expect_refused(p.window().test(done), "test");
    EXPECT_TRUE(done);
    expect_no_flush(p);
  });
}

TEST_P(EpochsTest, RefusesCommunicationAfterTheEnd) {
  run_alone(GetParam(), [](Process& p) {
    p.lock_shared(0);
    p.unlock(0);
    expect_no_communication(p, 0);
    p.lock_all();
    p.unlock_all();
    expect_no_communication(p, 0);
    p.post({0});
    p.start({0});
    p.complete();
    p.wait();
    expect_no_communication(p, 0);
    p.fence({.no_succeed = true});
    expect_no_communication(p, 0);
  });
}

TEST_P(EpochsTest, RefusesOtherEpochsInsideAStart) {
  run_alone(GetParam(), [](Process& p) {
    p.post({0});
    p.start({0});
    expect_no_other_access(p);
    expect_refused(p.window().lock(Access::shared, 0, {}), "lock");
    expect_refused(p.window().unlock(0), "unlock");
    expect_refused(p.window().unlock_all(), "unlock_all");
    expect_no_flush(p);
    expect_refused(p.window().closable(), "closable");
    p.put(0, 100, 1);
    p.complete();
    p.wait();
    EXPECT_EQ(p.load(100), 1);
  });
}

TEST_P(EpochsTest, RefusesOtherEpochsInsideALock) {
  run_alone(GetParam(), [](Process& p) {
    p.lock_exclusive(0);
    expect_no_other_access(p);
    expect_refused(p.window().lock(Access::shared, 0, {}), "lock of a locked target");
    expect_refused(p.window().complete(), "complete");
    expect_refused(p.window().unlock_all(), "unlock_all");
    expect_refused(p.window().closable(), "closable");
    p.put(0, 100, 1);
    p.unlock(0);
  });
}

TEST_P(EpochsTest, RefusesOtherEpochsInsideALockAll) {
  run_alone(GetParam(), [](Process& p) {
    p.lock_all();
    expect_no_other_access(p);
    expect_refused(p.window().lock(Access::shared, 0, {}), "lock");
    expect_refused(p.window().complete(), "complete");
    expect_refused(p.window().unlock(0), "unlock");
    expect_refused(p.window().closable(), "closable");
    p.put(0, 100, 1);
    p.unlock_all();
  });
}

TEST_P(EpochsTest, RefusesOtherEpochsInsideAFenceEpochThatIsUsed) {
  run_alone(GetParam(), [](Process& p) {
    const std::vector<Home> group = {0};
    p.fence();
    p.put(0, 100, 1);
    expect_refused(p.window().start(group, {}), "start");
    expect_refused(p.window().lock(Access::shared, 0, {}), "lock");
    expect_refused(p.window().lock_all({}), "lock_all");
    expect_refused(p.window().post(group, {}), "post");
    expect_no_end_of_access(p);
    expect_no_flush(p);
    p.put(0, 104, 1);
    p.fence();
    EXPECT_EQ(p.load(104), 1);
  });
}

TEST_P(EpochsTest, AllowsSyncInPassiveTargetEpochsOnly) {
  run_alone(GetParam(), [](Process& p) {
    Engine& w = p.window();
    expect_refused(w.may_sync(), "sync without epoch");
    p.fence();
    expect_refused(w.may_sync(), "sync after a fence");
    p.put(0, 100, 1);
    expect_refused(w.may_sync(), "sync inside a fence epoch");
    p.fence({.no_succeed = true});
    p.post({0});
    expect_refused(w.may_sync(), "sync inside an exposure epoch");
    p.start({0});
    expect_refused(w.may_sync(), "sync inside a start");
    p.complete();
    p.wait();
    p.lock_shared(0);
    EXPECT_TRUE(w.may_sync().ok()) << "inside a lock";
    p.unlock(0);
    expect_refused(w.may_sync(), "sync after a lock");
    p.lock_all();
    EXPECT_TRUE(w.may_sync().ok()) << "inside a lock_all";
    p.unlock_all();
    expect_refused(w.may_sync(), "sync after a lock_all");
  });
}

TEST_P(EpochsTest, AFenceThatNobodyUsedIsInNobodysWay) {
  run_alone(GetParam(), [](Process& p) {
    p.fence();
    p.lock_shared(0);
    p.unlock(0);
    p.fence();
    p.lock_all();
    p.unlock_all();
    p.fence();
    p.post({0});
    p.start({0});
    p.complete();
    p.wait();
  });
}

TEST_P(EpochsTest, RefusesASecondExposureAndAFenceInsideOne) {
  run_alone(GetParam(), [](Process& p) {
    const std::vector<Home> group = {0};
    p.post({0});
    expect_refused(p.window().post(group, {}), "post");
    expect_refused(p.window().fence({}), "fence");
    expect_refused(p.window().closable(), "closable");
    p.start({0});
    p.complete();
    EXPECT_TRUE(p.test());
    expect_refused(p.window().wait(), "wait after a test that was true");
  });
}

TEST_P(EpochsTest, RefusesTargetsThatTheEpochLeavesOut) {
  run(GetParam(), {.processes = 2}, [](Process& p) {
    const Home peer = p.right();
    p.post({p.self()});
    p.start({p.self()});
    expect_no_communication(p, peer);
    p.complete();
    p.wait();
    p.lock_shared(p.self());
    expect_no_communication(p, peer);
    expect_refused(p.window().unlock(peer), "unlock");
    expect_refused(p.window().flush(peer), "flush");
    expect_refused(p.window().flush_local(peer), "flush_local");
    p.lock_shared(peer);
    p.flush(peer);
    p.unlock(peer);
    expect_no_communication(p, peer);
    p.put(p.self(), 0, 1);
    p.unlock(p.self());
  });
}

TEST_P(EpochsTest, LocksOfSeveralTargetsEndInAnyOrder) {
  run_with_each_lock(GetParam(), {.processes = 4}, [](Process& p) {
    if (p.self() != 0) return;
    std::vector<Home> order = {0, 1, 2, 3};
    do {
      // Each of its own kind: taken for another's, one would stay locked or be unlocked twice.
      p.lock_shared(0);
      p.lock_exclusive(1);
      p.lock(sync::Access::shared, 2, {.no_check = true});
      p.lock_shared(3);
      std::set<Home> held(order.begin(), order.end());
      for (const Home ended : order) {
        p.unlock(ended);
        held.erase(ended);
        expect_no_communication(p, ended);
        expect_refused(p.window().unlock(ended), "unlock");
        for (const Home target : held) {
          p.put(target, 0, 1);
          p.flush(target);
          expect_refused(p.window().lock(sync::Access::shared, target, {}), "lock");
        }
      }
      EXPECT_TRUE(p.window().closable().ok());
      for (const Home target : order) {
        p.lock_exclusive(target);
        p.unlock(target);
      }
    } while (std::next_permutation(order.begin(), order.end()));
  });
}

TEST_P(EpochsTest, ALockThatHasEndedIsForgotten) {
  run(GetParam(), {.processes = 2}, [](Process& p) {
    p.lock_shared(0);
    p.unlock(0);
    p.lock_shared(1);
    expect_no_communication(p, 0);
    expect_refused(p.window().flush(0), "flush");
    expect_refused(p.window().unlock(0), "unlock");
    p.unlock(1);
    p.post({0, 1});
    p.start({p.right()});
    expect_no_communication(p, p.self());
    p.complete();
    p.start({p.self()});
    p.complete();
    p.wait();
  });
}

TEST_P(EpochsTest, TransfersOfNothingNeedAnEpochAndChangeNothing) {
  run(GetParam(), {.processes = 2, .bytes = 256}, [](Process& p) {
    Engine& w = p.window();
    expect_refused(w.put(1, 0, nullptr, 0), "put");
    p.lock_all();
    for (const Offset at : {std::uint64_t{0}, std::uint64_t{7}, std::uint64_t{256}}) {
      for (const Home target : {0u, 1u}) {
        p.put_bytes(target, at, nullptr, 0);
        p.get_bytes(target, at, nullptr, 0);
        p.accumulate(target, at, Op::sum, Element::f64, nullptr, 0);
        p.get_accumulate(target, at, Op::no_op, Element::f64, nullptr, nullptr, 0);
      }
    }
    p.unlock_all();
  });
}

TEST_P(EpochsTest, WindowsOfNoBytesSynchronize) {
  run(GetParam(), {.processes = 2, .bytes = 0}, [](Process& p) {
    p.fence();
    p.put_bytes(p.right(), 0, nullptr, 0);
    p.fence({.no_succeed = true});
    p.post({p.right()});
    p.start({p.right()});
    p.complete();
    p.wait();
    p.lock_exclusive(0);
    p.unlock(0);
    p.lock_all();
    p.get_bytes(p.right(), 0, nullptr, 0);
    p.flush_all();
    p.unlock_all();
    p.sync();
  });
}

}  // namespace
}  // namespace tombolo::windows::testing
