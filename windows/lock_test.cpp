// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <atomic>

#include "windows/testing/processes.h"

namespace tombolo::windows::testing {
namespace {

class LockTest : public OnEachMachine {};
INSTANTIATE_TEST_SUITE_P(On, LockTest, ::testing::ValuesIn(test_machines()), name_of_machine);

TEST_P(LockTest, ExclusiveLocksMakeReadModifyWriteAtomic) {
  constexpr int rounds = 25;
  run_with_each_lock(GetParam(), {.processes = 4}, [&](Process& p) {
    for (int i = 0; i < rounds; ++i) {
      const Home target = static_cast<Home>(i % 2);
      p.lock_exclusive(target);
      p.put(target, 60, p.get(target, 60) + 1);
      p.unlock(target);
    }
    p.barrier();
    for (const Home target : {0u, 1u}) {
      p.lock_shared(target);
      const int expected = static_cast<int>(p.processes()) * (target == 0 ? 13 : 12);
      EXPECT_EQ(p.get(target, 60), expected);
      p.unlock(target);
    }
  });
}

TEST_P(LockTest, ReadersSeeTheLastUnlockOfAWriterWhole) {
  constexpr int rounds = 40;
  run_with_each_lock(GetParam(), {.processes = 3}, [&](Process& p) {
    int last = 0;
    for (int i = 1; i <= rounds; ++i) {
      if (p.self() == 1) {
        p.lock_exclusive(0);
        p.put(0, 0, i);
        p.put(0, 1000, ~i);
        p.unlock(0);
        continue;
      }
      p.lock_shared(0);
      const int first = p.get(0, 0);
      const int second = p.get(0, 1000);
      p.unlock(0);
      if (first != 0) {
        EXPECT_EQ(second, ~first);
      }
      EXPECT_GE(first, last);
      last = first;
    }
    p.barrier();
    p.lock_shared(0);
    EXPECT_EQ(p.get(0, 0), rounds);
    p.unlock(0);
  });
}

TEST_P(LockTest, UnlockBringsPutsToMemory) {
  run(GetParam(), {.processes = 3}, [](Process& p) {
    for (int round = 1; round <= 10; ++round) {
      if (p.self() == 0) {
        p.lock_shared(1);
        p.put(1, 8, round);
        p.unlock(1);
      }
      p.barrier();
      if (p.self() == 2) {
        p.lock_shared(1);
        EXPECT_EQ(p.get(1, 8), round);
        p.unlock(1);
      }
      p.barrier();
    }
  });
}

TEST_P(LockTest, UnlockAllBringsPutsToMemory) {
  run(GetParam(), {.processes = 3}, [](Process& p) {
    for (int round = 1; round <= 10; ++round) {
      if (p.self() == 0) {
        p.lock_all();
        p.put(1, 8, round);
        p.put(2, 8, round + 1);
        p.unlock_all();
      }
      p.barrier();
      if (p.self() == 2) {
        p.lock_all();
        EXPECT_EQ(p.get(1, 8), round);
        EXPECT_EQ(p.get(2, 8), round + 1);
        p.unlock_all();
      }
      p.barrier();
    }
  });
}

TEST_P(LockTest, UnlockShowsPlainStoresOfTheOwner) {
  run(GetParam(), {.processes = 3}, [](Process& p) {
    for (int round = 1; round <= 10; ++round) {
      if (p.self() == 0) {
        // Whichever lock it is: the stores are to the own region.
        const Home locked = static_cast<Home>(round % 3);
        p.lock_exclusive(locked);
        p.store(16, round);
        p.unlock(locked);
      }
      p.barrier();
      p.lock_shared(0);
      EXPECT_EQ(p.get(0, 16), round);
      p.unlock(0);
      p.barrier();
    }
  });
}

TEST_P(LockTest, UnlockAllShowsPlainStoresOfTheOwner) {
  run(GetParam(), {.processes = 2}, [](Process& p) {
    for (int round = 1; round <= 10; ++round) {
      if (p.self() == 0) {
        p.lock_all();
        p.store(16, round);
        p.unlock_all();
      }
      p.barrier();
      p.lock_all();
      EXPECT_EQ(p.get(0, 16), round);
      p.unlock_all();
      p.barrier();
    }
  });
}

TEST_P(LockTest, LockShowsWhatOthersPutToThePlainLoadsOfTheOwner) {
  run(GetParam(), {.processes = 3}, [](Process& p) {
    for (int round = 1; round <= 10; ++round) {
      p.lock_shared(p.right());
      p.put(p.right(), 32, round);
      p.unlock(p.right());
      p.barrier();
      // Whichever lock it is.
      const Home locked = p.right(static_cast<Home>(round));
      p.lock_shared(locked);
      EXPECT_EQ(p.load(32), round);
      p.unlock(locked);
      p.barrier();
    }
  });
}

TEST_P(LockTest, LockAllShowsWhatOthersPutToThePlainLoadsOfTheOwner) {
  run(GetParam(), {.processes = 3}, [](Process& p) {
    for (int round = 1; round <= 10; ++round) {
      p.lock_all();
      p.put(p.right(), 32, round);
      p.unlock_all();
      p.barrier();
      p.lock_all();
      EXPECT_EQ(p.load(32), round);
      p.unlock_all();
      p.barrier();
    }
  });
}

TEST_P(LockTest, LockKeepsPlainStoresThatWereNotPublishedYet) {
  run(GetParam(), {.processes = 2}, [](Process& p) {
    for (int round = 1; round <= 10; ++round) {
      p.store(900, round);
      p.lock_shared(p.right());
      // In another line; the next lock has something to refresh.
      p.put(p.right(), 600, round);
      p.store(300, round);
      p.flush(p.right());
      p.unlock(p.right());
      p.barrier();
      p.store(904, round);
      p.lock_all();
      EXPECT_EQ(p.load(600), round);
      EXPECT_EQ(p.load(900), round);
      EXPECT_EQ(p.load(904), round);
      EXPECT_EQ(p.load(300), round);
      p.unlock_all();
      p.barrier();
    }
  });
}

TEST_P(LockTest, KeepsEveryByteOfOddPiecesThatHoldersOfSharedLocksPutIntoOneLine) {
  constexpr Offset bytes = 192;
  run_with_each_lock(GetParam(), {.processes = 3, .bytes = bytes}, [&](Process& p) {
    for (unsigned char round = 1; round <= 8; ++round) {
      const auto value = static_cast<unsigned char>(round * 8 + p.self());
      const std::array<unsigned char, 5> piece = {value, value, value, value, value};
      for (Offset at = 5 * p.self(); at < bytes; at += 15) {
        p.lock_shared(0);
        p.put_bytes(0, at, piece.data(), std::min<std::size_t>(5, bytes - at));
        p.unlock(0);
      }
      p.barrier();
      std::array<unsigned char, bytes> all{};
      p.lock_shared(0);
      p.get_bytes(0, 0, all.data(), bytes);
      p.unlock(0);
      for (Offset at = 0; at < bytes; ++at) ASSERT_EQ(all[at], round * 8 + at / 5 % 3);
      p.barrier();
    }
  });
}

TEST_P(LockTest, HoldsSharedLocksOfAllTargetsAtOnce) {
  run_with_each_lock(GetParam(), {.processes = 4}, [](Process& p) {
    for (int round = 1; round <= 10; ++round) {
      for (Home i = 0; i < p.processes(); ++i) p.lock_shared(p.right(i));
      for (Home i = 0; i < p.processes(); ++i) p.put(i, 4 * p.self(), round);
      for (Home i = 0; i < p.processes(); ++i) p.unlock(i);
      p.barrier();
      p.lock_shared(p.self());
      for (Home i = 0; i < p.processes(); ++i) EXPECT_EQ(p.load(4 * i), round);
      p.unlock(p.self());
      p.barrier();
    }
  });
}

TEST_P(LockTest, HoldsExclusiveLocksOfSeveralTargetsAtOnce) {
  constexpr int rounds = 15;
  run_with_each_lock(GetParam(), {.processes = 3}, [&](Process& p) {
    // Moves one from target to target; the sum stays.
    for (int i = 0; i < rounds; ++i) {
      const Home from = p.right(static_cast<Home>(i));
      const Home to = p.right(static_cast<Home>(i + 1));
      p.lock_exclusive(std::min(from, to));
      p.lock_exclusive(std::max(from, to));
      p.put(from, 0, p.get(from, 0) - 1);
      p.put(to, 0, p.get(to, 0) + 1);
      p.unlock(from);
      p.unlock(to);
    }
    p.barrier();
    p.lock_all();
    int sum = 0;
    for (Home i = 0; i < p.processes(); ++i) sum += p.get(i, 0);
    EXPECT_EQ(sum, 0);
    p.unlock_all();
  });
}

TEST_P(LockTest, LockAllKeepsExclusiveLocksOut) {
  constexpr int rounds = 20;
  run_with_each_lock(GetParam(), {.processes = 3}, [&](Process& p) {
    for (int i = 1; i <= rounds; ++i) {
      if (p.self() == 0) {
        p.lock_all();
        EXPECT_EQ(p.get(1, 0), p.get(1, 500));
        p.unlock_all();
      } else {
        p.lock_exclusive(1);
        const int value = p.get(1, 0) + 1;
        p.put(1, 0, value);
        p.put(1, 500, value);
        p.unlock(1);
      }
    }
    p.barrier();
    p.lock_all();
    EXPECT_EQ(p.get(1, 0), 2 * rounds);
    p.unlock_all();
  });
}

TEST_P(LockTest, ALockWithoutCheckWaitsForNobody) {
  run_with_each_lock(GetParam(), {.processes = 2}, [](Process& p) {
    if (p.self() == 0) p.lock_exclusive(0);
    p.barrier();
    if (p.self() == 1) {
      p.lock(Access::exclusive, 0, {.no_check = true});
      p.put(0, 0, 5);
      p.unlock(0);
      p.lock_all({.no_check = true});
      p.put(0, 4, 6);
      p.unlock_all();
    }
    p.barrier();
    if (p.self() == 0) {
      p.unlock(0);
      p.lock_exclusive(0);
      EXPECT_EQ(p.load(0), 5);
      EXPECT_EQ(p.load(4), 6);
      p.unlock(0);
    }
  });
}

TEST_P(LockTest, SharedLocksAreHeldTogether) {
  run_with_each_lock(GetParam(), {.processes = 3}, [](Process& p) {
    p.lock_shared(0);
    p.barrier();  // all are in
    p.unlock(0);
    p.lock_all();
    p.barrier();
    p.unlock_all();
  });
}

TEST_P(LockTest, AnExclusiveLockKeepsOthersOut) {
  std::atomic<bool> inside = false;
  run_with_each_lock(GetParam(), {.processes = 3}, [&](Process& p) {
    for (int i = 0; i < 20; ++i) {
      p.lock_exclusive(2);
      EXPECT_FALSE(inside.exchange(true));
      EXPECT_TRUE(inside.exchange(false));
      p.unlock(2);
    }
  });
}

}  // namespace
}  // namespace tombolo::windows::testing
