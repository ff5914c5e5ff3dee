// SPDX-License-Identifier: Apache-2.0
// Purpose: the emulated atomics, by each way: results, no lost operation, no lost plain store.
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <set>
#include <vector>

#include "base/random.h"
#include "machine/emulation/atomics_by_bakery.h"
#include "machine/emulation/atomics_by_test_and_set.h"
#include "machine/emulation/emulation_double.h"
#include "machine/emulation/store_buffer_double.h"
#include "machine/testing/ensemble.h"

namespace tombolo::machine {
namespace {

using ByBakery = AtomicsByBakery<testing::LoadStoreDouble>;
using ByTestAndSet = AtomicsByTestAndSet<testing::TestAndSetDouble>;
static_assert(Core<ByBakery>);
static_assert(Core<ByTestAndSet>);
static_assert(HasTestAndSet<testing::TestAndSetDouble>);
static_assert(!HasTestAndSet<testing::LoadStoreDouble>);

template <class C>
class EmulatedAtomics : public ::testing::Test {
 protected:
  static constexpr Home cores = 3;
  SyncLayout layout{C::reserved_sync_bytes(cores)};
  const Offset first = layout.take_lines(4);
  testing::Ensemble<C> ensemble{{.cores = cores, .sync_bytes = layout.bytes()}};
  std::latch start{cores};  // or the first is done before the last has begun
};
using Ways = ::testing::Types<ByBakery, ByTestAndSet>;
TYPED_TEST_SUITE(EmulatedAtomics, Ways);

TYPED_TEST(EmulatedAtomics, ReturnTheValueBefore) {
  auto& core = this->ensemble.core(1);
  const auto word = core.word({2, this->first});
  EXPECT_EQ(core.load(word), 0u);
  core.store(word, 5);
  EXPECT_EQ(core.fetch_add(word, 10), 5u);
  EXPECT_EQ(core.exchange(word, 7), 15u);
  EXPECT_EQ(core.compare_exchange(word, 8, 9), 7u);
  EXPECT_EQ(core.load(word), 7u) << "it did not hold 8";
  EXPECT_EQ(core.compare_exchange(word, 7, 9), 7u);
  EXPECT_EQ(core.load(word), 9u);
  core.fetch_add(word, ~std::uint64_t{0});
  EXPECT_EQ(core.load(word), 8u) << "modulo 2^64";
}

TYPED_TEST(EmulatedAtomics, LoseNoAddition) {
  constexpr int rounds = 30000;
  this->ensemble.run([&](auto& core) {
    this->start.arrive_and_wait();
    Random random = Random::stream(7, core.self());
    for (int i = 0; i < rounds; ++i)
      core.fetch_add(core.word({static_cast<Home>(random.below(this->cores)), this->first}), 1);
  });
  std::uint64_t sum = 0;
  auto& core = this->ensemble.core(0);
  for (Home home = 0; home < this->cores; ++home) sum += core.load(core.word({home, this->first}));
  EXPECT_EQ(sum, std::uint64_t{rounds} * this->cores);
}

TYPED_TEST(EmulatedAtomics, GiveEachTicketOnce) {
  constexpr int rounds = 20000;
  std::vector<std::vector<std::uint64_t>> tickets(this->cores);
  this->ensemble.run([&](auto& core) {
    this->start.arrive_and_wait();
    const auto word = core.word({0, this->first});
    for (int i = 0; i < rounds; ++i) tickets[core.self()].push_back(core.fetch_add(word, 1));
  });
  std::set<std::uint64_t> all;
  for (const auto& mine : tickets) {
    for (std::size_t i = 1; i < mine.size(); ++i) ASSERT_LT(mine[i - 1], mine[i]);
    all.insert(mine.begin(), mine.end());
  }
  EXPECT_EQ(all.size(), std::size_t{rounds} * this->cores);
}

// LK1: core 0 stores into the upper half while the others add to the lower half of the same word. A
// store that fell between the load and the store of an addition would be undone.
TYPED_TEST(EmulatedAtomics, LoseNoPlainStore) {
  constexpr std::uint64_t rounds = 3000;
  std::atomic<std::uint64_t> lost = 0;
  std::atomic<bool> stop = false;
  this->ensemble.run([&](auto& core) {
    this->start.arrive_and_wait();
    const auto word = core.word({1, this->first});
    if (core.self() != 0) {
      while (!stop) core.fetch_add(word, 1);
      return;
    }
    for (std::uint64_t i = 1; i <= rounds; ++i) {
      core.store(word, i << 32);
      for (int look = 0; look < 2; ++look) lost += core.load(word) >> 32 != i ? 1 : 0;
    }
    stop = true;
  });
  EXPECT_EQ(lost, 0u);
}

TYPED_TEST(EmulatedAtomics, BuildAnExclusiveLock) {
  std::uint64_t plain = 0;
  constexpr int rounds = 20000;
  this->ensemble.run([&](auto& core) {
    this->start.arrive_and_wait();
    const auto word = core.word({0, this->first});
    for (int i = 0; i < rounds; ++i) {
      while (core.compare_exchange(word, 0, core.self() + 1) != 0)
        ASSERT_TRUE(core.pause(100).ok());
      ++plain;
      core.store(word, 0);
    }
  });
  EXPECT_EQ(plain, std::uint64_t{rounds} * this->cores);
}

// Dekker's pattern: an atomic operation is not overtaken by a later load (R3).
TYPED_TEST(EmulatedAtomics, KeepLaterLoadsBehindThem) {
  constexpr int rounds = 3000;
  std::vector<std::vector<std::uint64_t>> seen(2, std::vector<std::uint64_t>(rounds));
  this->ensemble.run([&](auto& core) {
    this->start.arrive_and_wait();
    const Home self = core.self();
    if (self > 1) return;
    const auto mine = core.word({self, this->first});
    const auto theirs = core.word({1 - self, this->first});
    const auto meet = core.word({0, this->first + 16});
    for (int i = 0; i < rounds; ++i) {
      core.exchange(mine, i + 1);
      seen[self][i] = core.load(theirs);
      core.fetch_add(meet, 1);
      while (core.load(meet) < 2u * (i + 1)) std::this_thread::yield();
    }
  });
  for (int i = 0; i < rounds; ++i)
    EXPECT_FALSE(seen[0][i] == static_cast<std::uint64_t>(i) &&
                 seen[1][i] == static_cast<std::uint64_t>(i))
        << "round " << i;
}

class DeadPeer : public IdleHook {
 public:
  Status idle() override { return Status::process_failed(2, "rank 2 died"); }
};

TYPED_TEST(EmulatedAtomics, ReportAHolderThatDiedAtTheNextWait) {
  DeadPeer hook;
  testing::Ensemble<TypeParam> failing(
      {.cores = 3, .sync_bytes = this->layout.bytes(), .idle = &hook});
  // A core that died inside: the lock stays taken.
  auto& dead = failing.core(2);
  if constexpr (requires { dead.test_and_set(0); }) {
    dead.test_and_set(0);
  } else {
    Bakery<testing::LoadStoreDouble> lock(dead, 64, WaitPolicy{}, nullptr);
    lock.acquire(0);
  }
  auto& core = failing.core(0);
  const auto word = core.word({0, this->first});
  core.fetch_add(word, 1);  // comes back
  const Status error = core.wait_until(word, [](std::uint64_t) { return true; });
  EXPECT_EQ(error.code(), Code::process_failed) << "LK3";
  EXPECT_EQ(error.rank(), 2);
}

// From here on under every reordering the contract allows. Each seed is one schedule.
using ByBakeryBuffered = AtomicsByBakery<testing::StoreBufferDouble>;

TEST(EmulatedAtomicsReplayed, LoseNeitherAdditionsNorPlainStores) {
  constexpr Home cores = 3;
  const std::size_t reserved = ByBakeryBuffered::reserved_sync_bytes(cores);
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    testing::StoreBufferMemory memory(cores, reserved / 8 + 2, seed);
    std::uint64_t lost = 0;
    std::uint64_t sum = 0;
    memory.run([&](const Attachment& at) {
      ByBakeryBuffered core(at);
      const auto shared = core.word({1, reserved});
      for (std::uint64_t i = 1; i <= 8; ++i) {
        core.fetch_add(core.word({0, reserved}), 1);
        if (at.self != 0) {
          core.fetch_add(shared, 1);
          continue;
        }
        core.store(shared, i << 32);
        for (int look = 0; look < 3; ++look) lost += core.load(shared) >> 32 != i ? 1 : 0;
      }
      sum = core.load(core.word({0, reserved}));  // the last to leave has the last word
    });
    ASSERT_EQ(lost, 0u) << "LK1, seed " << seed;
    ASSERT_EQ(sum, 8u * cores) << "seed " << seed;
  }
}

TEST(EmulatedAtomicsReplayed, KeepLaterLoadsBehindThem) {
  const std::size_t reserved = ByBakeryBuffered::reserved_sync_bytes(2);
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    testing::StoreBufferMemory memory(2, reserved / 8 + 1, seed);
    std::uint64_t seen[2] = {};
    memory.run([&](const Attachment& at) {
      ByBakeryBuffered core(at);
      core.exchange(core.word({at.self, reserved}), 1);
      seen[at.self] = core.load(core.word({1 - at.self, reserved}));
    });
    ASSERT_TRUE(seen[0] == 1 || seen[1] == 1) << "R3, seed " << seed;
  }
}

TEST(EmulatedAtomicsMemory, IsOneWordForEachCoreAndLock) {
  EXPECT_EQ(Bakery<testing::LoadStoreDouble>::bytes(48), 48u * 8);
  EXPECT_EQ(ByBakery::reserved_sync_bytes(48), 64u + 384);
  EXPECT_EQ(ByTestAndSet::reserved_sync_bytes(48), 64u);
}

}  // namespace
}  // namespace tombolo::machine
