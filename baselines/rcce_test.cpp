// SPDX-License-Identifier: Apache-2.0
// Tests of RCCE and iRCCE: real bytes through the simulated buffers.
#include "baselines/rcce.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "baselines/ircce.h"
#include "baselines/testing.h"

namespace tombolo::baselines {
namespace {

using testing::fill;
using testing::is;

template <class Library, class Program>
simulator::RunResult run(std::uint32_t processes, Program&& program, Omitted omitted = {}) {
  return testing::run_cores(processes,
                            [&](Cpu& cpu, std::uint32_t rank, const std::vector<CoreId>& cores) {
                              Library library(cpu, rank, cores, omitted);
                              program(library);
                            });
}

constexpr std::size_t sizes[] = {1, 31, 32, 33, 3904, 4000, 7840, 7841, 20'001, 100'000};

TEST(Rcce, MessagesOfAllKindsOfSizes) {
  for (const std::uint32_t processes : {2u, 48u}) {
    const auto result = run<Rcce>(processes, [](Rcce& rcce) {
      for (const std::size_t bytes : sizes) {
        const Place place = rcce.memory().allocate(bytes);
        if (rcce.rank() == 0) {
          fill(place, bytes, bytes);
          rcce.send(place, bytes, 1);
        } else if (rcce.rank() == 1) {
          rcce.recv(place, bytes, 0);
          EXPECT_TRUE(is(place, bytes, bytes)) << bytes << " bytes";
        }
      }
      rcce.barrier();
    });
    EXPECT_TRUE(result.status.ok()) << result.status.message();
  }
}

TEST(Rcce, ManyToOne) {
  const auto result = run<Rcce>(20, [](Rcce& rcce) {
    const Place place = rcce.memory().allocate(9000);
    if (rcce.rank() == 0) {
      for (std::uint32_t from = 19; from > 0; --from) {
        rcce.recv(place, 9000, from);
        EXPECT_TRUE(is(place, 9000, from));
      }
    } else {
      fill(place, 9000, rcce.rank());
      rcce.send(place, 9000, 0);
    }
  });
  EXPECT_TRUE(result.status.ok()) << result.status.message();
}

TEST(Rcce, OneSidedBetweenBarriers) {
  const auto result = run<Rcce>(9, [](Rcce& rcce) {
    const Place place = rcce.memory().allocate(500);
    for (int i = 0; i < 300; ++i) {
      const std::uint32_t to = (rcce.rank() + i) % 9;
      fill(place, 500, rcce.rank() + i);
      rcce.put(place, to, 0, 500);
      rcce.barrier();
      rcce.get(rcce.rank(), 0, place, 500);
      EXPECT_TRUE(is(place, 500, (rcce.rank() + 9 * 40 - i) % 9 + i));
      rcce.barrier();
    }
  });
  EXPECT_TRUE(result.status.ok()) << result.status.message();
}

// A flag that stays in L1 or in the combining buffer is polled for ever.
TEST(Rcce, NeedsItsInvalidationAndItsFlush) {
  const auto exchange = [](Omitted omitted) {
    return run<Rcce>(
        2,
        [](Rcce& rcce) {
          const Place place = rcce.memory().allocate(100);
          for (int i = 0; i < 5; ++i) {
            if (rcce.rank() == 0) rcce.send(place, 100, 1);
            if (rcce.rank() == 1) rcce.recv(place, 100, 0);
          }
        },
        omitted);
  };
  EXPECT_TRUE(exchange({}).status.ok());
  EXPECT_EQ(exchange({.invalidation = true}).ending, simulator::Ending::time_limit);
  EXPECT_EQ(exchange({.flush = true}).ending, simulator::Ending::time_limit);
}

// Each waits to be received from: blocking sends in a ring.
TEST(Rcce, BlockingSendsInARingEndAtTheLimit) {
  const auto result = run<Rcce>(3, [](Rcce& rcce) {
    const Place place = rcce.memory().allocate(100);
    rcce.send(place, 100, (rcce.rank() + 1) % 3);
    rcce.recv(place, 100, (rcce.rank() + 2) % 3);
  });
  EXPECT_EQ(result.ending, simulator::Ending::time_limit);
  EXPECT_FALSE(result.status.ok());
}

TEST(Ircce, MessagesOfAllKindsOfSizes) {
  const auto result = run<Ircce>(2, [](Ircce& ircce) {
    for (const std::size_t bytes : sizes) {
      const Place place = ircce.memory().allocate(bytes);
      if (ircce.rank() == 0) {
        fill(place, bytes, bytes);
        ircce.wait(ircce.isend(place, bytes, 1));
      } else {
        ircce.wait(ircce.irecv(place, bytes, 0));
        EXPECT_TRUE(is(place, bytes, bytes)) << bytes << " bytes";
      }
    }
  });
  EXPECT_TRUE(result.status.ok()) << result.status.message();
}

TEST(Ircce, RandomMessagesAmongAllByWaitLists) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(seed);
    const std::uint32_t processes = 2 + static_cast<std::uint32_t>(Random(seed).below(8));
    const auto bytes_of = [seed](std::uint32_t from, std::uint32_t to, int n) {
      return Random::stream(seed, from * 10'000 + to * 100 + n).below(12'000);
    };
    const auto result = run<Ircce>(processes, [&](Ircce& ircce) {
      struct Expected {
        Place place;
        std::size_t bytes;
        std::uint64_t key;
      };
      WaitList list;
      std::vector<Expected> expected;
      for (int n = 0; n < 6; ++n)
        for (std::uint32_t other = 0; other < processes; ++other) {
          if (other == ircce.rank()) continue;
          const std::size_t in = bytes_of(other, ircce.rank(), n);
          expected.push_back({ircce.memory().allocate(in), in, other * 10 + n});
          list.add(ircce.irecv(expected.back().place, in, other));
          const std::size_t out = bytes_of(ircce.rank(), other, n);
          const Place place = ircce.memory().allocate(out);
          fill(place, out, ircce.rank() * 10 + n);
          list.add(ircce.isend(place, out, other));
        }
      if (seed % 2 == 0) ircce.test_any(list);
      ircce.wait_all(list);
      for (const Expected& e : expected) EXPECT_TRUE(is(e.place, e.bytes, e.key));
    });
    EXPECT_TRUE(result.status.ok()) << result.status.message();
  }
}

}  // namespace
}  // namespace tombolo::baselines
