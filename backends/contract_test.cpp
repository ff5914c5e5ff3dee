// SPDX-License-Identifier: Apache-2.0
// Purpose: the rules of machine/contract.h as tests, for every machine. They are written for the
// most hostile machine, so nothing here may depend on luck or on time.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

#include "backends/machines.h"
#include "base/random.h"
#include "machine/testing/ensemble.h"
#include "machine/testing/rules.h"

namespace tombolo {
namespace {

using machine::DataPlace;
using machine::Home;
using machine::SyncLayout;
using machine::testing::CountingHook;
using machine::testing::Ensemble;
using machine::testing::EnsembleShape;
using machine::testing::expect_atomics_return_what_was_there;
using machine::testing::expect_ok;
using machine::testing::get_word;
using machine::testing::pattern;
using machine::testing::put_word;
using machine::testing::put_word_through;

template <class C>
class Contract : public ::testing::Test {
 protected:
  static constexpr std::array<std::uint64_t, 3> seeds{1, 77, 4242};

  // Runs test(shape) for each seed and for both rare and permanent evictions.
  template <class Test>
  void with_seeds(EnsembleShape shape, Test&& test) {
    for (const std::uint64_t seed : seeds) {
      for (const std::uint64_t evictions : {0, 2, 9}) {
        SCOPED_TRACE(fmt::format("seed {}, evictions {}", seed, evictions));
        shape.seed = seed;
        shape.evictions = evictions;
        test(shape);
        if (this->HasFatalFailure()) return;
      }
    }
  }
  // Room for words after the machine's own bytes.
  static SyncLayout layout(Home cores) { return SyncLayout(C::reserved_sync_bytes(cores)); }
};
using Machines = AllMachines::apply<::testing::Types>;
TYPED_TEST_SUITE(Contract, Machines, MachineNames);

// ---- Identity ---------------------------------------------------------------------------------

TYPED_TEST(Contract, KnowsItselfAndItsMemory) {
  auto layout = this->layout(3);
  layout.take_lines(1);
  Ensemble<TypeParam> ensemble({.cores = 3, .sync_bytes = layout.bytes(), .data_bytes = 200});
  for (Home home = 0; home < 3; ++home) {
    EXPECT_EQ(ensemble.core(home).self(), home);
    EXPECT_EQ(ensemble.core(home).cores(), 3u);
    for (Home other = 0; other < 3; ++other) EXPECT_EQ(ensemble.core(home).data_bytes(other), 200u);
  }
  EXPECT_GE(TypeParam::properties.line_bytes, 1u);
}

TYPED_TEST(Contract, EmptyRangesAreAllowed) {
  Ensemble<TypeParam> ensemble({.cores = 2, .data_bytes = 64});
  auto& core = ensemble.core(0);
  for (const DataPlace place : {DataPlace{0, 0}, DataPlace{1, 64}}) {
    std::byte none{};
    expect_ok(core.read(place, &none, 0));
    expect_ok(core.write(place, &none, 0));
    expect_ok(core.write_through(place, &none, 0));
    core.publish(place, 0);
    core.refresh(place, 0);
  }
  core.drain();
}

// ---- Sync words -------------------------------------------------------------------------------

TYPED_TEST(Contract, AtomicsReturnWhatWasThere) {
  auto layout = this->layout(2);
  const auto at = layout.take_lines(1);
  Ensemble<TypeParam> ensemble({.cores = 2, .sync_bytes = layout.bytes()});
  auto& core = ensemble.core(0);
  for (const Home home : {0u, 1u}) {
    const auto word = core.word({home, at});
    expect_atomics_return_what_was_there(core, word);
  }
}

TYPED_TEST(Contract, AtomicsLoseNothing) {
  constexpr std::uint64_t rounds = 300;
  constexpr Home cores = 3;
  auto layout = this->layout(cores);
  const auto sum = layout.take_lines(1);
  const auto swapped = layout.take_lines(1);
  const auto counted = layout.take_lines(1);
  this->with_seeds({.cores = cores, .sync_bytes = layout.bytes()}, [&](const EnsembleShape& shape) {
    Ensemble<TypeParam> ensemble(shape);
    std::atomic<std::uint64_t> taken{0};
    ensemble.run([&](auto& core) {
      const auto sum_word = core.word({1, sum});
      const auto swap_word = core.word({0, swapped});
      const auto count_word = core.word({2, counted});
      for (std::uint64_t i = 0; i < rounds; ++i) {
        core.fetch_add(sum_word, i);
        taken += core.exchange(swap_word, core.self() * rounds + i);
        std::uint64_t seen = core.load(count_word);
        for (;;) {
          const std::uint64_t found = core.compare_exchange(count_word, seen, seen + 1);
          if (found == seen) break;
          seen = found;
        }
      }
    });
    auto& core = ensemble.core(0);
    EXPECT_EQ(core.load(core.word({1, sum})), cores * rounds * (rounds - 1) / 2);
    EXPECT_EQ(core.load(core.word({2, counted})), cores * rounds);
    constexpr std::uint64_t all = cores * rounds;
    EXPECT_EQ(taken + core.load(core.word({0, swapped})), all * (all - 1) / 2);
  });
}

// R3: stores reach memory in program order, loads are done in program order.
TYPED_TEST(Contract, StoresArriveInOrder) {
  constexpr std::uint64_t rounds = 2000;
  auto layout = this->layout(2);
  const auto first = layout.take_lines(1);
  const auto second = layout.take_lines(1);
  this->with_seeds({.cores = 2, .sync_bytes = layout.bytes()}, [&](const EnsembleShape& shape) {
    Ensemble<TypeParam> ensemble(shape);
    ensemble.run([&](auto& core) {
      const auto a = core.word({0, first});
      const auto b = core.word({1, second});
      if (core.self() == 0) {
        for (std::uint64_t i = 1; i <= rounds; ++i) {
          core.store(a, i);
          core.store(b, i);
        }
        return;
      }
      for (std::uint64_t late = 0; late < rounds;) {
        late = core.load(b);
        ASSERT_GE(core.load(a), late);
        if (late < rounds) std::this_thread::yield();
      }
    });
  });
}

// R3: with between(core, i) between its store and its load, one of two cores sees the other.
template <class C, class Between>
void expect_a_store_before_a_later_load(const EnsembleShape& shape, machine::Offset flag,
                                        std::uint64_t rounds, Between&& between) {
  Ensemble<C> ensemble(shape);
  std::barrier together(2);
  std::array<std::vector<std::uint64_t>, 2> seen;
  ensemble.run([&](C& core) {
    const auto mine = core.word({core.self(), flag});
    const auto other = core.word({1 - core.self(), flag});
    for (std::uint64_t i = 1; i <= rounds; ++i) {
      together.arrive_and_wait();
      core.store(mine, i);
      between(core, i);
      seen[core.self()].push_back(core.load(other));
    }
  });
  for (std::uint64_t i = 0; i < rounds; ++i)
    ASSERT_FALSE(seen[0][i] <= i && seen[1][i] <= i) << "in round " << i;
}

TYPED_TEST(Contract, FenceOrdersAStoreBeforeALaterLoad) {
  auto layout = this->layout(2);
  const auto flag = layout.take_lines(1);
  this->with_seeds({.cores = 2, .sync_bytes = layout.bytes()}, [&](const EnsembleShape& shape) {
    expect_a_store_before_a_later_load<TypeParam>(
        shape, flag, 1000, [](TypeParam& core, std::uint64_t) { core.fence(); });
  });
}

TYPED_TEST(Contract, AnAtomicOrdersAStoreBeforeALaterLoad) {
  auto layout = this->layout(2);
  const auto flag = layout.take_lines(1);
  const auto elsewhere = layout.take_lines(1);
  this->with_seeds({.cores = 2, .sync_bytes = layout.bytes()}, [&](const EnsembleShape& shape) {
    expect_a_store_before_a_later_load<TypeParam>(
        shape, flag, 500, [&](TypeParam& core, std::uint64_t i) {
          core.exchange(core.word({core.self(), elsewhere}), i);
        });
  });
}

// A core that stores and then never calls again does not keep the store to itself.
TYPED_TEST(Contract, AStoreArrivesWithoutFurtherCalls) {
  auto layout = this->layout(2);
  const auto flag = layout.take_lines(1);
  this->with_seeds({.cores = 2, .sync_bytes = layout.bytes()}, [&](const EnsembleShape& shape) {
    Ensemble<TypeParam> ensemble(shape);
    std::barrier together(2);
    ensemble.run([&](auto& core) {
      for (std::uint64_t i = 1; i <= 10; ++i) {
        if (core.self() == 0)
          core.store(core.word({1, flag}), i);
        else
          expect_ok(core.wait_until(core.word({1, flag}), [&](std::uint64_t v) { return v >= i; }));
        together.arrive_and_wait();
      }
    });
  });
}

// ---- Message passing --------------------------------------------------------------------------

// How the sender makes its data visible and where they lie.
struct Message {
  bool through;
  Home home;
  std::size_t offset;
  std::size_t bytes;
};

template <class C>
void pass_messages(const EnsembleShape& shape, machine::Offset full, machine::Offset empty,
                   const Message& message) {
  constexpr std::uint64_t rounds = 40;
  Ensemble<C> ensemble(shape);
  const DataPlace place{message.home, message.offset};
  ensemble.run([&](auto& core) {
    if (core.self() > 1) return;
    const auto full_word = core.word({1, full});
    const auto empty_word = core.word({0, empty});
    for (std::uint64_t round = 1; round <= rounds; ++round) {
      const auto wanted = pattern(message.bytes, round);
      const auto is_round = [&](std::uint64_t v) { return v == round; };
      if (core.self() == 0) {
        // Not ours since the receiver looked: another core may have written the line.
        core.refresh(place, message.bytes);
        if (message.through) {
          expect_ok(core.write_through(place, wanted.data(), wanted.size()));
          core.drain();
        } else {
          expect_ok(core.write(place, wanted.data(), wanted.size()));
          core.publish(place, wanted.size());
        }
        core.store(full_word, round);
        core.notify(1);
        expect_ok(core.wait_until(empty_word, is_round));
      } else {
        expect_ok(core.wait_until(full_word, is_round));
        core.refresh(place, message.bytes);
        std::vector<std::uint8_t> got(message.bytes);
        expect_ok(core.read(place, got.data(), got.size()));
        EXPECT_EQ(got, wanted) << "in round " << round;
        core.fetch_add(empty_word, 1);
        core.notify(0);
      }
    }
  });
}

TYPED_TEST(Contract, MessagesPass) {
  auto layout = this->layout(3);
  const auto full = layout.take_lines(1);
  const auto empty = layout.take_lines(1);
  for (const bool through : {false, true}) {
    for (const Home home : {0u, 1u, 2u}) {  // the third core has memory but takes no part
      for (const auto& [offset, bytes] : {std::pair<std::size_t, std::size_t>{0, 8},
                                          {61, 7},
                                          {128, 64},
                                          {3, 5000},
                                          {8000, 192}}) {
        SCOPED_TRACE(
            fmt::format("write_through {}, home {}, {} bytes at {}", through, home, bytes, offset));
        this->with_seeds(
            {.cores = 3, .sync_bytes = layout.bytes(), .data_bytes = 8192},
            [&, offset = offset, bytes = bytes](const EnsembleShape& shape) {
              pass_messages<TypeParam>(shape, full, empty, {through, home, offset, bytes});
            });
      }
    }
  }
}

// A program's own loads and stores, through view().
TYPED_TEST(Contract, PlainStoresPass) {
  auto layout = this->layout(2);
  const auto full = layout.take_lines(1);
  const auto empty = layout.take_lines(1);
  constexpr std::size_t words = 100;
  const auto test = [&](const EnsembleShape& shape) {
    Ensemble<TypeParam> ensemble(shape);
    ensemble.run([&](auto& core) {
      auto* data = reinterpret_cast<std::uint64_t*>(core.view({0, 0}));
      ASSERT_NE(data, nullptr);
      for (std::uint64_t round = 1; round <= 40; ++round) {
        const auto is_round = [&](std::uint64_t v) { return v == round; };
        if (core.self() == 0) {
          for (std::size_t i = 0; i < words; ++i) data[i] = round * 1000 + i;
          core.publish({0, 0}, words * 8);
          core.store(core.word({1, full}), round);
          core.notify(1);
          expect_ok(core.wait_until(core.word({0, empty}), is_round));
        } else {
          expect_ok(core.wait_until(core.word({1, full}), is_round));
          core.refresh({0, 0}, words * 8);
          for (std::size_t i = 0; i < words; ++i) ASSERT_EQ(data[i], round * 1000 + i);
          core.store(core.word({0, empty}), round);
          core.notify(0);
        }
      }
    });
  };
  this->with_seeds({.cores = 2, .sync_bytes = layout.bytes(), .data_bytes = 4096}, test);
}

// The owner finds in its view the bytes that others put into its memory, after a refresh.
TYPED_TEST(Contract, OwnerSeesPutsAfterRefresh) {
  auto layout = this->layout(3);
  const auto arrived = layout.take_lines(1);
  this->with_seeds({.cores = 3, .sync_bytes = layout.bytes(), .data_bytes = 256},
                   [&](const EnsembleShape& shape) {
                     Ensemble<TypeParam> ensemble(shape);
                     ensemble.run([&](auto& core) {
                       if (core.self() != 0) {
                         const std::uint64_t value = 100 + core.self();
                         put_word_through(core, {0, core.self() * 8}, value);
                         core.drain();
                         core.fetch_add(core.word({0, arrived}), 1);
                         core.notify(0);
                         return;
                       }
                       auto* data = reinterpret_cast<std::uint64_t*>(core.view({0, 0}));
                       data[20] = 7;  // another line: a program's own
                       expect_ok(core.wait_until(core.word({0, arrived}),
                                                 [](std::uint64_t v) { return v == 2; }));
                       core.refresh({0, 0}, 64);
                       EXPECT_EQ(data[1], 101u);
                       EXPECT_EQ(data[2], 102u);
                       EXPECT_EQ(data[20], 7u);
                     });
                   });
}

// ---- Lines ------------------------------------------------------------------------------------

// R2: write_through keeps off the bytes between those it writes, though other cores write them and
// hold stale copies of the lines.
TYPED_TEST(Contract, WriteThroughNeverTouchesNeighbours) {
  constexpr Home cores = 3;
  constexpr std::size_t bytes = 40 * 64 + 17;
  auto layout = this->layout(cores);
  this->with_seeds({.cores = cores, .sync_bytes = layout.bytes() + 64, .data_bytes = bytes},
                   [&](const EnsembleShape& shape) {
                     Ensemble<TypeParam> ensemble(shape);
                     std::barrier together(cores);
                     ensemble.run([&](auto& core) {
                       std::vector<std::uint8_t> all(bytes);
                       for (std::size_t round = 0; round < 6; ++round) {
                         expect_ok(core.read({1, 0}, all.data(),
                                             bytes));  // whatever its value, it is in a cache now
                         together.arrive_and_wait();
                         machine::testing::write_own_pieces(core, 1, bytes, round);
                         core.drain();
                         core.fence();
                         together.arrive_and_wait();
                         machine::testing::expect_all_pieces(core, 1, bytes, round);
                         together.arrive_and_wait();
                       }
                     });
                   });
}

// R2: cached writes to different lines do not disturb each other.
TYPED_TEST(Contract, WritesToDifferentLinesStayApart) {
  constexpr Home cores = 3;
  constexpr std::size_t lines = 60;
  constexpr std::size_t line = TypeParam::properties.line_bytes;
  this->with_seeds({.cores = cores, .data_bytes = lines * line}, [&](const EnsembleShape& shape) {
    Ensemble<TypeParam> ensemble(shape);
    std::barrier together(cores);
    ensemble.run([&](auto& core) {
      for (std::uint64_t round = 1; round <= 10; ++round) {
        for (std::size_t i = core.self(); i < lines; i += cores)
          put_word(core, {2, i * line + round % 8 * 8}, round * 100 + i);
        for (std::size_t i = core.self(); i < lines; i += cores) core.publish({2, i * line}, line);
        core.fence();
        together.arrive_and_wait();
        core.refresh({2, 0}, lines * line);
        for (std::size_t i = 0; i < lines; ++i)
          ASSERT_EQ(get_word(core, {2, i * line + round % 8 * 8}), round * 100 + i);
        together.arrive_and_wait();
      }
    });
  });
}

// publish and refresh take any range, and hit every byte of it.
TYPED_TEST(Contract, RangesNeedNoAlignment) {
  constexpr std::size_t bytes = 1000;
  this->with_seeds({.cores = 2, .data_bytes = bytes}, [&](const EnsembleShape& shape) {
    Ensemble<TypeParam> ensemble(shape);
    auto& writer = ensemble.core(0);
    auto& reader = ensemble.core(1);
    Random random(shape.seed);
    for (std::uint64_t round = 0; round < 200; ++round) {
      const std::size_t begin = random.below(bytes);
      const std::size_t count = 1 + random.below(bytes - begin);
      const auto wanted = pattern(count, round);
      const Home home = static_cast<Home>(round % 2);
      expect_ok(writer.write({home, begin}, wanted.data(), count));
      writer.publish({home, begin}, count);
      std::vector<std::uint8_t> got(count);
      reader.refresh({home, begin}, count);
      expect_ok(reader.read({home, begin}, got.data(), count));
      ASSERT_EQ(got, wanted) << count << " bytes at " << begin << " of " << home;
    }
  });
}

// ---- Mutual exclusion over data ---------------------------------------------------------------

TYPED_TEST(Contract, ALockProtectsData) {
  constexpr Home cores = 3;
  constexpr std::uint64_t rounds = 60;
  auto layout = this->layout(cores);
  const auto lock = layout.take_lines(1);
  this->with_seeds({.cores = cores, .sync_bytes = layout.bytes(), .data_bytes = 128},
                   [&](const EnsembleShape& shape) {
                     Ensemble<TypeParam> ensemble(shape);
                     const DataPlace counter{1, 24};
                     const DataPlace through{1, 72};
                     ensemble.run([&](auto& core) {
                       const auto word = core.word({0, lock});
                       for (std::uint64_t i = 0; i < rounds; ++i) {
                         while (core.exchange(word, 1) != 0) expect_ok(core.pause(500));
                         core.refresh(counter, 8);
                         core.refresh(through, 8);
                         put_word(core, counter, get_word(core, counter) + 1);
                         put_word_through(core, through, get_word(core, through) + 3);
                         core.publish(counter, 8);
                         core.drain();
                         core.store(word, 0);
                       }
                     });
                     auto& core = ensemble.core(0);
                     core.refresh({1, 0}, 128);
                     EXPECT_EQ(get_word(core, counter), cores * rounds);
                     EXPECT_EQ(get_word(core, through), cores * rounds * 3);
                   });
}

// Peterson's lock: stands upon the fence alone.
TYPED_TEST(Contract, ALockOfPlainWordsProtectsData) {
  constexpr std::uint64_t rounds = 100;
  auto layout = this->layout(2);
  const auto wants = layout.take_lines(1);
  const auto turn = layout.take_lines(1);
  this->with_seeds({.cores = 2, .sync_bytes = layout.bytes(), .data_bytes = 64},
                   [&](const EnsembleShape& shape) {
                     Ensemble<TypeParam> ensemble(shape);
                     ensemble.run([&](auto& core) {
                       const Home other = 1 - core.self();
                       const auto mine = core.word({core.self(), wants});
                       const auto theirs = core.word({other, wants});
                       const auto turn_word = core.word({0, turn});
                       for (std::uint64_t i = 0; i < rounds; ++i) {
                         core.store(mine, 1);
                         core.store(turn_word, other);
                         core.fence();
                         while (core.load(theirs) == 1 && core.load(turn_word) == other)
                           expect_ok(core.pause(100));
                         core.refresh({0, 0}, 8);
                         put_word(core, {0, 0}, get_word(core, {0, 0}) + 1);
                         core.publish({0, 0}, 8);
                         core.store(mine, 0);
                       }
                     });
                     auto& core = ensemble.core(1);
                     core.refresh({0, 0}, 8);
                     EXPECT_EQ(get_word(core, {0, 0}), 2 * rounds);
                   });
}

// ---- Waiting ----------------------------------------------------------------------------------

TYPED_TEST(Contract, AFaultOfTheIdleHookEndsAWait) {
  auto layout = this->layout(1);
  const auto never = layout.take_lines(1);
  CountingHook hook(5);
  Ensemble<TypeParam> ensemble({.cores = 1, .sync_bytes = layout.bytes(), .idle = &hook});
  auto& core = ensemble.core(0);
  const Status status =
      core.wait_until(core.word({0, never}), [](std::uint64_t v) { return v == 1; });
  EXPECT_EQ(status.code(), Code::process_failed);
  EXPECT_EQ(status.rank(), 1);
  EXPECT_EQ(hook.calls(), 5);
}

TYPED_TEST(Contract, PauseRunsTheIdleHook) {
  CountingHook hook(3);
  Ensemble<TypeParam> ensemble({.cores = 1, .idle = &hook});
  auto& core = ensemble.core(0);
  expect_ok(core.pause(100000));
  expect_ok(core.pause(100000));
  EXPECT_EQ(core.pause(100000).code(), Code::process_failed);
}

TYPED_TEST(Contract, APredicateThatHoldsNeedsNoWait) {
  auto layout = this->layout(1);
  const auto at = layout.take_lines(1);
  CountingHook hook(1);
  Ensemble<TypeParam> ensemble({.cores = 1, .sync_bytes = layout.bytes(), .idle = &hook});
  auto& core = ensemble.core(0);
  core.store(core.word({0, at}), 9);
  expect_ok(core.wait_until(core.word({0, at}), [](std::uint64_t v) { return v == 9; }));
  EXPECT_EQ(hook.calls(), 0);
}

// R6: more cores than processors hand a token round; every core sleeps and is woken.
TYPED_TEST(Contract, ATokenGoesRound) {
  constexpr Home cores = 6;
  auto layout = this->layout(cores);
  const auto token = layout.take_lines(1);
  const EnsembleShape shape{.cores = cores, .sync_bytes = layout.bytes(), .processors = 2};
  Ensemble<TypeParam> ensemble(shape);
  ensemble.run([&](auto& core) {
    const Home next = (core.self() + 1) % cores;
    for (std::uint64_t round = 1; round <= 50; ++round) {
      if (core.self() != 0 || round > 1) {
        const std::uint64_t wanted = core.self() == 0 ? round - 1 : round;
        expect_ok(core.wait_until(core.word({core.self(), token}),
                                  [&](std::uint64_t v) { return v == wanted; }));
      }
      core.store(core.word({next, token}), round);
      core.notify(next);
    }
  });
  // The last store may still be on its way.
  auto& core = ensemble.core(0);
  expect_ok(core.wait_until(core.word({0, token}), [](std::uint64_t v) { return v == 50; }));
}

// A waiter that has gone to sleep is woken, or wakes, in bounded time.
TYPED_TEST(Contract, ASleeperWakes) {
  auto layout = this->layout(2);
  const auto flag = layout.take_lines(1);
  Ensemble<TypeParam> ensemble({.cores = 2, .sync_bytes = layout.bytes()});
  ensemble.run([&](auto& core) {
    const auto word = core.word({0, flag});
    if (core.self() == 0) {
      expect_ok(core.wait_until(word, [](std::uint64_t v) { return v == 1; }));
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(60));
      core.store(word, 1);
      core.notify(0);
    }
  });
}

}  // namespace
}  // namespace tombolo
