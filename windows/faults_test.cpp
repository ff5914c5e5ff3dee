// SPDX-License-Identifier: Apache-2.0
// A fault of the idle hook ends every call that waits, and the window stays usable where it can.
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "windows/testing/process_on.h"

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
template <class C>
class FaultsTest : public ::testing::Test {
 protected:
  void make(const EngineOptions& options = {}) {
    death_.over = false;
    processes_.emplace(shape_of<C>({.processes = 2, .options = options}, {}, death_));
  }
  Process& alive() { return processes_->core(0); }
  Process& dead() { return processes_->core(1); }
  void revive() { death_.over = true; }

  static void expect_fault(const Status& status, const char* call) {
    EXPECT_EQ(status.code(), Code::process_failed) << call;
    EXPECT_EQ(status.rank(), 1) << call;
  }

 private:
  Death death_;
  std::optional<Processes<C>> processes_;
};
TYPED_TEST_SUITE(FaultsTest, MachinesOfThreads, MachineNames);

const std::vector<Home> only_0 = {0};
const std::vector<Home> only_1 = {1};

TYPED_TEST(FaultsTest, EndTheFence) {
  this->make();
  this->expect_fault(this->alive().window().fence({}), "fence");
}

TYPED_TEST(FaultsTest, EndTheBarrier) {
  this->make();
  this->expect_fault(this->alive().window().barrier(), "barrier");
}

TYPED_TEST(FaultsTest, EndCommunicationWithATargetThatHasNotPosted) {
  this->make();
  Process& p = this->alive();
  p.start(only_1);
  int a = 3;
  int b = 4;
  Engine& w = p.window();
  this->expect_fault(w.put(1, 0, &a, 4), "put");
  this->expect_fault(w.get(1, 0, &a, 4), "get");
  this->expect_fault(w.accumulate(1, 0, Op::sum, Element::i32, &a, 1), "accumulate");
  this->expect_fault(w.get_accumulate(1, 0, Op::sum, Element::i32, &a, &b, 1), "get_accumulate");
  this->expect_fault(w.compare_and_swap(1, 0, Element::i32, &a, &a, &b), "compare_and_swap");
  this->expect_fault(w.complete(), "complete");
  EXPECT_EQ(b, 4);

  this->revive();
  this->dead().post(only_0);
  p.put(1, 0, a);
  p.complete();
  this->dead().wait();
  EXPECT_EQ(this->dead().load(0), 3);
}

TYPED_TEST(FaultsTest, EndTheWait) {
  this->make();
  this->alive().post(only_1);
  this->expect_fault(this->alive().window().wait(), "wait");

  this->revive();
  this->dead().start(only_0);
  this->dead().put(0, 0, 7);
  this->dead().complete();
  this->alive().wait();
  EXPECT_EQ(this->alive().load(0), 7);
}

TYPED_TEST(FaultsTest, EndLocksThatTheDeadHold) {
  for (const LockKind kind : every_lock_kind) {
    for (const Access access : {Access::shared, Access::exclusive}) {
      this->make({.locks = kind});
      this->dead().lock_exclusive(0);
      this->expect_fault(this->alive().window().lock(access, 0, {}), "lock");
      EXPECT_EQ(this->alive().window().unlock(0).code(), Code::epoch);
      EXPECT_TRUE(this->alive().window().closable().ok());
    }
    this->make({.locks = kind});
    this->dead().lock_exclusive(1);
    this->expect_fault(this->alive().window().lock_all({}), "lock_all");
    EXPECT_EQ(this->alive().window().unlock_all().code(), Code::epoch);
    this->make({.locks = kind});
    this->dead().lock_all();
    this->expect_fault(this->alive().window().lock(Access::exclusive, 0, {}), "lock");
    EXPECT_EQ(this->alive().window().unlock(0).code(), Code::epoch);
  }
}

TYPED_TEST(FaultsTest, LeaveBestEffortLocksUsable) {
  this->make({.locks = sync::kind_of<sync::BestEffortFamily>});
  this->dead().lock_exclusive(0);
  this->expect_fault(this->alive().window().lock(Access::exclusive, 0, {}), "lock");
  this->expect_fault(this->alive().window().lock_all({}), "lock_all");
  this->revive();
  this->dead().put(0, 0, 9);
  this->dead().unlock(0);
  this->alive().lock_exclusive(0);
  EXPECT_EQ(this->alive().load(0), 9);
  this->alive().unlock(0);
  this->alive().lock_all();
  this->alive().unlock_all();
  this->dead().lock_exclusive(0);
  this->dead().unlock(0);
}

TYPED_TEST(FaultsTest, EndAnAccumulateWhoseMutexTheDeadHold) {
  this->make();
  machine::SyncLayout sync(TypeParam::reserved_sync_bytes(2));
  const auto layout = AtomicUpdates<TypeParam>::take(sync);
  auto& core = static_cast<ProcessOn<TypeParam>&>(this->alive()).core();
  for (std::size_t i = 0; i < AtomicUpdates<TypeParam>::mutex_count; ++i)
    core.store(core.word({1, layout.mutexes + i * 64}), 2);
  const OwnCopies<TypeParam> own(core, OwnCopies<TypeParam>::take(sync), false, false);
  AtomicUpdates<TypeParam> updates(core, layout, own, 0, true);
  const int one = 1;
  int before = 7;
  this->expect_fault(updates.update({1, 0}, Op::sum, Element::i32, &one, &before, 1), "update");
  this->expect_fault(updates.compare_and_swap({1, 0}, Element::i32, &one, &one, &before),
                     "compare_and_swap");
  EXPECT_EQ(before, 7);
}

}  // namespace
}  // namespace tombolo::windows::testing
