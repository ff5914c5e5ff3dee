// SPDX-License-Identifier: Apache-2.0
// A program's plain loads and stores of its own region and of its peers' regions (EN5).
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <vector>

#include "windows/testing/processes.h"

namespace tombolo::windows::testing {
namespace {

class OwnRegionTest : public OnEachMachine {};
INSTANTIATE_TEST_SUITE_P(On, OwnRegionTest, ::testing::ValuesIn(test_machines()), name_of_machine);

TEST_P(OwnRegionTest, SyncShowsPlainStoresToOthers) {
  run(GetParam(), {.processes = 2}, [](Process& p) {
    p.lock_all();
    for (int round = 1; round <= 20; ++round) {
      p.store(60, round);
      p.sync();
      p.barrier();
      EXPECT_EQ(p.get(p.right(), 60), round);
      p.barrier();
    }
    p.unlock_all();
  });
}

TEST_P(OwnRegionTest, SyncShowsPutsOfOthersToPlainLoads) {
  run(GetParam(), {.processes = 2}, [](Process& p) {
    for (int round = 1; round <= 20; ++round) {
      p.lock_shared(p.right());
      p.put(p.right(), 60, round);
      p.unlock(p.right());
      p.barrier();
      p.sync();
      EXPECT_EQ(p.load(60), round);
      p.barrier();
    }
  });
}

TEST_P(OwnRegionTest, GetKeepsPlainStoresInsideAndBesideItsRange) {
  run(GetParam(), {.processes = 2}, [](Process& p) {
    p.lock_all();
    for (int round = 1; round <= 20; ++round) {
      p.store(128, round);
      p.store(132, round + 1);
      p.store(136, round + 2);
      EXPECT_EQ(p.get(p.self(), 132), round + 1);
      EXPECT_EQ(p.load(128), round);
      EXPECT_EQ(p.load(132), round + 1);
      EXPECT_EQ(p.load(136), round + 2);
    }
    p.unlock_all();
    p.barrier();
    p.lock_all();
    EXPECT_EQ(p.get(p.right(), 128), 20);
    EXPECT_EQ(p.get(p.right(), 132), 21);
    EXPECT_EQ(p.get(p.right(), 136), 22);
    p.unlock_all();
  });
}

TEST_P(OwnRegionTest, APutToOneselfAndAPlainStoreBesideItBothStay) {
  run(GetParam(), {.processes = 2}, [](Process& p) {
    for (int round = 1; round <= 20; ++round) {
      p.lock_exclusive(p.self());
      p.store(0, round);
      p.put(p.self(), 4, round + 1);
      p.store(8, round + 2);
      p.unlock(p.self());
      p.barrier();
      for (const Home home : {0u, 1u}) {
        p.lock_shared(home);
        EXPECT_EQ(p.get(home, 0), round);
        EXPECT_EQ(p.get(home, 4), round + 1);
        EXPECT_EQ(p.get(home, 8), round + 2);
        p.unlock(home);
      }
      EXPECT_EQ(p.load(4), round + 1);
      p.barrier();
    }
  });
}

TEST_P(OwnRegionTest, LoadsAreNoOlderAfterEveryCallThatRefreshes) {
  run(GetParam(), {.processes = 2}, [](Process& p) {
    const Home peer = p.right();
    int value = 0;
    const auto peer_puts = [&] {
      ++value;
      p.lock_shared(peer);
      p.put(peer, 4, value);
      p.unlock(peer);
      p.barrier();
    };
    const auto expect_value = [&](const char* call) {
      EXPECT_EQ(p.load(4), value) << call;
      p.barrier();
    };
    for (int round = 0; round < 5; ++round) {
      peer_puts();
      p.fence({.no_succeed = true});
      expect_value("fence");
      peer_puts();
      p.lock_shared(p.self());
      expect_value("lock of oneself");
      p.unlock(p.self());
      p.barrier();
      peer_puts();
      p.lock(Access::shared, peer, {.no_check = true});
      expect_value("lock without check of another");
      p.unlock(peer);
      p.barrier();
      peer_puts();
      p.lock_all({.no_check = true});
      expect_value("lock_all without check");
      p.unlock_all();
      p.barrier();
    }
  });
}

TEST_P(OwnRegionTest, LoadsSeeEveryKindOfUpdate) {
  run(GetParam(), {.processes = 2}, [](Process& p) {
    const Home peer = p.right();
    const int two = 2;
    int before = 0;
    const auto expect_after = [&](int expected, const char* call, const auto& update) {
      p.lock_shared(peer);
      update();
      p.unlock(peer);
      p.barrier();
      p.lock_shared(p.self());
      EXPECT_EQ(p.load(0), expected) << call;
      p.unlock(p.self());
      p.barrier();
    };
    for (int v = 1; v <= 3; ++v) {
      expect_after(v, "put", [&] { p.put(peer, 0, v); });
      expect_after(2 * v, "accumulate",
                   [&] { p.accumulate(peer, 0, Op::prod, Element::i32, &two, 1); });
      expect_after(4 * v, "get_accumulate",
                   [&] { p.get_accumulate(peer, 0, Op::prod, Element::i32, &two, &before, 1); });
      expect_after(9 * v, "compare_and_swap",
                   [&] { EXPECT_EQ(p.compare_and_swap(peer, 0, 4 * v, 9 * v), 4 * v); });
    }
  });
}

// Windows whose processes load and store each other's regions -------------------------------------

const World shared_memory{.processes = 3, .options = {.program_reads_peers = true}};

TEST_P(OwnRegionTest, StoresToAPeersRegionAreSeenByItsOwnerAfterSyncs) {
  run(GetParam(), shared_memory, [](Process& p) {
    p.lock_all();
    for (int round = 1; round <= 20; ++round) {
      p.store_at(p.right(), 64 * p.self(), round);
      p.sync();
      p.barrier();
      p.sync();
      EXPECT_EQ(p.load(64 * p.right(2)), round);
      p.barrier();
    }
    p.unlock_all();
  });
}

TEST_P(OwnRegionTest, LoadsFromAPeersRegionSeeItsOwnersStoresAfterSyncs) {
  run(GetParam(), shared_memory, [](Process& p) {
    p.lock_all();
    for (int round = 1; round <= 20; ++round) {
      p.store(256, round + static_cast<int>(p.self()));
      p.sync();
      p.barrier();
      p.sync();
      for (Home home = 0; home < p.processes(); ++home)
        EXPECT_EQ(p.load_at<int>(home, 256), round + static_cast<int>(home));
      p.barrier();
    }
    p.unlock_all();
  });
}

TEST_P(OwnRegionTest, FencesServeLoadsAndStoresOfPeersRegions) {
  run(GetParam(), shared_memory, [](Process& p) {
    for (int round = 1; round <= 20; ++round) {
      p.store_at(p.right(), 64 * p.self(), round);
      p.fence({.no_succeed = true});
      EXPECT_EQ(p.load(64 * p.right(2)), round);
      EXPECT_EQ(p.load_at<int>(p.right(2), 64 * p.right()), round);
      p.fence({.no_succeed = true});
    }
  });
}

TEST_P(OwnRegionTest, LocksServeLoadsAndStoresOfPeersRegions) {
  run_with_each_lock(GetParam(), shared_memory, [](Process& p) {
    constexpr int rounds = 15;
    for (int i = 0; i < rounds; ++i) {
      p.lock_exclusive(1);
      p.store_at(1, 0, p.load_at<int>(1, 0) + 1);
      p.unlock(1);
    }
    p.barrier();
    p.lock_shared(1);
    EXPECT_EQ(p.load_at<int>(1, 0), rounds * static_cast<int>(p.processes()));
    p.unlock(1);
  });
}

TEST_P(OwnRegionTest, LocksKeepStoresToAPeersRegionThatWereNotPublishedYet) {
  run(GetParam(), shared_memory, [](Process& p) {
    for (int round = 1; round <= 10; ++round) {
      const Offset mine = 64 * p.self();
      p.store_at(p.right(), mine, round);
      p.lock_shared(p.right(2));
      EXPECT_EQ(p.load_at<int>(p.right(), mine), round);
      p.unlock(p.right(2));
    }
  });
}

TEST_P(OwnRegionTest, GetKeepsPlainStoresToAPeersRegion) {
  run(GetParam(), shared_memory, [](Process& p) {
    p.lock_all();
    const Offset mine = 64 * p.self();
    for (int round = 1; round <= 10; ++round) {
      p.store_at(p.right(), mine, round);
      EXPECT_EQ(p.get(p.right(), mine), round);
      EXPECT_EQ(p.load_at<int>(p.right(), mine), round);
    }
    p.unlock_all();
    p.barrier();
    p.lock_all();
    EXPECT_EQ(p.load(64 * p.right(2)), 10);
    p.unlock_all();
  });
}

// The first int of the own region, which another thread loads at the same time.
void store_atomically(Process& p, bool views, int value) {
  if (!views) return p.store(0, value);
  std::atomic_ref<int>(*reinterpret_cast<int*>(p.memory(p.self())))
      .store(value, std::memory_order_relaxed);
}
int load_atomically(Process& p, bool views, Home home) {
  if (!views) return p.load_at<int>(home, 0);
  return std::atomic_ref<int>(*reinterpret_cast<int*>(p.memory(home)))
      .load(std::memory_order_relaxed);
}

// Two processes count, each in its own region, and note how far the other is.
std::array<std::vector<int>, 2> count_and_look(const TestMachine& machine, const Weather& weather,
                                               int rounds) {
  std::array<std::vector<int>, 2> seen;
  for (auto& values : seen) values.resize(static_cast<std::size_t>(rounds));
  const World world{.processes = 2, .bytes = 64, .options = {.program_reads_peers = true}};
  run_once(machine, world, weather, [&](Process& p) {
    p.barrier();
    for (int round = 0; round < rounds; ++round) {
      store_atomically(p, machine.views, round + 1);
      p.sync();
      seen[p.self()][static_cast<std::size_t>(round)] =
          load_atomically(p, machine.views, p.right());
    }
  });
  return seen;
}

TEST_P(OwnRegionTest, SyncKeepsALoadBehindAnEarlierStore) {
  // Often, since a busy host seldom runs both at once.
  const TestMachine& machine = GetParam();
  const bool coherent = machine.properties.coherent;
  const int rounds = coherent ? 100'000 : machine.views ? 2000 : 50;
  const std::size_t attempts = coherent ? 30 : 14;
  const std::vector<Weather>& weathers = machine.weathers;
  for (std::size_t attempt = 0; attempt < attempts; ++attempt) {
    const auto seen = count_and_look(machine, weathers[attempt % weathers.size()], rounds);
    for (int i = 1; i <= rounds; ++i) {
      // After 0 had stored i it did not see that 1 stored j. Then 1 must see i when it looks.
      const int j = seen[0][static_cast<std::size_t>(i - 1)] + 1;
      if (j > rounds) break;
      ASSERT_GE(seen[1][static_cast<std::size_t>(j - 1)], i)
          << "neither sees the other: rounds " << i << " and " << j;
    }
  }
}

// A late write-back from a cache would overwrite data that others have stored there by then.
TEST_P(OwnRegionTest, NothingIsLeftInCachesWhereTheMemoryMovesOn) {
  run(GetParam(), {.processes = 2, .options = {.memory_moves_on = true}}, [](Process& p) {
    p.store(60, 4711);
    p.window().close();
    p.barrier();
    EXPECT_TRUE(p.window().take_losses().empty());
  });
}

}  // namespace
}  // namespace tombolo::windows::testing
