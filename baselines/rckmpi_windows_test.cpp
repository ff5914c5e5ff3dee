// SPDX-License-Identifier: Apache-2.0
// Tests of RCKMPI's one-sided communication.
#include "baselines/rckmpi_windows.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/random.h"
#include "baselines/testing.h"

namespace tombolo::baselines {
namespace {

using simulator::Duration;
using testing::fill;
using testing::is;
using testing::run;

constexpr LockRequests both[] = {LockRequests::deferred, LockRequests::immediate};

std::vector<std::uint32_t> all_ranks(std::uint32_t size) {
  std::vector<std::uint32_t> ranks(size);
  for (std::uint32_t rank = 0; rank < size; ++rank) ranks[rank] = rank;
  return ranks;
}

// Each puts a block of random size into its slot at each target, itself included.
template <class Epoch>
void exchange(std::uint32_t processes, std::uint64_t seed, Epoch&& epoch) {
  constexpr std::size_t slot = 700;
  const auto bytes_of = [seed](std::uint32_t from, std::uint32_t to, int round) {
    return 1 + Random::stream(seed, from * 10'000 + to * 100 + round).below(slot - 1);
  };
  const auto result = run(processes, [&](Rckmpi& mpi) {
    const Place memory = mpi.memory().allocate(slot * mpi.size());
    RckmpiWindow window(mpi, memory, slot * mpi.size());
    for (int round = 0; round < 4; ++round) {
      const Place out = mpi.memory().allocate(slot * mpi.size());
      epoch(window, [&] {
        for (std::uint32_t to = 0; to < mpi.size(); ++to) {
          const std::size_t bytes = bytes_of(mpi.rank(), to, round);
          fill(out + to * slot, bytes, mpi.rank() * 10 + round);
          window.put(out + to * slot, bytes, to, mpi.rank() * slot);
        }
      });
      for (std::uint32_t from = 0; from < mpi.size(); ++from)
        EXPECT_TRUE(is(memory + from * slot, bytes_of(from, mpi.rank(), round), from * 10 + round))
            << "rank " << mpi.rank() << " from " << from << ", round " << round;
      mpi.barrier();
    }
    window.free();
  });
  EXPECT_TRUE(result.status.ok()) << result.status.message();
}

TEST(RckmpiWindow, PutsBetweenFences) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(seed);
    exchange(1 + static_cast<std::uint32_t>(Random(seed).below(9)), seed,
             [](RckmpiWindow& window, auto&& puts) {
               puts();
               window.fence();
             });
  }
}

TEST(RckmpiWindow, PutsInGroups) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(seed);
    const std::uint32_t processes = 1 + static_cast<std::uint32_t>(Random(seed).below(9));
    const std::vector<std::uint32_t> all = all_ranks(processes);
    exchange(processes, seed, [&](RckmpiWindow& window, auto&& puts) {
      window.post(all);
      window.start(all);
      puts();
      window.complete();
      window.wait();
    });
  }
}

TEST(RckmpiWindow, EmptyEpochsAndTwoWindowsAtOnce) {
  const auto result = run(6, [](Rckmpi& mpi) {
    const Place memory = mpi.memory().allocate(64);
    RckmpiWindow upper(mpi, memory, 32);
    RckmpiWindow lower(mpi, memory + 32, 32);
    const std::uint32_t neighbours[] = {(mpi.rank() + 1) % 6, (mpi.rank() + 5) % 6};
    const Place out = mpi.memory().allocate(32);
    for (int i = 0; i < 10; ++i) {
      fill(out, 32, mpi.rank() + i);
      upper.post(neighbours);
      lower.post(neighbours);
      upper.start(neighbours);
      lower.start(neighbours);
      lower.put(out, 32, neighbours[0], 0);
      if (i % 3 != 0) upper.put(out, 32, neighbours[1], 0);
      upper.complete();
      lower.complete();
      upper.wait();
      lower.wait();
      EXPECT_TRUE(is(memory + 32, 32, neighbours[1] + i));
      if (i % 3 != 0) {
        EXPECT_TRUE(is(memory, 32, neighbours[0] + i));
      }
    }
    upper.free();
    lower.free();
  });
  EXPECT_TRUE(result.status.ok()) << result.status.message();
}

TEST(RckmpiWindow, Gets) {
  const auto result = run(5, [](Rckmpi& mpi) {
    const Place memory = mpi.memory().allocate(9000);
    fill(memory, 9000, mpi.rank());
    RckmpiWindow window(mpi, memory, 9000);
    const Place in = mpi.memory().allocate(9000 * 5);
    for (std::uint32_t from = 0; from < 5; ++from) {
      window.get(in + from * 9000, 4000, from, 0);
      window.get(in + (from * 9000 + 4000), 5000, from, 4000);
    }
    window.fence();
    for (std::uint32_t from = 0; from < 5; ++from)
      EXPECT_TRUE(is(in + from * 9000, 9000, from)) << from;
    window.free();
  });
  EXPECT_TRUE(result.status.ok()) << result.status.message();
}

