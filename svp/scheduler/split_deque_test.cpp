// SPDX-License-Identifier: Apache-2.0
// Purpose: tests the deque and the handover of tasks on every machine: each entry goes to one core,
// and memory is consistent at create and sync.
// Thread safety: -
#include "svp/scheduler/split_deque.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <vector>

#include "backends/machines.h"
#include "base/random.h"
#include "machine/testing/ensemble.h"
#include "svp/scheduler/handover.h"

namespace tombolo::svp {
namespace {

template <class C>
class Deques : public ::testing::Test {};
TYPED_TEST_SUITE(Deques, AllMachines::apply<::testing::Types>, MachineNames);

constexpr std::uint32_t capacity = 64;
constexpr std::size_t line = 64;

// One core, which no other steals from.
template <class C, class Body>
void alone(Body&& body) {
  machine::SyncLayout layout(C::reserved_sync_bytes(1));
  const auto at = SplitDeque<C>::take(layout, 0, capacity);
  machine::testing::Ensemble<C> ensemble({.cores = 1,
                                          .sync_bytes = layout.bytes(),
                                          .data_bytes = SplitDeque<C>::data_bytes(capacity)});
  ensemble.run([&](C& core) {
    SplitDeque<C> deque(core, at);
    body(deque);
  });
}

TYPED_TEST(Deques, AreStacksOfTheirOwners) {
  alone<TypeParam>([](auto& deque) {
    EXPECT_EQ(deque.pop(), 0u);
    const auto first = deque.push(1);
    const auto second = deque.push(2);
    EXPECT_FALSE(deque.claim_last(first));
    EXPECT_TRUE(deque.claim_last(second));
    EXPECT_TRUE(deque.claim_last(first));
    EXPECT_EQ(deque.pop(), 0u);
  });
}

TYPED_TEST(Deques, GiveBackAnyEntry) {
  alone<TypeParam>([](auto& deque) {
    for (std::uint64_t entry = 1; entry <= 5; ++entry) deque.push(entry);
    std::uint64_t moved = 0;
    EXPECT_TRUE(deque.claim(1, moved));
    EXPECT_EQ(moved, 5u);
    EXPECT_TRUE(deque.claim(0, moved));
    EXPECT_EQ(moved, 4u);
    EXPECT_EQ(deque.pop(), 3u);
    EXPECT_EQ(deque.pop(), 5u);
    EXPECT_EQ(deque.pop(), 4u);
    EXPECT_EQ(deque.pop(), 0u);
  });
}

TYPED_TEST(Deques, TakeBackSharedEntries) {
  alone<TypeParam>([](auto& deque) {
    for (std::uint64_t entry = 1; entry <= 8; ++entry) deque.push(entry);
    EXPECT_TRUE(deque.share(1));
    EXPECT_EQ(deque.own(), 4u);
    EXPECT_TRUE(deque.share(100));
    EXPECT_EQ(deque.own(), 0u);
    EXPECT_FALSE(deque.share(1));
    EXPECT_FALSE(deque.claim_last(7));
    EXPECT_EQ(deque.steal(0), 1u);
    std::uint64_t moved = 0;
    EXPECT_FALSE(deque.claim(0, moved));
    EXPECT_TRUE(deque.claim(7, moved));
    EXPECT_EQ(moved, 0u);
    EXPECT_EQ(deque.own(), 3u);  // half of those that were shared came back
    EXPECT_EQ(deque.untaken(), 6u);
    for (std::uint64_t entry = 7; entry >= 2; --entry) EXPECT_EQ(deque.pop(), entry);
    EXPECT_EQ(deque.pop(), 0u);
    deque.forget(0);
    EXPECT_EQ(deque.push(9), 0u);  // the slot of the one that was taken
  });
}

// At the split as well: nothing of the shared part comes back with it.
TYPED_TEST(Deques, GiveBackOwnEntriesWithoutTheSharedOnes) {
  alone<TypeParam>([](auto& deque) {
    for (std::uint64_t entry = 1; entry <= 4; ++entry) deque.push(entry);
    EXPECT_TRUE(deque.share(2));
    EXPECT_EQ(deque.own(), 2u);
    std::uint64_t moved = 0;
    EXPECT_TRUE(deque.claim(2, moved));
    EXPECT_EQ(moved, 4u);
    EXPECT_EQ(deque.own(), 1u);
  });
}

TYPED_TEST(Deques, KeepSlotsOfTakenEntriesUntilTheyAreForgotten) {
  alone<TypeParam>([](auto& deque) {
    deque.push(1);
    deque.push(2);
    deque.share(2);
    EXPECT_EQ(deque.steal(0), 1u);
    EXPECT_EQ(deque.steal(0), 2u);
    EXPECT_EQ(deque.steal(0), 0u);
    EXPECT_EQ(deque.push(3), 2u);
    deque.forget(0);
    EXPECT_TRUE(deque.claim_last(2));
    EXPECT_EQ(deque.push(4), 2u);
    EXPECT_EQ(deque.pop(), 4u);
    deque.forget(1);
    EXPECT_EQ(deque.push(5), 0u);
  });
}

TYPED_TEST(Deques, AreFullAndAskedFor) {
  alone<TypeParam>([](auto& deque) {
    EXPECT_FALSE(deque.wanted());
    EXPECT_EQ(deque.steal(0), 0u);
    EXPECT_TRUE(deque.wanted());
    deque.no_longer_wanted();
    EXPECT_FALSE(deque.wanted());
    deque.want();
    EXPECT_TRUE(deque.wanted());
    while (!deque.full()) deque.push(1);
    EXPECT_EQ(deque.own(), capacity);
  });
}

// Core 0 creates and syncs tasks, the others take them; each adds to a number that it was given.
template <class C>
class Traffic {
 public:
  using Hand = Handover<C>;
  static constexpr std::uint64_t tasks = 400;
  static constexpr machine::Offset data = SplitDeque<C>::data_bytes(capacity);

