// SPDX-License-Identifier: Apache-2.0
// The rules of machine/contract.h for scc::Core: identity, sync words, waiting. The demands of
// backends/contract_test.cpp on the other machines, as programs in virtual time.
#include <algorithm>
#include <cstring>
#include <utility>

#include "backends/scc/testing/contract.h"

namespace tombolo::scc::testing {
namespace {

using machine::testing::CountingHook;
using machine::testing::expect_atomics_return_what_was_there;

class Contract : public SccContract {
 protected:
  template <class Between>
  void expect_a_store_before_a_later_load(Between&& between);
};
INSTANTIATE_TEST_SUITE_P(Memory, Contract, ::testing::Range(0u, Host::configurations),
                         name_of_configuration);

// ---- Identity ---------------------------------------------------------------------------------

TEST_P(Contract, KnowsItselfAndItsMemory) {
  constexpr Home cores = 3;
  constexpr std::size_t bytes = 200;
  auto layout = this->layout(cores);
  const Barrier together(layout, {0, 1, 2});
  std::array<int, cores> ran{};
  run({.cores = cores, .sync_bytes = layout.bytes(), .data_bytes = bytes}, [&](Core& core) {
    ASSERT_LT(core.self(), cores);
    ++ran[core.self()];
    EXPECT_EQ(core.cores(), cores);
    EXPECT_EQ(core.view({core.self(), 0}), nullptr);
    put_word_through(core, {core.self(), bytes - 8}, 100 + core.self());
    core.drain();
    ASSERT_TRUE(together.wait(core).ok());
    for (Home home = 0; home < cores; ++home) {
      EXPECT_EQ(core.data_bytes(home), bytes);
      core.refresh({home, 0}, bytes);
      EXPECT_EQ(get_word(core, {home, bytes - 8}), 100 + home);
    }
  });
  EXPECT_EQ(ran, (std::array{1, 1, 1}));
}

TEST_P(Contract, EmptyRangesAreAllowed) {
  run({.cores = 2, .data_bytes = 64}, [&](Core& core) {
    if (core.self() != 0) return;
    for (const DataPlace place : {DataPlace{0, 0}, DataPlace{1, 64}}) {
      std::byte none{1};
      expect_ok(core.read(place, &none, 0));
      EXPECT_EQ(none, std::byte{1});
      expect_ok(core.write(place, &none, 0));
      expect_ok(core.write_through(place, &none, 0));
      core.publish(place, 0);
      core.refresh(place, 0);
    }
    core.drain();
    for (const Home home : {0u, 1u}) EXPECT_EQ(get(core, {home, 0}, 64), Bytes(64));
  });
}

// ---- Sync words -------------------------------------------------------------------------------

TEST_P(Contract, AtomicsReturnWhatWasThere) {
  constexpr Home cores = kFar + 1;
  auto layout = this->layout(cores);
  const auto at = layout.take_lines(1);
  run({.cores = cores, .sync_bytes = layout.bytes()}, [&](Core& core) {
    if (core.self() != 0) return;
    for (const Home home : {0u, 1u, kFar}) {
      const auto word = core.word({home, at});
      expect_atomics_return_what_was_there(core, word);
    }
  });
}

TEST_P(Contract, AtomicsLoseNothing) {
  constexpr std::uint64_t rounds = 300;
  constexpr Home cores = 3;
  auto layout = this->layout(cores);
  const auto sum = layout.take_lines(1);
  const auto swapped = layout.take_lines(1);
  const auto counted = layout.take_lines(1);
  const Barrier together(layout, {0, 1, 2});
  with_seeds([&](std::uint64_t seed) {
    std::uint64_t taken = 0;
    run({.cores = cores, .sync_bytes = layout.bytes(), .seed = seed}, [&](Core& core) {
      Jitter jitter(core, seed);
      const auto sum_word = core.word({1, sum});
      const auto swap_word = core.word({0, swapped});
      const auto count_word = core.word({2, counted});
      for (std::uint64_t i = 0; i < rounds; ++i) {
        ASSERT_TRUE(jitter.pause(300).ok());
        core.fetch_add(sum_word, i);
        taken += core.exchange(swap_word, core.self() * rounds + i);
        std::uint64_t seen = core.load(count_word);
        for (;;) {
          const std::uint64_t found = core.compare_exchange(count_word, seen, seen + 1);
          if (found == seen) break;
          seen = found;
        }
      }
      ASSERT_TRUE(together.wait(core).ok());
      if (core.self() != 0) return;
      constexpr std::uint64_t all = cores * rounds;
      EXPECT_EQ(core.load(sum_word), cores * rounds * (rounds - 1) / 2);
      EXPECT_EQ(core.load(count_word), all);
      EXPECT_EQ(taken + core.load(swap_word), all * (all - 1) / 2);
    });
  });
}

// R3: stores reach memory in program order, loads are done in program order.
TEST_P(Contract, StoresArriveInOrder) {
  constexpr std::uint64_t rounds = 1000;
  constexpr Home cores = kFar + 1;
  auto layout = this->layout(cores);
  const auto first = layout.take_lines(1);
  const auto second = layout.take_lines(1);
  with_seeds_and_stores([&](std::uint64_t seed, Store store) {
    run({.cores = cores, .sync_bytes = layout.bytes(), .seed = seed}, [&](Core& core) {
      const auto a = core.word({kFar, first});
      const auto b = core.word({0, second});
      if (core.self() == 0) {
        Jitter jitter(core, seed);
        for (std::uint64_t i = 1; i <= rounds; ++i) {
          (core.*store)(a, i);
          (core.*store)(b, i);
          ASSERT_TRUE(jitter.pause(200).ok());
        }
      } else if (core.self() == 1) {
        for (std::uint64_t late = 0; late < rounds;) {
          late = core.load(b);
          ASSERT_GE(core.load(a), late);
          ASSERT_TRUE(core.pause(10).ok());
        }
      }
    });
  });
}

// R3: with between(core, ...) between its store and its load, one of two cores sees the other.
// Their stores go further than their loads.
template <class Between>
void Contract::expect_a_store_before_a_later_load(Between&& between) {
  constexpr std::uint64_t rounds = 300;
  constexpr Home cores = kFar + 1;
  auto layout = this->layout(cores);
  const auto flag = layout.take_lines(1);
  const auto elsewhere = layout.take_lines(1);
  const Barrier together(layout, {0, kFar});
  with_seeds_and_stores([&](std::uint64_t seed, Store store) {
    std::array<std::vector<std::uint64_t>, cores> seen;
    run({.cores = cores, .sync_bytes = layout.bytes(), .seed = seed}, [&](Core& core) {
      if (core.self() != 0 && core.self() != kFar) return;
      Jitter jitter(core, seed);
      const auto mine = core.word({kFar - core.self(), flag});
      const auto other = core.word({core.self(), flag});
      for (std::uint64_t i = 1; i <= rounds; ++i) {
        ASSERT_TRUE(together.wait(core).ok());
        ASSERT_TRUE(jitter.pause(1000).ok());
        (core.*store)(mine, i);
        between(core, core.word({core.self(), elsewhere}), i);
        seen[core.self()].push_back(core.load(other));
      }
    });
    ASSERT_EQ(seen[0].size(), rounds);
    ASSERT_EQ(seen[kFar].size(), rounds);
    for (std::uint64_t i = 0; i < rounds; ++i)
      ASSERT_FALSE(seen[0][i] <= i && seen[kFar][i] <= i) << "in round " << i;
  });
}

TEST_P(Contract, FenceOrdersAStoreBeforeALaterLoad) {
  expect_a_store_before_a_later_load([](Core& core, Core::Word, std::uint64_t) { core.fence(); });
}

TEST_P(Contract, AnAtomicOrdersAStoreBeforeALaterLoad) {
  expect_a_store_before_a_later_load(
      [](Core& core, Core::Word elsewhere, std::uint64_t i) { core.exchange(elsewhere, i); });
}

// A core that stores and then never calls again does not keep the store to itself.
TEST_P(Contract, AStoreArrivesWithoutFurtherCalls) {
  auto layout = this->layout(2);
  const auto flag = layout.take_lines(1);
  for (const Store store : kStores) {
    run({.cores = 2, .sync_bytes = layout.bytes()}, [&](Core& core) {
      const auto word = core.word({1, flag});
      if (core.self() == 0)
        (core.*store)(word, 1);
      else
        expect_ok(core.wait_until(word, [](std::uint64_t v) { return v == 1; }));
    });
  }
}

// ---- Waiting ----------------------------------------------------------------------------------

TEST_P(Contract, AFailureOfTheIdleHookEndsAWait) {
  auto layout = this->layout(1);
  const auto never = layout.take_lines(1);
  CountingHook hook(5);
  run({.cores = 1, .sync_bytes = layout.bytes(), .idle = &hook}, [&](Core& core) {
    const Status status =
        core.wait_until(core.word({0, never}), [](std::uint64_t v) { return v == 1; });
    EXPECT_EQ(status.code(), Code::process_failed);
    EXPECT_EQ(status.rank(), 1);
  });
  EXPECT_EQ(hook.calls(), 5);
}

// Once in so many pauses, on this machine.
TEST_P(Contract, PauseRunsTheIdleHook) {
  CountingHook hook(3);
  run({.cores = 1, .idle = &hook}, [&](Core& core) {
    const Time start = core.cpu().now();
    std::int64_t pauses = 0;
    Status status;
    for (; status.ok() && pauses < 1000; ++pauses) status = core.pause(100);
    EXPECT_EQ(status.code(), Code::process_failed);
    EXPECT_EQ(core.cpu().now() - start, Duration::nanoseconds(100 * pauses));
  });
  EXPECT_EQ(hook.calls(), 3);
}

TEST_P(Contract, APredicateThatHoldsNeedsNoWait) {
  auto layout = this->layout(1);
  const auto at = layout.take_lines(1);
  CountingHook hook(1);
  run({.cores = 1, .sync_bytes = layout.bytes(), .idle = &hook}, [&](Core& core) {
    const auto word = core.word({0, at});
    core.store(word, 9);
    // So often that the hook would have run.
    for (int n = 0; n < 200; ++n)
      expect_ok(core.wait_until(word, [](std::uint64_t v) { return v == 9; }));
  });
  EXPECT_EQ(hook.calls(), 0);
}

// R6: a token goes round; a core without it waits.
TEST_P(Contract, ATokenGoesRound) {
  constexpr Home cores = 6;
  constexpr std::uint64_t rounds = 20;
  auto layout = this->layout(cores);
  const auto token = layout.take_lines(1);
  for (const Store store : kStores) {
    std::vector<Home> order;
    run({.cores = cores, .sync_bytes = layout.bytes()}, [&](Core& core) {
      const auto mine = core.word({core.self(), token});
      const Home next = (core.self() + 1) % cores;
      for (std::uint64_t round = 1; round <= rounds; ++round) {
        const std::uint64_t wanted = core.self() == 0 ? round - 1 : round;
        const auto is_wanted = [&](std::uint64_t v) { return v == wanted; };
        ASSERT_TRUE(core.wait_until(mine, is_wanted).ok());
        order.push_back(core.self());
        (core.*store)(core.word({next, token}), round);
        core.notify(next);
      }
      if (core.self() == 0)
        expect_ok(core.wait_until(mine, [&](std::uint64_t v) { return v == rounds; }));
    });
    ASSERT_EQ(order.size(), cores * rounds);
    for (std::size_t i = 0; i < order.size(); ++i) ASSERT_EQ(order[i], i % cores);
  }
}

// A waiter notices a change that comes long after it began to wait.
TEST_P(Contract, ASleeperWakes) {
  auto layout = this->layout(2);
  const auto flag = layout.take_lines(1);
  run({.cores = 2, .sync_bytes = layout.bytes()}, [&](Core& core) {
    const auto word = core.word({0, flag});
    if (core.self() == 0) {
      expect_ok(core.wait_until(word, [](std::uint64_t v) { return v == 1; }));
    } else {
      expect_ok(core.pause(2'000'000));
      core.store(word, 1);
      core.notify(0);
    }
  });
}

}  // namespace
}  // namespace tombolo::scc::testing
