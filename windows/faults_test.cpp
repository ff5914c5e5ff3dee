// SPDX-License-Identifier: Apache-2.0
// A fault of the idle hook ends every call that waits, and the window stays usable where it can.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "windows/atomic_updates.h"
#include "windows/own_copies.h"
#include "windows/testing/processes.h"

namespace tombolo::windows::testing {
namespace {

// Reports that process 1 has died, from the first wait on.
class Death final : public machine::IdleHook {
 public:
  bool over = false;
  Status idle() override {
    return over ? Status{} : Status::process_failed(1, "process 1 has died");
  }
};

// Two processes, both driven by the thread of the test. Process 1 never does anything by itself.
void expect_fault(const Status& status, const char* call) {
  EXPECT_EQ(status.code(), Code::process_failed) << call;
  EXPECT_EQ(status.rank(), 1) << call;
}

// Two processes, both driven by the thread of the test. Process 1 never does anything by itself.
class FaultsTest : public OnEachMachine {
 protected:
  void make(const EngineOptions& options = {}) {
    death_.over = false;
    processes_ = make_processes(GetParam(), {.processes = 2, .options = options}, {}, death_);
  }
  Process& alive() { return processes_->process(0); }
  Process& dead() { return processes_->process(1); }
  void revive() { death_.over = true; }

 private:
  Death death_;
  std::unique_ptr<ProcessGroup> processes_;
};
INSTANTIATE_TEST_SUITE_P(On, FaultsTest, ::testing::ValuesIn(test_machines_of_threads()),
                         name_of_machine);

const std::vector<Home> only_0 = {0};
const std::vector<Home> only_1 = {1};

TEST_P(FaultsTest, EndTheFence) {
  make();
  expect_fault(alive().window().fence({}), "fence");
}

TEST_P(FaultsTest, EndTheBarrier) {
  make();
  expect_fault(alive().window().barrier(), "barrier");
}

TEST_P(FaultsTest, EndCommunicationWithATargetThatHasNotPosted) {
  make();
  Process& p = alive();
  p.start(only_1);
  int a = 3;
  int b = 4;
  Engine& w = p.window();
  expect_fault(w.put(1, 0, &a, 4), "put");
  expect_fault(w.get(1, 0, &a, 4), "get");
  expect_fault(w.accumulate(1, 0, Op::sum, Element::i32, &a, 1), "accumulate");
  expect_fault(w.get_accumulate(1, 0, Op::sum, Element::i32, &a, &b, 1), "get_accumulate");
  expect_fault(w.compare_and_swap(1, 0, Element::i32, &a, &a, &b), "compare_and_swap");
  expect_fault(w.complete(), "complete");
  EXPECT_EQ(b, 4);

  revive();
  dead().post(only_0);
  p.put(1, 0, a);
  p.complete();
  dead().wait();
  EXPECT_EQ(dead().load(0), 3);
}

TEST_P(FaultsTest, EndTheWait) {
  make();
  alive().post(only_1);
  expect_fault(alive().window().wait(), "wait");

  revive();
  dead().start(only_0);
  dead().put(0, 0, 7);
  dead().complete();
  alive().wait();
  EXPECT_EQ(alive().load(0), 7);
}

TEST_P(FaultsTest, EndLocksThatTheDeadHold) {
  for (const LockKind kind : every_lock_kind) {
    for (const Access access : {Access::shared, Access::exclusive}) {
      make({.locks = kind});
      dead().lock_exclusive(0);
      expect_fault(alive().window().lock(access, 0, {}), "lock");
      EXPECT_EQ(alive().window().unlock(0).code(), Code::epoch);
      EXPECT_TRUE(alive().window().closable().ok());
    }
    make({.locks = kind});
    dead().lock_exclusive(1);
    expect_fault(alive().window().lock_all({}), "lock_all");
    EXPECT_EQ(alive().window().unlock_all().code(), Code::epoch);
    make({.locks = kind});
    dead().lock_all();
    expect_fault(alive().window().lock(Access::exclusive, 0, {}), "lock");
    EXPECT_EQ(alive().window().unlock(0).code(), Code::epoch);
  }
}

TEST_P(FaultsTest, LeaveBestEffortLocksUsable) {
  make({.locks = sync::kind_of<sync::BestEffortFamily>});
  dead().lock_exclusive(0);
  expect_fault(alive().window().lock(Access::exclusive, 0, {}), "lock");
  expect_fault(alive().window().lock_all({}), "lock_all");
  revive();
  dead().put(0, 0, 9);
  dead().unlock(0);
  alive().lock_exclusive(0);
  EXPECT_EQ(alive().load(0), 9);
  alive().unlock(0);
  alive().lock_all();
  alive().unlock_all();
  dead().lock_exclusive(0);
  dead().unlock(0);
}

template <class C>
class UpdateFaultsTest : public ::testing::Test {};
TYPED_TEST_SUITE(UpdateFaultsTest, MachinesOfThreads, MachineNames);

TYPED_TEST(UpdateFaultsTest, EndAnAccumulateWhoseMutexTheDeadHold) {
  Death death;
  machine::SyncLayout sync(TypeParam::reserved_sync_bytes(2));
  const auto layout = AtomicUpdates<TypeParam>::take(sync);
  const auto own_layout = OwnCopies<TypeParam>::take(sync);
  machine::testing::Ensemble<TypeParam> cores({.sync_bytes = sync.bytes(), .idle = &death});
  auto& core = cores.core(0);
  for (std::size_t i = 0; i < AtomicUpdates<TypeParam>::mutex_count; ++i)
    core.store(core.word({1, layout.mutexes + i * 64}), 2);
  const OwnCopies<TypeParam> own(core, own_layout, false, false);
  AtomicUpdates<TypeParam> updates(core, layout, own, 0, true);
  const int one = 1;
  int before = 7;
  expect_fault(updates.update({1, 0}, Op::sum, Element::i32, &one, &before, 1), "update");
  expect_fault(updates.compare_and_swap({1, 0}, Element::i32, &one, &one, &before),
               "compare_and_swap");
  EXPECT_EQ(before, 7);
}

}  // namespace
}  // namespace tombolo::windows::testing