  explicit Traffic(std::uint64_t seed) : seed_(seed) {}

  void run() {
    machine::SyncLayout layout(C::reserved_sync_bytes(cores));
    const auto at = SplitDeque<C>::take(layout, 0, capacity);
    states_ = layout.take_lines(tasks + 1);
    stop_ = layout.take_lines(1);
    machine::testing::Ensemble<C> ensemble({.cores = cores,
                                            .sync_bytes = layout.bytes(),
                                            .data_bytes = data + (tasks + 1) * line,
                                            .seed = seed_});
    ensemble.run([&](C& core) {
      SplitDeque<C> deque(core, at);
      if (core.self() == 0)
        create_all(core, deque);
      else
        take_until_stopped(core, deque);
    });
    std::sort(ran_.begin(), ran_.end());
    ASSERT_EQ(ran_.size(), tasks);
    for (std::uint64_t task = 1; task <= tasks; ++task) EXPECT_EQ(ran_[task - 1], task);
  }

 private:
  static constexpr machine::Home cores = 3;

  machine::DataPlace number_of(std::uint64_t task) const { return {0, data + task * line}; }
  auto state(C& core, std::uint64_t task) { return core.word({0, states_ + task * 8}); }
  void note(std::uint64_t task) {
    const std::lock_guard lock(mutex_);
    ran_.push_back(task);
  }

  void create_all(C& core, SplitDeque<C>& deque) {
    Random random(seed_);
    for (std::uint64_t next = 1; next <= tasks;) {
      const std::uint64_t some = std::min(1 + random.below(6), tasks + 1 - next);
      std::vector<std::uint32_t> slots;
      for (std::uint64_t i = 0; i < some; ++i) {
        const std::uint64_t number = next + i + 1000;
        ASSERT_TRUE(core.write(number_of(next + i), &number, sizeof number).ok());
        core.publish(number_of(next + i), sizeof number);
        slots.push_back(deque.push(next + i));
      }
      deque.share(1 + static_cast<std::uint32_t>(random.below(6)));
      if (random.one_in(2)) (void)core.pause(20000).ok();
      for (std::uint64_t i = some; i-- > 0;) sync(core, deque, next + i, slots[i]);
      next += some;
    }
    core.store(core.word({0, stop_}), 1);
  }
  void sync(C& core, SplitDeque<C>& deque, std::uint64_t task, std::uint32_t slot) {
    std::uint64_t moved = 0;
    if (deque.claim_last(slot) || deque.claim(slot, moved)) return note(task);
    ASSERT_TRUE(
        core.wait_until(state(core, task), [](std::uint64_t v) { return v == Hand::done_value; })
            .ok());
    deque.forget(slot);
    std::uint64_t number = 0;
    core.refresh(number_of(task), sizeof number);
    ASSERT_TRUE(core.read(number_of(task), &number, sizeof number).ok());
    EXPECT_EQ(number, task + 2000);
  }
  void take_until_stopped(C& core, SplitDeque<C>& deque) {
    while (core.load(core.word({0, stop_})) == 0) {
      const std::uint64_t task = deque.steal(0);
      if (task == 0) {
        (void)core.pause(1000).ok();
        continue;
      }
      Hand::begin(core, state(core, task));
      note(task);
      std::uint64_t number = 0;
      core.refresh(number_of(task), sizeof number);
      ASSERT_TRUE(core.read(number_of(task), &number, sizeof number).ok());
      EXPECT_EQ(number, task + 1000);
      number += 1000;
      ASSERT_TRUE(core.write(number_of(task), &number, sizeof number).ok());
      core.publish(number_of(task), sizeof number);
      Hand::finish(core, state(core, task));
      core.notify(0);
    }
  }

  std::uint64_t seed_;
  machine::Offset states_ = 0;
  machine::Offset stop_ = 0;
  std::mutex mutex_;
  std::vector<std::uint64_t> ran_;
};

TYPED_TEST(Deques, HandTasksToOneCoreEach) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Traffic<TypeParam>(seed).run();
  }
}

}  // namespace
}  // namespace tombolo::svp
