// SPDX-License-Identifier: Apache-2.0
// The rules of machine/contract.h for scc::Core: message passing, lines, mutual exclusion. The
// demands of backends/contract_test.cpp on the other machines, as programs in virtual time.
#include <algorithm>
#include <cstring>
#include <utility>

#include "backends/scc/testing/contract.h"

namespace tombolo::scc::testing {
namespace {

class Contract : public SccContract {
 protected:
  struct Message;
  void pass_messages(const Message& message);
  template <class Change>
  void change_many_pages(Change&& change);
};
INSTANTIATE_TEST_SUITE_P(Memory, Contract, ::testing::Range(0u, Host::configurations),
                         name_of_configuration);

// ---- Message passing --------------------------------------------------------------------------

// How the sender makes its data visible, whether they come from and go to memory that the cores
// allocated, and where they lie.
struct Contract::Message {
  bool through;
  bool allocated;
  DataPlace place;
  std::size_t bytes;
};

void Contract::pass_messages(const Message& message) {
  constexpr std::uint64_t rounds = 4;
  const DataPlace place = message.place;
  const std::size_t bytes = message.bytes;
  auto layout = this->layout(3);
  const auto full = layout.take_lines(1);
  const auto empty = layout.take_lines(1);
  run({.cores = 3, .sync_bytes = layout.bytes(), .data_bytes = kPage + 8192}, [&](Core& core) {
    const auto full_word = core.word({1, full});
    const auto empty_word = core.word({0, empty});
    Bytes heap(bytes);
    auto* const data =
        message.allocated ? core.allocate(bytes) : reinterpret_cast<std::byte*>(heap.data());
    for (std::uint64_t round = 1; round <= rounds; ++round) {
      const Bytes wanted = pattern(bytes, round);
      const auto is_round = [&](std::uint64_t v) { return v == round; };
      if (core.self() == 0) {
        // Not ours since the receiver looked: another core may have written the line.
        core.refresh(place, bytes);
        if (round % 2 == 0) get(core, place, bytes);  // so that a cache may keep the writes
        std::memcpy(data, wanted.data(), bytes);
        if (message.through) {
          expect_ok(core.write_through(place, data, bytes));
          core.drain();
        } else {
          expect_ok(core.write(place, data, bytes));
          core.publish(place, bytes);
        }
        core.store(full_word, round);
        core.notify(1);
        ASSERT_TRUE(core.wait_until(empty_word, is_round).ok());
      } else if (core.self() == 1) {
        ASSERT_TRUE(core.wait_until(full_word, is_round).ok());
        core.refresh(place, bytes);
        expect_ok(core.read(place, data, bytes));
        EXPECT_EQ(std::memcmp(data, wanted.data(), bytes), 0) << "in round " << round;
        core.fetch_add(empty_word, 1);
        core.notify(0);
      }
    }
  });
}

TEST_P(Contract, MessagesPass) {
  for (const bool through : {false, true}) {
    for (const bool allocated : {false, true}) {
      for (const Home home : {0u, 1u, 2u}) {  // the third core has memory but takes no part
        for (const auto& [offset, bytes] : {std::pair<std::uint64_t, std::size_t>{0, 8},
                                            {61, 7},
                                            {128, 64},
                                            {64, 1000},
                                            {3, 5000},
                                            {kPage - 61, 192}}) {
          SCOPED_TRACE(fmt::format("write_through {}, allocated {}, home {}, {} bytes at {}",
                                   through, allocated, home, bytes, offset));
          pass_messages({through, allocated, {home, offset}, bytes});
          if (HasFailure()) return;
        }
      }
    }
  }
}

// R5, where neither core waits for the other.
TEST_P(Contract, DataAreNoOlderThanTheWordLoadedBefore) {
  constexpr std::uint64_t rounds = 100;
  constexpr Home cores = kFar + 1;
  auto layout = this->layout(cores);
  const auto written = layout.take_lines(1);
  for (const Home home : {0u, 1u, kFar}) {
    SCOPED_TRACE(fmt::format("home {}", home));
    with_seeds_and_stores([&](std::uint64_t seed, Store store) {
      const EnsembleShape shape{.cores = cores, .sync_bytes = layout.bytes(), .seed = seed};
      run(shape, [&](Core& core) {
        const auto word = core.word({0, written});
        const DataPlace place{home, 96};
        Jitter jitter(core, seed);
        if (core.self() == 0) {
          for (std::uint64_t i = 1; i <= rounds; ++i) {
            ASSERT_TRUE(jitter.pause(2000).ok());
            put_word(core, place, i);
            core.publish(place, 8);
            (core.*store)(word, i);
          }
        } else if (core.self() == 1) {
          for (std::uint64_t late = 0; late < rounds;) {
            ASSERT_TRUE(jitter.pause(200).ok());
            late = core.load(word);
            core.refresh(place, 8);
            ASSERT_GE(get_word(core, place), late);
          }
        }
      });
    });
  }
}

// The owner finds the bytes that others put into its memory, after a refresh, and keeps its own
// writes to other lines.
TEST_P(Contract, OwnerSeesPutsAfterRefresh) {
  constexpr Home cores = 3;
  constexpr std::size_t bytes = 256;
  auto layout = this->layout(cores);
  const auto arrived = layout.take_lines(1);
  const Barrier together(layout, {0, 1, 2});
  run({.cores = cores, .sync_bytes = layout.bytes(), .data_bytes = bytes}, [&](Core& core) {
    for (std::uint64_t round = 1; round <= 5; ++round) {
      if (core.self() == 0) get(core, {0, 0}, bytes);  // where its caches may keep it
      ASSERT_TRUE(together.wait(core).ok());
      if (core.self() != 0) {
        put_word_through(core, {0, core.self() * 8}, round * 100 + core.self());
        core.drain();
        core.fetch_add(core.word({0, arrived}), 1);
        core.notify(0);
      } else {
        put_word(core, {0, 160}, round);
        const auto all = [&](std::uint64_t v) { return v == round * (cores - 1); };
        ASSERT_TRUE(core.wait_until(core.word({0, arrived}), all).ok());
        core.refresh({0, 0}, 64);
        EXPECT_EQ(get_word(core, {0, 8}), round * 100 + 1);
        EXPECT_EQ(get_word(core, {0, 16}), round * 100 + 2);
        EXPECT_EQ(get_word(core, {0, 160}), round);
      }
    }
  });
}

// A refresh loses this core's writes to its range, not those beside it.
TEST_P(Contract, ARefreshKeepsWritesBesideItsRange) {
  auto layout = this->layout(2);
  const Barrier together(layout, {0, 1});
  run({.cores = 2, .sync_bytes = layout.bytes(), .data_bytes = 256}, [&](Core& core) {
    for (const Home home : {0u, 1u}) {
      const DataPlace place{home, 72};
      if (core.self() == 0) {
        get(core, {home, 0}, 256);  // so that a cache may keep the write
        put_word(core, place, 5);
        core.refresh({home, 64}, 8);
        core.refresh({home, 80}, 64);
        EXPECT_EQ(get_word(core, place), 5u);
        core.publish(place, 8);
      }
      ASSERT_TRUE(together.wait(core).ok());
      core.refresh(place, 8);
      EXPECT_EQ(get_word(core, place), 5u);
    }
  });
}

// A publish() does the same after a publish() of another range, or a drain().
TEST_P(Contract, PutsArePublishedOneByOne) {
  for (const bool drain : {false, true}) {
    SCOPED_TRACE(fmt::format("drain {}", drain));
    auto layout = this->layout(2);
    const Barrier together(layout, {0, 1});
    run({.cores = 2, .sync_bytes = layout.bytes(), .data_bytes = 256}, [&](Core& core) {
      const DataPlace first{0, 0};
      const DataPlace second{0, 128};
      if (core.self() == 1) {
        get(core, first, 256);  // so that a cache may keep the writes
        put_word(core, first, 7);
        put_word(core, second, 7);
        if (drain)
          core.drain();
        else
          core.publish(first, 8);
      }
      ASSERT_TRUE(together.wait(core).ok());
      if (core.self() == 0) get(core, first, 256);
      ASSERT_TRUE(together.wait(core).ok());
      if (core.self() == 1) core.publish(second, 8);
      ASSERT_TRUE(together.wait(core).ok());
      core.refresh(second, 8);
      EXPECT_EQ(get_word(core, second), 7u);
    });
  }
}

// One write over several lines, of which the caches may keep all.
TEST_P(Contract, APutIsPublishedInParts) {
  constexpr std::size_t bytes = 128;
  auto layout = this->layout(2);
  const Barrier together(layout, {0, 1});
  run({.cores = 2, .sync_bytes = layout.bytes(), .data_bytes = bytes}, [&](Core& core) {
    const DataPlace all{0, 0};
    const DataPlace rest{0, 32};
    const Bytes wanted = pattern(bytes, 1);
    if (core.self() == 1) {
      get(core, all, bytes);  // so that a cache may keep the write
      expect_ok(core.write(all, wanted.data(), bytes));
      core.publish(all, 32);
    }
    ASSERT_TRUE(together.wait(core).ok());
    if (core.self() == 0) get(core, all, bytes);
    ASSERT_TRUE(together.wait(core).ok());
    if (core.self() == 1) core.publish(rest, bytes - 32);
    ASSERT_TRUE(together.wait(core).ok());
    core.refresh(all, bytes);
    EXPECT_EQ(get(core, all, bytes), wanted);
  });
}

// For a place in each of more pages than a core can map at a time: core 0 reads it, change(core,
// place, value) changes it on cores 0 and 1, and both see that after a refresh.
template <class Change>
void Contract::change_many_pages(Change&& change) {
  constexpr Home cores = 20;
  constexpr std::uint64_t pages = 4;
  auto layout = this->layout(cores);
  const Barrier together(layout, {0, 1});
  const EnsembleShape shape{
      .cores = cores, .sync_bytes = layout.bytes(), .data_bytes = pages * kPage};
  run(shape, [&](Core& core) {
    if (core.self() > 1) return;
    for (std::uint64_t n = 2 * pages; n < cores * pages; ++n) {
      const DataPlace place{static_cast<Home>(n / pages), n % pages * kPage + 64};
      if (core.self() == 0) get_word(core, place);
      ASSERT_TRUE(together.wait(core).ok());
      change(core, place, n);
      ASSERT_TRUE(together.wait(core).ok());
      core.refresh(place, 8);
      ASSERT_EQ(get_word(core, place), n) << "page " << place.offset / kPage << " of home "
                                          << place.home << ", core " << core.self();
    }
  });
}

TEST_P(Contract, ManyPagesArePublished) {
  change_many_pages([](Core& core, DataPlace place, std::uint64_t v) {
    if (core.self() != 0) return;
    put_word(core, place, v);
    core.publish(place, 8);
  });
}

TEST_P(Contract, ManyPagesAreRefreshed) {
  change_many_pages([](Core& core, DataPlace place, std::uint64_t v) {
    if (core.self() != 1) return;
    put_word(core, place, v);
    core.publish(place, 8);
  });
}

TEST_P(Contract, ManyPagesAreWrittenThrough) {
  change_many_pages([](Core& core, DataPlace place, std::uint64_t v) {
    if (core.self() != 0) return;
    put_word_through(core, place, v);
    core.drain();
  });
}

// ---- Lines ------------------------------------------------------------------------------------

// R2: write_through keeps off the bytes between those it writes, though other cores write them and
// hold stale copies of the lines.
TEST_P(Contract, WriteThroughNeverTouchesNeighbours) {
  constexpr Home cores = 3;
  constexpr std::size_t bytes = 20 * 64 + 17;
  auto layout = this->layout(cores);
  const Barrier together(layout, {0, 1, 2});
  with_seeds([&](std::uint64_t seed) {
    const EnsembleShape shape{
        .cores = cores, .sync_bytes = layout.bytes(), .data_bytes = bytes, .seed = seed};
    run(shape, [&](Core& core) {
      Jitter jitter(core, seed);
      for (std::size_t round = 0; round < 4; ++round) {
        get(core, {1, 0}, bytes);  // whatever its value, it may be in a cache now
        ASSERT_TRUE(together.wait(core).ok());
        ASSERT_TRUE(jitter.pause(3000).ok());
        machine::testing::write_own_pieces(core, 1, bytes, round);
        core.drain();
        ASSERT_TRUE(together.wait(core).ok());
        machine::testing::expect_all_pieces(core, 1, bytes, round);
        ASSERT_TRUE(together.wait(core).ok());
      }
    });
  });
}

// R2: cached writes to different lines do not disturb each other.
TEST_P(Contract, WritesToDifferentLinesStayApart) {
  constexpr Home cores = 3;
  constexpr std::size_t lines = 60;
  constexpr std::size_t line = Core::properties.line_bytes;
  auto layout = this->layout(cores);
  const Barrier together(layout, {0, 1, 2});
  run({.cores = cores, .sync_bytes = layout.bytes(), .data_bytes = lines * line}, [&](Core& core) {
    for (std::uint64_t round = 1; round <= 4; ++round) {
      const auto place = [&](std::size_t i) { return DataPlace{2, i * line + round % 4 * 8}; };
      for (std::size_t i = core.self(); i < lines; i += cores)
        put_word(core, place(i), round * 100 + i);
      for (std::size_t i = core.self(); i < lines; i += cores) core.publish({2, i * line}, line);
      ASSERT_TRUE(together.wait(core).ok());
      core.refresh({2, 0}, lines * line);
      for (std::size_t i = 0; i < lines; ++i)
        ASSERT_EQ(get_word(core, place(i)), round * 100 + i) << "line " << i << ", round " << round;
      ASSERT_TRUE(together.wait(core).ok());
    }
  });
}

// publish and refresh take any range, and hit every byte of it.
TEST_P(Contract, RangesNeedNoAlignment) {
  constexpr std::size_t bytes = 1000;
  auto layout = this->layout(2);
  const Barrier together(layout, {0, 1});
  with_seeds([&](std::uint64_t seed) {
    const EnsembleShape shape{
        .cores = 2, .sync_bytes = layout.bytes(), .data_bytes = bytes, .seed = seed};
    run(shape, [&](Core& core) {
      Random random(seed);  // the same for both
      for (std::uint64_t round = 0; round < 100; ++round) {
        const std::size_t begin = random.below(bytes);
        const std::size_t count = 1 + random.below(bytes - begin);
        const DataPlace place{static_cast<Home>(round % 2), begin};
        const Bytes wanted = pattern(count, round);
        if (core.self() == 0) {
          if (round % 4 < 2) get(core, place, count);  // so that a cache may keep the writes
          expect_ok(core.write(place, wanted.data(), count));
          core.publish(place, count);
        }
        ASSERT_TRUE(together.wait(core).ok());
        if (core.self() == 1) {
          core.refresh(place, count);
          ASSERT_EQ(get(core, place, count), wanted)
              << count << " bytes at " << begin << " of " << place.home;
        }
        ASSERT_TRUE(together.wait(core).ok());
      }
    });
  });
}

// ---- Mutual exclusion over data ---------------------------------------------------------------

TEST_P(Contract, ALockProtectsData) {
  constexpr Home cores = 3;
  constexpr std::uint64_t rounds = 60;
  auto layout = this->layout(cores);
  const auto lock = layout.take_lines(1);
  const Barrier together(layout, {0, 1, 2});
  with_seeds([&](std::uint64_t seed) {
    const EnsembleShape shape{
        .cores = cores, .sync_bytes = layout.bytes(), .data_bytes = 128, .seed = seed};
    run(shape, [&](Core& core) {
      const DataPlace counter{1, 24};
      const DataPlace through{1, 72};
      const auto word = core.word({0, lock});
      Jitter jitter(core, seed);
      for (std::uint64_t i = 0; i < rounds; ++i) {
        ASSERT_TRUE(jitter.pause(2000).ok());
        while (core.exchange(word, 1) != 0) ASSERT_TRUE(core.pause(500).ok());
        core.refresh(counter, 8);
        core.refresh(through, 8);
        put_word(core, counter, get_word(core, counter) + 1);
        put_word_through(core, through, get_word(core, through) + 3);
        core.publish(counter, 8);
        core.drain();
        core.store(word, 0);
      }
      ASSERT_TRUE(together.wait(core).ok());
      if (core.self() != 0) return;
      core.refresh({1, 0}, 128);
      EXPECT_EQ(get_word(core, counter), cores * rounds);
      EXPECT_EQ(get_word(core, through), cores * rounds * 3);
    });
  });
}

// Peterson's lock: stands upon the fence alone.
TEST_P(Contract, ALockOfPlainWordsProtectsData) {
  constexpr std::uint64_t rounds = 60;
  constexpr Home cores = kFar + 1;
  auto layout = this->layout(cores);
  const auto wants = layout.take_lines(1);
  const auto turn = layout.take_lines(1);
  const Barrier together(layout, {0, kFar});
  with_seeds_and_stores([&](std::uint64_t seed, Store store) {
    const EnsembleShape shape{
        .cores = cores, .sync_bytes = layout.bytes(), .data_bytes = 64, .seed = seed};
    run(shape, [&](Core& core) {
      if (core.self() != 0 && core.self() != kFar) return;
      const Home other = kFar - core.self();
      const auto mine = core.word({other, wants});
      const auto theirs = core.word({core.self(), wants});
      const auto turn_word = core.word({0, turn});
      Jitter jitter(core, seed);
      for (std::uint64_t i = 0; i < rounds; ++i) {
        ASSERT_TRUE(jitter.pause(2000).ok());
        (core.*store)(mine, 1);
        (core.*store)(turn_word, other);
        core.fence();
        while (core.load(theirs) == 1 && core.load(turn_word) == other)
          ASSERT_TRUE(core.pause(100).ok());
        core.refresh({0, 0}, 8);
        put_word(core, {0, 0}, get_word(core, {0, 0}) + 1);
        core.publish({0, 0}, 8);
        (core.*store)(mine, 0);
      }
      ASSERT_TRUE(together.wait(core).ok());
      core.refresh({0, 0}, 8);
      EXPECT_EQ(get_word(core, {0, 0}), 2 * rounds);
    });
  });
}

}  // namespace
}  // namespace tombolo::scc::testing
