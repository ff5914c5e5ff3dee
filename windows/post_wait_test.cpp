// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>

#include "base/random.h"
#include "windows/testing/processes.h"

namespace tombolo::windows::testing {
namespace {

class PostWaitTest : public OnEachMachine {};
INSTANTIATE_TEST_SUITE_P(On, PostWaitTest, ::testing::ValuesIn(test_machines()), name_of_machine);

void let_others_run() { std::this_thread::sleep_for(std::chrono::milliseconds(2)); }

TEST_P(PostWaitTest, PostShowsPlainStoresOfTheOwnerToGets) {
  run(GetParam(), {.processes = 3}, [](Process& p) {
    for (int round = 1; round <= 20; ++round) {
      if (p.self() == 0) {
        p.store(48, round);
        p.post({1, 2});
        p.wait();
      } else {
        p.start({0});
        EXPECT_EQ(p.get(0, 48), round);
        p.complete();
      }
    }
  });
}

TEST_P(PostWaitTest, WaitShowsPutsToThePlainLoadsOfTheTarget) {
  run(GetParam(), {.processes = 3}, [](Process& p) {
    for (int round = 1; round <= 20; ++round) {
      if (p.self() == 0) {
        p.post({1, 2});
        p.wait();
        EXPECT_EQ(p.load(4), round + 1);
        EXPECT_EQ(p.load(8), round + 2);
      } else {
        p.start({0});
        p.put(0, 4 * p.self(), round + static_cast<int>(p.self()));
        p.complete();
      }
    }
  });
}

TEST_P(PostWaitTest, TestShowsPutsToThePlainLoadsOfTheTarget) {
  run(GetParam(), {.processes = 2}, [](Process& p) {
    for (int round = 1; round <= 20; ++round) {
      if (p.self() == 0) {
        p.post({1});
        while (!p.test()) p.pause();
        EXPECT_EQ(p.load(12), round);
      } else {
        p.start({0});
        p.put(0, 12, round);
        p.complete();
      }
    }
  });
}

TEST_P(PostWaitTest, CompleteBringsPutsToMemoryForOthers) {
  run(GetParam(), {.processes = 3}, [](Process& p) {
    for (int round = 1; round <= 10; ++round) {
      if (p.self() == 0) {
        p.post({1});
        p.wait();
        p.post({2});
        p.wait();
      } else {
        p.start({0});
        if (p.self() == 1)
          p.put(0, 200, round);
        else
          EXPECT_EQ(p.get(0, 200), round);
        p.complete();
      }
    }
  });
}

TEST_P(PostWaitTest, WaitKeepsPlainStoresOfAnEpochWithoutPuts) {
  run(GetParam(), {.processes = 2}, [](Process& p) {
    for (int round = 1; round <= 20; ++round) {
      if (p.self() == 0) {
        p.post({1});
        p.store(700, round);
        p.wait();
        EXPECT_EQ(p.load(700), round);
      } else {
        p.start({0});
        p.get(0, 0);
        p.complete();
      }
    }
  });
}

TEST_P(PostWaitTest, StartDoesNotWaitForThePost) {
  run(GetParam(), {.processes = 2}, [](Process& p) {
    if (p.self() == 0) {
      p.barrier();  // not before the start has returned
      p.post({1});
      p.wait();
    } else {
      p.start({0});
      p.barrier();
      p.put(0, 0, 1);
      p.complete();
    }
  });
}

// Runs origin(p, posts) while process 0 has not posted yet; `posts` is true from just before it
// does.
template <class Origin>
void run_with_a_late_post(const TestMachine& machine, Origin&& origin) {
  std::atomic<bool> posts = false;
  run(machine, {.processes = 2}, [&](Process& p) {
    if (p.self() == 0) {
      posts = false;
      p.barrier();
      let_others_run();
      posts = true;
      p.post({1});
      p.wait();
    } else {
      p.barrier();
      origin(p, posts);
    }
  });
}

TEST_P(PostWaitTest, PutWaitsForThePost) {
  run_with_a_late_post(GetParam(), [](Process& p, const std::atomic<bool>& posts) {
    p.start({0});
    p.put(0, 0, 1);
    EXPECT_TRUE(posts);
    p.complete();
  });
}

TEST_P(PostWaitTest, CompleteWaitsForThePostOfATargetWithoutCommunication) {
  run_with_a_late_post(GetParam(), [](Process& p, const std::atomic<bool>& posts) {
    p.start({0});
    p.complete();
    EXPECT_TRUE(posts);
  });
}

TEST_P(PostWaitTest, WaitReturnsAfterEveryOriginHasCompleted) {
  std::atomic<int> completing = 0;
  run(GetParam(), {.processes = 4}, [&](Process& p) {
    if (p.self() == 0) completing = 0;
    p.barrier();
    if (p.self() == 0) {
      p.post({1, 2, 3});
      p.wait();
      EXPECT_EQ(completing, 3);
    } else {
      p.start({0});
      if (p.self() == 3) let_others_run();
      ++completing;
      p.complete();
    }
  });
}

TEST_P(PostWaitTest, TestIsFalseUntilTheOriginCompletes) {
  run(GetParam(), {.processes = 2}, [](Process& p) {
    if (p.self() == 0) {
      p.post({1});
      EXPECT_FALSE(p.test());
      EXPECT_FALSE(p.test());
      p.barrier();
      p.wait();
    } else {
      p.barrier();
      p.start({0});
      p.complete();
    }
  });
}

TEST_P(PostWaitTest, ALateTargetDelaysNoOtherTarget) {
  std::atomic<bool> other_is_done = false;
  run(GetParam(), {.processes = 3}, [&](Process& p) {
    if (p.self() == 0) other_is_done = false;
    p.barrier();
    if (p.self() == 0) {
      p.start({1, 2});
      p.put(2, 0, 7);
      p.complete();
    } else if (p.self() == 1) {
      while (!other_is_done) p.pause();
      p.post({0});
      p.wait();
    } else {
      p.post({0});
      p.wait();
      EXPECT_EQ(p.load(0), 7);
      other_is_done = true;
    }
  });
}

TEST_P(PostWaitTest, KeepsEveryByteOfOddPiecesThatSeveralOriginsPutIntoOneLine) {
  constexpr Offset bytes = 320;
  run(GetParam(), {.processes = 4, .bytes = bytes}, [&](Process& p) {
    for (unsigned char round = 1; round <= 20; ++round) {
      // Pieces of 3 bytes, dealt round about.
      if (p.self() == 0) {
        p.post({1, 2, 3});
        p.wait();
        for (Offset at = 0; at < bytes; ++at) {
          const auto origin = static_cast<unsigned char>(1 + at / 3 % 3);
          ASSERT_EQ(p.load_at<unsigned char>(0, at), round * 4 + origin) << "byte " << at;
        }
      } else {
        const auto value = static_cast<unsigned char>(round * 4 + p.self());
        const std::array<unsigned char, 3> piece = {value, value, value};
        p.start({0});
        for (Offset at = 3 * (p.self() - 1); at < bytes; at += 9)
          p.put_bytes(0, at, piece.data(), std::min<std::size_t>(3, bytes - at));
        p.complete();
      }
    }
  });
}

TEST_P(PostWaitTest, ServesAProcessThatIsOriginAndTargetOfAll) {
  run(GetParam(), {.processes = 4}, [](Process& p) {
    const std::vector<Home> peers = others(p.processes(), p.self());
    for (int round = 1; round <= 10; ++round) {
      p.post(peers);
      p.start(peers);
      for (const Home peer : peers) p.put(peer, 4 * p.self(), round * 10 + int(p.self()));
      p.complete();
      p.wait();
      for (const Home peer : peers)
        EXPECT_EQ(p.load(4 * peer), round * 10 + static_cast<int>(peer));
    }
  });
}

TEST_P(PostWaitTest, ServesAProcessThatIsItsOwnTarget) {
  run(GetParam(), {.processes = 1}, [](Process& p) {
    for (int round = 1; round <= 5; ++round) {
      p.post({0});
      p.start({0});
      p.put(0, 20, round);
      p.complete();
      p.wait();
      EXPECT_EQ(p.load(20), round);
    }
  });
}

TEST_P(PostWaitTest, EmptyGroupsWaitForNobody) {
  run(GetParam(), {.processes = 2}, [](Process& p) {
    if (p.self() == 1) return;
    p.post({});
    p.start({});
    p.complete();
    p.wait();
  });
}

// The pairs of origin and target in a round: the same in every process.
std::vector<Home> random_targets(std::uint64_t seed, int round, Home origin, Home n) {
  Random random = Random::stream(seed, static_cast<std::uint64_t>(round) * 64 + origin);
  std::vector<Home> targets;
  for (Home home = 0; home < n; ++home)
    if (random.one_in(2)) targets.push_back(home);
  for (std::size_t i = targets.size(); i > 1; --i)
    std::swap(targets[i - 1], targets[random.below(i)]);
  return targets;
}

TEST_P(PostWaitTest, ServesRandomGroups) {
  constexpr Home n = 5;
  run(GetParam(), {.processes = n}, [&](Process& p) {
    std::array<int, n> expected{};
    for (int round = 1; round <= 60; ++round) {
      std::vector<Home> origins;
      for (Home origin = 0; origin < n; ++origin)
        for (const Home target : random_targets(99, round, origin, n))
          if (target == p.self()) {
            origins.push_back(origin);
            expected[origin] = round;
          }
      const std::vector<Home> targets = random_targets(99, round, p.self(), n);
      // Not always in this order, but a post first: two targets of each other must not both wait.
      p.post(origins);
      p.start(targets);
      for (const Home target : targets) p.put(target, 4 * p.self(), round);
      p.complete();
      p.wait();
      for (Home origin = 0; origin < n; ++origin)
        EXPECT_EQ(p.load(4 * origin), expected[origin]) << "round " << round;
    }
  });
}

}  // namespace
}  // namespace tombolo::windows::testing
