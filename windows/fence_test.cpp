// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <numeric>

#include "windows/testing/processes.h"

namespace tombolo::windows::testing {
namespace {

class FenceTest : public OnEachMachine {};
INSTANTIATE_TEST_SUITE_P(On, FenceTest, ::testing::ValuesIn(test_machines()), name_of_machine);

TEST_P(FenceTest, ShowsPutsToThePlainLoadsOfTheTarget) {
  run(GetParam(), {.processes = 3}, [](Process& p) {
    p.fence();
    for (int round = 1; round <= 20; ++round) {
      p.put(p.right(), 8, round * 100 + static_cast<int>(p.self()));
      p.fence();
      EXPECT_EQ(p.load(8), round * 100 + static_cast<int>(p.right(2)));
      p.fence();
    }
  });
}

TEST_P(FenceTest, ShowsPutsToTheGetsOfOthers) {
  run(GetParam(), {.processes = 3}, [](Process& p) {
    p.fence();
    for (int round = 1; round <= 20; ++round) {
      if (p.self() == 0) p.put(1, 24, round);
      p.fence();
      if (p.self() == 2) {
        EXPECT_EQ(p.get(1, 24), round);
      }
      p.fence();
    }
  });
}

TEST_P(FenceTest, ShowsPlainStoresOfTheOwnerToGets) {
  run(GetParam(), {.processes = 3}, [](Process& p) {
    // The promise leaves nothing to the next fence but to publish.
    p.fence({.no_put = true});
    for (int round = 1; round <= 20; ++round) {
      p.store(40, round + static_cast<int>(p.self()));
      p.fence({.no_put = true});
      EXPECT_EQ(p.get(p.right(), 40), round + static_cast<int>(p.right()));
      p.fence({.no_put = true});
    }
  });
}

TEST_P(FenceTest, KeepsPlainStoresOfAnEpochWithoutPuts) {
  run(GetParam(), {.processes = 2}, [](Process& p) {
    p.fence();
    for (int round = 1; round <= 20; ++round) {
      p.store(512, round);
      p.get(p.right(), 0);
      p.fence();
      EXPECT_EQ(p.load(512), round);
    }
  });
}

TEST_P(FenceTest, KeepsEveryByteOfOddPiecesThatSeveralOriginsPutIntoOneLine) {
  constexpr Offset bytes = 640;
  run(GetParam(), {.processes = 4, .bytes = bytes}, [&](Process& p) {
    constexpr std::array<std::size_t, 6> sizes = {1, 3, 5, 7, 11, 13};
    p.fence();
    for (unsigned round = 0; round < 10; ++round) {
      std::array<unsigned char, bytes> expected{};
      std::size_t piece = round;
      for (Offset at = 0; at < bytes; ++piece) {
        const std::size_t n = std::min(sizes[piece % sizes.size()], bytes - at);
        const Home origin = static_cast<Home>(piece % p.processes());
        const auto value = static_cast<unsigned char>(1 + (piece * 7 + round) % 255);
        std::fill_n(expected.begin() + static_cast<long>(at), n, value);
        if (origin == p.self()) p.put_bytes(0, at, &expected[at], n);
        at += n;
      }
      p.fence();
      if (p.self() == 0) {
        std::array<unsigned char, bytes> seen;
        p.load_bytes(0, 0, seen.data(), bytes);
        EXPECT_EQ(seen, expected);
      }
      p.fence();
    }
  });
}

TEST_P(FenceTest, CompletesPutsToOneself) {
  run(GetParam(), {.processes = 2}, [](Process& p) {
    p.fence();
    p.put(p.self(), 100, 4711);
    p.fence();
    EXPECT_EQ(p.load(100), 4711);
    EXPECT_EQ(p.get(p.self(), 100), 4711);
    EXPECT_EQ(p.get(p.right(), 100), 4711);
    p.fence();
  });
}

TEST_P(FenceTest, LetsGetsReadWhatWasGotBefore) {
  // A line that was got is old in the next epoch.
  run(GetParam(), {.processes = 2}, [](Process& p) {
    for (int round = 0; round < 30; ++round) {
      if (p.self() == 0) p.store(64, round);
      p.fence();
      if (p.self() == 1) {
        EXPECT_EQ(p.get(0, 64), round);
      }
      p.fence();
    }
  });
}

TEST_P(FenceTest, MovesLargeAndUnalignedRanges) {
  constexpr std::size_t bytes = 100'000;
  run(GetParam(), {.processes = 2, .bytes = bytes + 64}, [&](Process& p) {
    std::vector<unsigned char> out(bytes), in(bytes);
    for (std::size_t i = 0; i < bytes; ++i)
      out[i] = static_cast<unsigned char>(i * 31 + i / 256 + p.self());
    p.fence();
    p.put_bytes(p.right(), 13, out.data(), bytes);
    p.fence();
    p.get_bytes(p.right(), 13, in.data(), bytes);
    p.fence();
    EXPECT_EQ(in, out);
  });
}

constexpr Offset left_edge = 0;
constexpr Offset right_edge = 1000;

TEST_P(FenceTest, ExchangesTheEdgesOfARing) {
  run(GetParam(), {.processes = 4}, [](Process& p) {
    int mine = static_cast<int>(p.self());
    p.fence();
    for (int round = 0; round < 20; ++round) {
      p.put(p.right(), left_edge, mine);
      p.put(p.right(p.processes() - 1), right_edge, mine);
      p.fence();
      mine = p.load(left_edge) + p.load(right_edge);
      p.fence();
    }
    // Every round doubles the sum over the ring, 0 + 1 + 2 + 3 at first.
    p.accumulate(0, 2000, Op::sum, Element::i32, &mine, 1);
    p.fence();
    if (p.self() == 0) {
      EXPECT_EQ(p.load(2000), 6 << 20);
    }
  });
}

TEST_P(FenceTest, WorksAlone) {
  run(GetParam(), {.processes = 1}, [](Process& p) {
    p.fence();
    p.store(0, 1);
    p.put(0, 64, 2);
    p.fence();
    EXPECT_EQ(p.load(0), 1);
    EXPECT_EQ(p.load(64), 2);
  });
}

}  // namespace
}  // namespace tombolo::windows::testing
