// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "windows/testing/processes.h"

namespace tombolo::windows::testing {
namespace {

template <class C>
class FlushTest : public ::testing::Test {};
TYPED_TEST_SUITE(FlushTest, Machines, MachineNames);

TYPED_TEST(FlushTest, ShowsPutsToAThirdProcessThatWasNotified) {
  run<TypeParam>({.processes = 3}, [](Process& p) {
    p.lock_all();
    for (int round = 1; round <= 20; ++round) {
      if (p.self() == 0) {
        p.put(1, 72, round);
        p.flush(1);
      }
      p.barrier();
      if (p.self() == 2) {
        EXPECT_EQ(p.get(1, 72), round);
      }
      p.barrier();
    }
    p.unlock_all();
  });
}

TYPED_TEST(FlushTest, ShowsPutsUnderASingleSharedLock) {
  run_with_each_lock<TypeParam>({.processes = 2}, [](Process& p) {
    p.lock_shared(0);
    p.lock_shared(1);
    for (int round = 1; round <= 10; ++round) {
      if (p.self() == 0) {
        p.put(1, 72, round);
        p.flush(1);
      }
      p.barrier();
      if (p.self() == 1) {
        EXPECT_EQ(p.get(1, 72), round);
      }
      p.barrier();
    }
    p.unlock(0);
    p.unlock(1);
  });
}

TYPED_TEST(FlushTest, FlushAllShowsPutsToEveryTarget) {
  run<TypeParam>({.processes = 3}, [](Process& p) {
    p.lock_all();
    for (int round = 1; round <= 20; ++round) {
      if (p.self() == 0) {
        p.put(1, 72, round);
        p.put(2, 72, -round);
        p.put(1, 200, round);
        p.put(2, 200, -round);
        p.flush_all();
      }
      p.barrier();
      EXPECT_EQ(p.get(1, 72), round);
      EXPECT_EQ(p.get(2, 72), -round);
      p.sync();
      if (p.self() != 0) {
        EXPECT_EQ(p.load(200), p.self() == 1 ? round : -round);
      }
      p.barrier();
    }
    p.unlock_all();
  });
}

TYPED_TEST(FlushTest, ShowsPutsToPlainLoadsOfTheTargetAfterItsSync) {
  run<TypeParam>({.processes = 2}, [](Process& p) {
    p.lock_all();
    for (int round = 1; round <= 20; ++round) {
      p.put(p.right(), 8, round);
      p.flush(p.right());
      p.barrier();
      p.sync();
      EXPECT_EQ(p.load(8), round);
      p.barrier();
    }
    p.unlock_all();
  });
}

TYPED_TEST(FlushTest, ASyncMissesNoPutWhoseFlushItMeets) {
  std::atomic<int> flushed, seen;
  run<TypeParam>({.processes = 2}, [&](Process& p) {
    flushed = seen = 0;
    p.lock_all();
    p.barrier();
    for (int round = 1; round <= 100; ++round) {
      if (p.self() == 0) {
        p.put(1, 8, round);
        p.flush(1);
        flushed = round;
        while (seen < round) p.pause();
      } else {
        while (flushed < round) {
          for (int i = 0; i < 20; ++i) p.sync();
          p.pause();
        }
        p.sync();
        EXPECT_EQ(p.load(8), round);
        seen = round;
      }
    }
    p.unlock_all();
  });
}

TYPED_TEST(FlushTest, ShowsPutsToOnesOwnGets) {
  run<TypeParam>({.processes = 2}, [](Process& p) {
    p.lock_all();
    for (int round = 1; round <= 20; ++round) {
      const Offset at = 100 + 4 * p.self();
      p.put(0, at, round);
      p.flush(0);
      EXPECT_EQ(p.get(0, at), round);
    }
    p.unlock_all();
  });
}

TYPED_TEST(FlushTest, FlushLocalGivesTheOriginsBytesBack) {
  run<TypeParam>({.processes = 2}, [](Process& p) {
    p.lock_all();
    std::vector<int> out(500);
    for (int round = 1; round <= 6; ++round) {
      out.assign(out.size(), round);
      p.put_bytes(p.right(), 0, out.data(), out.size() * 4);
      if (round % 2 == 0)
        p.flush_local(p.right());
      else
        p.flush_local_all();
      out.assign(out.size(), -1);
      p.flush_all();
      p.barrier();
      p.sync();
      for (Offset at = 0; at < 2000; at += 4) ASSERT_EQ(p.load(at), round);
      p.barrier();
    }
    p.unlock_all();
  });
}

TYPED_TEST(FlushTest, ASecondFlushBringsWhatCameAfterTheFirst) {
  run<TypeParam>({.processes = 3}, [](Process& p) {
    p.lock_all();
    if (p.self() == 0) {
      p.put(1, 0, 1);
      p.flush(1);
      p.put(1, 256, 2);
      p.put(2, 0, 3);
      p.flush(1);
      p.flush(2);
    }
    p.barrier();
    EXPECT_EQ(p.get(1, 0), 1);
    EXPECT_EQ(p.get(1, 256), 2);
    EXPECT_EQ(p.get(2, 0), 3);
    p.unlock_all();
  });
}

constexpr Offset flag = 512;

TYPED_TEST(FlushTest, AFlagInTheWindowAnnouncesWhatWasFlushed) {
  run<TypeParam>({.processes = 3}, [](Process& p) {
    p.lock_all();
    // Each value goes round the ring, announced by an accumulate on the flag of the receiver.
    for (int round = 1; round <= 15; ++round) {
      int value = round * 1000;
      if (p.self() != 0) {
        while (p.fetch_add(p.self(), flag, 0) != round) p.pause();
        value = p.get(p.self(), 0) + 1;
      }
      p.put(p.right(), 0, value);
      p.flush(p.right());
      p.accumulate(p.right(), flag, Op::replace, Element::i32, &round, 1);
      p.flush(p.right());
      if (p.self() != 0) continue;
      while (p.fetch_add(0, flag, 0) != round) p.pause();
      EXPECT_EQ(p.get(0, 0), round * 1000 + 2);
    }
    p.unlock_all();
  });
}

// Several threads of a process ------------------------------------------------------------------

template <class C>
constexpr bool takes_threads = C::properties.native_atomics == machine::Atomics::full;

// The flush of one thread must not announce the bytes that another is still putting.
TYPED_TEST(FlushTest, AThreadsFlushAnnouncesNoPutThatIsNotDone) {
  if (!takes_threads<TypeParam>) GTEST_SKIP() << "a core of this machine serves one thread";
  constexpr std::size_t bytes = 1 << 18;
  constexpr int rounds = 40;
  std::atomic<int> sent, seen;
  std::atomic<bool> over;
  run<TypeParam>({.processes = 2, .bytes = bytes, .options = {.threads = true}}, [&](Process& p) {
    if (p.self() == 0) sent = seen = 0, over = false;
    p.barrier();
    p.lock_all();
    if (p.self() == 0) {
      std::thread flushing([&] {
        while (!over) {
          p.flush(1);
          std::this_thread::yield();
        }
      });
      std::vector<int> data(bytes / sizeof(int));
      for (int round = 1; round <= rounds; ++round) {
        std::fill(data.begin(), data.end(), round);
        p.put_bytes(1, 0, data.data(), bytes);
        p.flush(1);
        sent = round;
        while (seen < round) p.pause();
      }
      over = true;
      flushing.join();
    } else {
      for (int round = 1; round <= rounds; ++round) {
        while (sent < round) p.sync();
        p.sync();
        EXPECT_EQ(p.load(bytes - sizeof(int)), round);
        seen = round;
      }
    }
    p.unlock_all();
  });
}

// A thread that finds nothing to refresh, since another one has just begun, waits for that one.
TYPED_TEST(FlushTest, NoThreadsSyncReturnsBeforeTheRefresh) {
  if (!takes_threads<TypeParam>) GTEST_SKIP() << "a core of this machine serves one thread";
  constexpr std::size_t bytes = 1 << 18;
  constexpr int rounds = 40;
  std::atomic<int> sent, seen;
  run<TypeParam>({.processes = 2, .bytes = bytes, .options = {.threads = true}}, [&](Process& p) {
    if (p.self() == 0) sent = seen = 0;
    p.barrier();
    p.lock_all();
    const auto look = [&] {
      for (int round = 1; round <= rounds; ++round) {
        while (sent < round) std::this_thread::yield();
        p.sync();
        EXPECT_EQ(p.load(bytes - sizeof(int)), round);
        ++seen;
        while (seen < 2 * round) std::this_thread::yield();
      }
    };
    if (p.self() == 0) {
      std::thread other(look);
      look();
      other.join();
    } else {
      for (int round = 1; round <= rounds; ++round) {
        p.put(0, bytes - sizeof(int), round);
        p.flush(0);
        sent = round;
        while (seen < 2 * round) p.pause();
      }
    }
    p.unlock_all();
  });
}

}  // namespace
}  // namespace tombolo::windows::testing
