// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <future>
#include <utility>
#include <vector>

#include "windows/testing/interruption.h"
#include "windows/testing/processes.h"

namespace tombolo::windows::testing {
namespace {

class FlushTest : public OnEachMachine {};
INSTANTIATE_TEST_SUITE_P(On, FlushTest, ::testing::ValuesIn(test_machines()), name_of_machine);

TEST_P(FlushTest, ShowsPutsToAThirdProcessThatWasNotified) {
  run(GetParam(), {.processes = 3}, [](Process& p) {
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

TEST_P(FlushTest, ShowsPutsUnderASingleSharedLock) {
  run_with_each_lock(GetParam(), {.processes = 2}, [](Process& p) {
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

// Dekker's pattern: of two processes that put, flush and get each other's, one sees the other.
TEST_P(FlushTest, AGetDoesNotOvertakeAFlushedPut) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the bytes are read while they are put";
#endif
  const bool at_once = GetParam().properties.coherent;  // a barrier would set them apart
  const int rounds = at_once ? 5'000 : 100;
  std::vector<std::array<int, 2>> seen;
  std::atomic<int> arrived;
  run(GetParam(), {.processes = 2}, [&](Process& p) {
    if (p.self() == 0) {
      seen.assign(static_cast<std::size_t>(rounds) + 1, {});
      arrived = 0;
    }
    p.barrier();
    p.lock_all();
    for (int round = 1; round <= rounds; ++round) {
      if (at_once) {
        ++arrived;
        for (int polls = 0; arrived < 2 * round; ++polls)
          if (polls > 1000) p.pause();
      } else {
        p.barrier();
      }
      p.put(0, 64 * p.self(), round);
      p.flush(0);
      seen[static_cast<std::size_t>(round)][p.self()] = p.get(0, 64 * (1 - p.self()));
    }
    p.unlock_all();
    p.barrier();
    if (p.self() != 0) return;
    int missed = 0;
    for (int round = 1; round <= rounds; ++round) {
      const auto& [one, other] = seen[static_cast<std::size_t>(round)];
      missed += one < round && other < round ? 1 : 0;
    }
    EXPECT_EQ(missed, 0) << "rounds in which neither saw the other";
  });
}

TEST_P(FlushTest, FlushAllShowsPutsToEveryTarget) {
  run(GetParam(), {.processes = 3}, [](Process& p) {
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

TEST_P(FlushTest, ShowsPutsToPlainLoadsOfTheTargetAfterItsSync) {
  run(GetParam(), {.processes = 2}, [](Process& p) {
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

TEST_P(FlushTest, ASyncMissesNoPutWhoseFlushItMeets) {
  std::atomic<int> flushed, seen;
  run(GetParam(), {.processes = 2}, [&](Process& p) {
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

TEST_P(FlushTest, ShowsPutsToOnesOwnGets) {
  run(GetParam(), {.processes = 2}, [](Process& p) {
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

TEST_P(FlushTest, FlushLocalGivesTheOriginsBytesBack) {
  run(GetParam(), {.processes = 2}, [](Process& p) {
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

TEST_P(FlushTest, ASecondFlushBringsWhatCameAfterTheFirst) {
  run(GetParam(), {.processes = 3}, [](Process& p) {
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

TEST_P(FlushTest, AFlagInTheWindowAnnouncesWhatWasFlushed) {
  run(GetParam(), {.processes = 3}, [](Process& p) {
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
class ThreadsFlushTest : public ::testing::Test {};
TYPED_TEST_SUITE(ThreadsFlushTest, MachinesThatLose, MachineNames);

// Starts `call` in another thread of the process. Returns when it is done, or after time enough for
// it to reach its wait for the calling thread.
template <class Call>
auto in_another_thread(Call call) {
  auto result = std::async(std::launch::async, std::move(call));
  result.wait_for(std::chrono::milliseconds(50));
  return result;
}

constexpr Offset place = 8;

void put_one(Process& p) { p.put(1, place, 1); }
void add_one(Process& p) { p.fetch_add(1, place, 1); }
void swap_in_one(Process& p) { p.compare_and_swap(1, place, 0, 1); }

// The target refreshes for the flush of the other thread, before the bytes are there; it must do so
// again after they are.
TYPED_TEST(ThreadsFlushTest, AThreadsFlushAnnouncesNoPutThatIsNotDone) {
  for (const auto write_one : {put_one, add_one, swap_in_one}) {
    run<Interruptible<TypeParam>>({.options = {.threads = true}}, [&](Process& p) {
      p.lock_all();
      p.barrier();
      if (p.self() == 0) {
        std::future<void> flush;
        {
          const Interruption interruption(Operation::write_through, [&] {
            flush = in_another_thread([&] { p.flush(1); });
            p.barrier();
            p.barrier();
          });
          write_one(p);
        }
        flush.get();
        p.flush(1);
        p.barrier();
      } else {
        p.barrier();
        p.sync();
        p.barrier();
        p.barrier();
        p.sync();
        EXPECT_EQ(p.load(place), 1);
      }
      p.unlock_all();
    });
  }
}

// A thread that finds nothing to refresh, since another one has just begun, waits for that one.
TYPED_TEST(ThreadsFlushTest, NoThreadsSyncReturnsBeforeTheRefresh) {
  run<Interruptible<TypeParam>>({.options = {.threads = true}}, [](Process& p) {
    p.lock_all();
    p.barrier();
    if (p.self() == 0) {
      p.barrier();
      std::future<int> seen;
      {
        const Interruption interruption(Operation::refresh, [&] {
          seen = in_another_thread([&] {
            p.sync();
            return p.load(place);
          });
        });
        p.sync();
      }
      EXPECT_EQ(seen.get(), 1);
    } else {
      p.put(0, place, 1);
      p.flush(0);
      p.barrier();
    }
    p.unlock_all();
  });
}

}  // namespace
}  // namespace tombolo::windows::testing
