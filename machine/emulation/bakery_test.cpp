// SPDX-License-Identifier: Apache-2.0
// Purpose: the bakery lock by itself: exclusion, order, and the death of its holder.
#include "machine/emulation/bakery.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <memory>
#include <thread>
#include <vector>

#include "base/random.h"
#include "machine/emulation/emulation_double.h"
#include "machine/emulation/store_buffer_double.h"

namespace tombolo::machine {
namespace {

using testing::LoadStoreDouble;

// n doubles over one sync memory, each with its bakery at byte 64 of the blocks.
class Shop {
 public:
  explicit Shop(Home cores, IdleHook* idle = nullptr)
      : block_bytes_(64 + (Bakery<LoadStoreDouble>::bytes(cores) + 63) / 64 * 64),
        memory_(std::make_unique<std::atomic<std::uint64_t>[]>(cores * block_bytes_ / 8)),
        policy_(WaitPolicy::for_host(cores, 2)) {
    for (Home self = 0; self < cores; ++self) {
      Attachment at;
      at.self = self;
      at.cores = cores;
      at.sync = reinterpret_cast<std::byte*>(memory_.get());
      at.sync_bytes_per_home = block_bytes_;
      cores_.push_back(std::make_unique<LoadStoreDouble>(at));
      locks_.push_back(
          std::make_unique<Bakery<LoadStoreDouble>>(*cores_.back(), 64, policy_, idle));
    }
  }
  LoadStoreDouble& core(Home home) { return *cores_[home]; }
  Bakery<LoadStoreDouble>& lock(Home home) { return *locks_[home]; }
  std::uint64_t number(Home home, Home core) {
    return cores_[0]->load(cores_[0]->word({home, 64 + core * 8}));
  }
  Home cores() const { return static_cast<Home>(cores_.size()); }

 private:
  std::size_t block_bytes_;
  std::unique_ptr<std::atomic<std::uint64_t>[]> memory_;
  WaitPolicy policy_;
  std::vector<std::unique_ptr<LoadStoreDouble>> cores_;
  std::vector<std::unique_ptr<Bakery<LoadStoreDouble>>> locks_;
};

class BakeryExclusion : public ::testing::TestWithParam<Home> {};
INSTANTIATE_TEST_SUITE_P(Cores, BakeryExclusion, ::testing::Values(1u, 2u, 3u, 7u));

TEST_P(BakeryExclusion, CountsWithPlainVariables) {
  Shop shop(GetParam());
  constexpr int rounds = 40000;
  // One plain counter for each lock; only exclusion keeps the increments.
  std::vector<std::uint64_t> counters(shop.cores());
  std::vector<std::uint64_t> expected(shop.cores());
  std::vector<std::thread> threads;
  std::atomic<std::uint64_t> inside_twice = 0;
  std::latch start(shop.cores());
  std::vector<std::atomic<int>> inside(shop.cores());
  for (Home self = 0; self < shop.cores(); ++self) {
    Random plan = Random::stream(42, self);
    for (int i = 0; i < rounds / static_cast<int>(shop.cores()); ++i)
      ++expected[plan.below(shop.cores())];
    threads.emplace_back([&, self] {
      Random random = Random::stream(42, self);
      start.arrive_and_wait();  // or the first is done before the last has begun
      for (int i = 0; i < rounds / static_cast<int>(shop.cores()); ++i) {
        const auto home = static_cast<Home>(random.below(shop.cores()));
        shop.lock(self).acquire(home);
        // relaxed: only counts the cores inside.
        inside_twice += inside[home].fetch_add(1, std::memory_order_relaxed) != 0 ? 1 : 0;
        ++counters[home];
        inside[home].fetch_sub(1, std::memory_order_relaxed);
        shop.lock(self).release(home);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(inside_twice, 0u) << "BK1";
  EXPECT_EQ(counters, expected);
  for (Home home = 0; home < shop.cores(); ++home)
    for (Home core = 0; core < shop.cores(); ++core)
      EXPECT_EQ(shop.number(home, core), 0u) << "an idle lock is all zeros";
}

// The same under every reordering the contract allows. Each seed is one schedule, and fails alone.
TEST(Bakery, ExcludesWhateverTheStoreBuffersDo) {
  constexpr Home cores = 3;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    testing::StoreBufferMemory memory(cores, cores, seed);
    int inside = 0;
    int violations = 0;
    memory.run([&](const Attachment& at) {
      testing::StoreBufferDouble core(at);
      const WaitPolicy waiting;
      Bakery<testing::StoreBufferDouble> lock(core, 0, waiting, nullptr);
      for (int i = 0; i < 12; ++i) {
        lock.acquire(0);
        violations += inside++ != 0 ? 1 : 0;
        EXPECT_TRUE(core.pause(0).ok());  // others run while we are inside
        --inside;
        lock.release(0);
      }
    });
    ASSERT_EQ(violations, 0) << "BK1, seed " << seed;
  }
}

TEST(Bakery, LetsInFirstWhoCameFirst) {
  Shop shop(4);
  std::vector<Home> order;
  shop.lock(0).acquire(0);
  std::vector<std::thread> threads;
  for (const Home next : {3u, 1u, 2u}) {
    threads.emplace_back([&, next] {
      shop.lock(next).acquire(0);
      order.push_back(next);  // inside the lock
      shop.lock(next).release(0);
    });
    while (shop.number(0, next) < 2) std::this_thread::yield();  // it is through the doorway
  }
  EXPECT_TRUE(order.empty());
  shop.lock(0).release(0);
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(order, (std::vector<Home>{3, 1, 2}));
}

TEST(Bakery, LocksOfDifferentHomesAreIndependent) {
  Shop shop(2);
  shop.lock(0).acquire(0);
  shop.lock(1).acquire(1);
  shop.lock(0).release(0);
  shop.lock(1).release(1);
}

class DeadPeer : public IdleHook {
 public:
  Status idle() override { return Status::process_failed(0, "rank 0 died"); }
};

TEST(Bakery, GoesOnWithAFaultWhenTheHolderIsDead) {
  DeadPeer hook;
  Shop shop(2, &hook);
  shop.lock(0).acquire(0);  // and never releases it
  EXPECT_TRUE(shop.lock(1).error().ok());
  shop.lock(1).acquire(0);
  EXPECT_EQ(shop.lock(1).error().code(), Code::process_failed);
  EXPECT_EQ(shop.lock(1).error().rank(), 0);
  shop.lock(1).release(0);
  shop.lock(1).acquire(0);  // at once from now on
}

}  // namespace
}  // namespace tombolo::machine