// The window's bytes are those of its core's caches.
TEST(RckmpiWindow, AWindowInTheSimulatedMemory) {
  const auto result = run(2, [](Rckmpi& mpi) {
    const Place memory = mpi.memory().allocate_simulated(1000);
    std::vector<std::byte> bytes(1000);
    fill(bytes.data(), bytes.size(), mpi.rank());
    store(mpi.cpu(), memory, bytes.data(), bytes.size());
    RckmpiWindow window(mpi, memory, 1000);
    const Place ours = mpi.memory().allocate_simulated(500);
    store(mpi.cpu(), ours, bytes.data(), 500);
    if (mpi.rank() == 0) window.put(ours, 500, 1, 300);
    window.fence();
    if (mpi.rank() == 1) {
      std::vector<std::byte> got(1000);
      load(mpi.cpu(), memory, got.data(), got.size());
      EXPECT_TRUE(is(got.data() + 300, 500, 0));
      EXPECT_EQ(std::memcmp(got.data(), bytes.data(), 300), 0);
      EXPECT_EQ(std::memcmp(got.data() + 800, bytes.data() + 800, 200), 0);
    }
    window.free();
  });
  EXPECT_TRUE(result.status.ok()) << result.status.message();
}

TEST(RckmpiWindow, AllAddToOne) {
  for (const LockRequests requests : both) {
    const auto result = run(12, [&](Rckmpi& mpi) {
      const Place memory = mpi.memory().allocate(400);
      RckmpiWindow window(mpi, memory, 400, requests);
      const Place out = mpi.memory().allocate(400);
      for (int i = 0; i < 50; ++i) {
        const std::int64_t number = mpi.rank() + i;
        std::memcpy(out.host + i * 8, &number, 8);
      }
      for (int i = 0; i < 3; ++i) {
        window.lock(LockKind::shared, 4);
        window.accumulate(out, 400, 4, 0, Combine::sum_int64);
        window.unlock(4);
      }
      mpi.barrier();
      for (int i = 0; i < 50 && mpi.rank() == 4; ++i) {
        std::int64_t number = 0;
        std::memcpy(&number, memory.host + i * 8, 8);
        EXPECT_EQ(number, 3 * (66 + 12 * i));
      }
      window.free();
    });
    EXPECT_TRUE(result.status.ok()) << result.status.message();
  }
}

// Writers put a pattern in several pieces under an exclusive lock; readers see one writer's.
TEST(RckmpiWindow, ExclusiveLocksKeepOthersOut) {
  for (const LockRequests requests : both) {
    const auto result = run(10, [&](Rckmpi& mpi) {
      constexpr std::size_t message_bytes = 4000;
      const Place memory = mpi.memory().allocate(message_bytes);
      if (mpi.rank() == 3) fill(memory, message_bytes, 0);
      RckmpiWindow window(mpi, memory, message_bytes, requests);
      const Place ours = mpi.memory().allocate(message_bytes);
      Random random(mpi.rank());
      for (int i = 0; i < 10; ++i) {
        const bool writes = random.one_in(2);
        window.lock(writes ? LockKind::exclusive : LockKind::shared, 3);
        if (writes) fill(ours, message_bytes, mpi.rank());
        for (std::size_t at = 0; at < message_bytes; at += 1000) {
          if (writes) window.put(ours + at, 1000, 3, at);
          if (!writes) window.get(ours + at, 1000, 3, at);
        }
        window.unlock(3);
        int writers = 0;
        for (std::uint32_t rank = 0; rank < mpi.size(); ++rank)
          writers += is(ours, message_bytes, rank);
        EXPECT_EQ(writers, 1) << "rank " << mpi.rank() << ", epoch " << i;
      }
      mpi.barrier();
      window.free();
    });
    EXPECT_TRUE(result.status.ok()) << result.status.message();
  }
}

TEST(RckmpiWindow, AnEmptyDeferredEpochSendsNothing) {
  for (const LockRequests requests : both) {
    const auto result = run(2, [&](Rckmpi& mpi) {
      RckmpiWindow window(mpi, mpi.memory().allocate(8), 8, requests);
      if (mpi.rank() == 0) {
        const auto before = mpi.cpu().counters().requests_written;
        window.lock(LockKind::exclusive, 1);
        window.unlock(1);
        const auto writes = mpi.cpu().counters().requests_written - before;
        EXPECT_EQ(writes == 0, requests == LockRequests::deferred) << writes;
      }
      mpi.barrier();
      window.free();
    });
    EXPECT_TRUE(result.status.ok()) << result.status.message();
  }
}

// One-sided only in name: the origin waits until the target calls in.
TEST(RckmpiWindow, ATargetThatDoesNotCallInBlocksItsOrigins) {
  const auto result = run(2, [](Rckmpi& mpi) {
    RckmpiWindow window(mpi, mpi.memory().allocate(8), 8);
    const Place out = mpi.memory().allocate(8);
    if (mpi.rank() == 0) {
      window.lock(LockKind::shared, 1);
      window.put(out, 8, 1, 0);
      window.unlock(1);
      EXPECT_GT(mpi.cpu().now().since_start(), Duration::milliseconds(5));
    } else {
      mpi.cpu().compute(Duration::milliseconds(5));
    }
    window.free();
  });
  EXPECT_TRUE(result.status.ok()) << result.status.message();
}

// Two that wait for each other's post: the run ends at its limit.
TEST(RckmpiWindow, AMissingPostEndsAtTheLimit) {
  const auto result = run(2, [](Rckmpi& mpi) {
    RckmpiWindow window(mpi, mpi.memory().allocate(8), 8);
    const std::uint32_t other[] = {1 - mpi.rank()};
    window.start(other);
    window.complete();
    window.post(other);
    window.wait();
  });
  EXPECT_EQ(result.ending, simulator::Ending::time_limit);
}

}  // namespace
}  // namespace tombolo::baselines
