// SPDX-License-Identifier: Apache-2.0
// Purpose: the heap as several threads use it: random programs at full speed and in turns, on plain
// memory and on memory that is as stale as can be; blocks that one thread allocates and another
// frees; a thread's number that goes to another process.
// Thread safety: -
#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <set>

#include "dsm/allocator/testing/random_program.h"
#include "dsm/allocator/testing/stale_memory.h"

namespace tombolo::dsm::testing {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int slow = 5;
#else
constexpr int slow = 1;
#endif

// All threads free all that is left, and keep nothing for later.
void expect_all_free(std::vector<std::unique_ptr<RandomThread>>& threads) {
  for (auto& thread : threads) thread->free_all();
  // The second time for the blocks that came back in the first.
  for (int round = 0; round < 2; ++round)
    for (auto& thread : threads) thread->heap().settle();
}

struct RandomRun {
  ProgramShape shape;
  int steps;
  std::uint64_t seed;
  bool turns;
  int restart_every = 0;
};

// How often there was no memory.
template <class Memory>
std::uint64_t run_random_program(const RandomRun& run) {
  SCOPED_TRACE(::testing::Message() << "seed " << run.seed);
  PlainProgram program(run.shape);
  Post post(run.shape.threads);
  Turns turns(run.shape.threads, run.seed, 4);
  // The memories outlive the threads of the test.
  std::vector<std::unique_ptr<Memory>> memories(run.shape.threads);
  std::vector<std::unique_ptr<RandomThread>> threads(run.shape.threads);
  for (Thread t = 0; t < run.shape.threads; ++t) {
    memories[t] = std::make_unique<Memory>(program, t, run.turns ? &turns : nullptr);
    threads[t] = std::make_unique<RandomThread>(*memories[t], post, run.seed);
  }
  program.run(
      [&](PlainMemory& own) {
        RandomThread& thread = *threads[own.self()];
        for (int i = 1; i <= run.steps; ++i) {
          thread.step();
          if (run.restart_every != 0 && i % run.restart_every == 0) thread.restart();
        }
      },
      run.turns ? &turns : nullptr);
  for (auto& memory : memories) memory->without_turns();
  expect_all_free(threads);
  MemoryHeap& heap = threads[0]->heap();
  EXPECT_NE(heap.malloc(heap.figures().chunks * chunk_bytes), nullptr) << "not all is free";
  std::uint64_t refusals = 0;
  for (auto& thread : threads) refusals += thread->refusals();
  return refusals;
}

TEST(MemoryHeapThreads, RandomProgramsKeepBlocksApart) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed)
    run_random_program<PlainMemory>({.shape = {.threads = 3, .bytes = 16 * mib},
                                     .steps = 20000 / slow,
                                     .seed = seed,
                                     .turns = false,
                                     .restart_every = 1000});
}

// So little memory that it runs out now and then.
TEST(MemoryHeapThreads, RandomProgramsGoOnWithoutMemory) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    const RandomRun run{.shape = {.threads = 4, .bytes = 3 * mib},
                        .steps = 10000 / slow,
                        .seed = seed,
                        .turns = false};
    EXPECT_GT(run_random_program<PlainMemory>(run), 0u) << "the memory never ran out";
  }
}

TEST(Scheduled, RandomProgramsKeepBlocksApartInAnyOrder) {
  for (std::uint64_t seed = 1; seed <= 4 && !::testing::Test::HasFailure(); ++seed)
    run_random_program<PlainMemory>({.shape = {.threads = 3, .bytes = 8 * mib},
                                     .steps = 1000 / slow,
                                     .seed = seed,
                                     .turns = true,
                                     .restart_every = 100});
}

TEST(Scheduled, StoresOfEarlierUsersDoNotComeLater) {
  for (std::uint64_t seed = 1; seed <= 4 && !::testing::Test::HasFailure(); ++seed)
    run_random_program<StaleMemory>({.shape = {.threads = 3, .bytes = 8 * mib},
                                     .steps = 1000 / slow,
                                     .seed = seed,
                                     .turns = true,
                                     .restart_every = seed % 2 == 0 ? 100 : 0});
}

// A block that shrinks in place, and the next user of its end.
TEST(Scheduled, StoresToAnEndThatIsGivenUpDoNotComeLater) {
  PlainProgram program({.threads = 2, .bytes = 4 * group_bytes});
  StaleMemory first(program, 0);
  StaleMemory second(program, 1);
  MemoryHeap shrinking;
  MemoryHeap next;
  ASSERT_TRUE(shrinking.open(first, first.memory(), 0).ok());
  ASSERT_TRUE(next.open(second, second.memory(), 0).ok());
  for (const auto& [from, to] : {std::pair<std::size_t, std::size_t>(40960, 8192),
                                 std::pair<std::size_t, std::size_t>(5 * mib, 2 * mib)}) {
    auto* const block = static_cast<std::byte*>(shrinking.malloc(from));
    std::memset(block, 0xaa, from);
    ASSERT_EQ(shrinking.realloc(block, to), block);
    auto* const end = static_cast<std::byte*>(next.malloc(from - to));
    ASSERT_EQ(end - second.memory().data(), block + to - first.memory().data());
    std::memset(end, 0x55, from - to);
    // The stores of both come home, those of the first one late.
    EXPECT_TRUE(second.renew(end, from - to).ok());
    EXPECT_TRUE(first.renew(block, from).ok());
    EXPECT_TRUE(second.renew(end, from - to).ok());
    EXPECT_TRUE(std::all_of(end, end + from - to, [](std::byte b) { return b == std::byte{0x55}; }))
        << from;
  }
}

// A process that leaves, and the next of its number, each with copies of pages of its own.
TEST(Scheduled, StoresToABlockDoNotComeAfterItsArenaHasGone) {
  PlainProgram program({.threads = 1, .bytes = group_bytes});
  StaleMemory first(program, 0);
  StaleMemory second(program, 0);
  MemoryHeap leaving;
  MemoryHeap next;
  ASSERT_TRUE(leaving.open(first, first.memory(), 0).ok());
  ASSERT_TRUE(next.open(second, second.memory(), 0).ok());
  auto* const freed = static_cast<std::byte*>(leaving.malloc(64));
  leaving.malloc(64);
  std::memset(freed, 0xaa, 64);
  leaving.free(freed);
  leaving.leave();
  auto* const block = static_cast<std::byte*>(next.malloc(64));
  ASSERT_EQ(block - second.memory().data(), freed - first.memory().data());
  std::memset(block, 0x55, 64);
  // The stores of both come home, those of the first one late.
  EXPECT_TRUE(second.renew(block, 64).ok());
  EXPECT_TRUE(first.renew(freed, 64).ok());
  EXPECT_TRUE(second.renew(block, 64).ok());
  EXPECT_EQ(block[63], std::byte{0x55});
}

class TwoThreads : public ::testing::Test {
 protected:
  TwoThreads() {
    for (const Thread t : {0, 1}) open(t);
  }

  void open(Thread t) {
    EXPECT_TRUE(heaps_[t].emplace().open(memories_[t], program_.memory(), 0).ok());
  }

  std::vector<void*> allocate(Thread thread, std::size_t count, std::size_t bytes) {
    std::vector<void*> blocks;
    for (std::size_t i = 0; i < count; ++i) blocks.push_back(heaps_[thread]->malloc(bytes));
    return blocks;
  }
  void free(Thread thread, const std::vector<void*>& blocks) {
    for (void* block : blocks) heaps_[thread]->free(block);
  }

  PlainProgram program_{{.threads = 2, .bytes = 4 * group_bytes}};
  std::array<PlainMemory, 2> memories_{PlainMemory(program_, 0), PlainMemory(program_, 1)};
  std::array<std::optional<MemoryHeap>, 2> heaps_;
};

TEST_F(TwoThreads, NeverShareAPage) {
  std::vector<std::byte> owner(program_.memory().size() / 4096, std::byte{0xff});
  std::vector<void*> blocks;
  for (int round = 0; round < 3; ++round) {
    for (std::size_t bytes = 8; bytes < 40000; bytes += bytes / 2)
      for (const Thread t : {0, 1}) {
        void* const block = heaps_[t]->malloc(bytes);
        blocks.push_back(block);
        const auto offset =
            static_cast<std::size_t>(static_cast<std::byte*>(block) - program_.memory().data());
        for (std::size_t at = offset / 4096; at <= (offset + bytes - 1) / 4096; ++at) {
          EXPECT_TRUE(owner[at] == std::byte{0xff} || owner[at] == std::byte(t)) << bytes;
          owner[at] = std::byte(t);
        }
      }
    // Small ones by the other thread, so that they go back; larger ones may change hands.
    for (void* block : blocks) heaps_[round % 2]->free(block);
    blocks.clear();
    std::ranges::fill(owner, std::byte{0xff});
    for (auto& heap : heaps_) heap->settle();
  }
}

TEST_F(TwoThreads, BlocksThatTheOtherFreesAreUsedAgain) {
  for (int round = 0; round < 50; ++round) free(1, allocate(0, 5000, 100));
  // 5000 blocks of 112 bytes are nine chunks; fewer than a batch of them are with thread 1.
  EXPECT_LE(heaps_[0]->figures().most_in_use, 10u);
  heaps_[1]->settle();
  heaps_[0]->settle();
  EXPECT_EQ(heaps_[0]->figures().in_use, 0u);
}

TEST_F(TwoThreads, ABatchGoesBackWithoutAnotherCall) {
  const auto blocks = allocate(0, ReturnBatch::most, 4096);
  EXPECT_EQ(heaps_[0]->figures().in_use, 4u);
  free(1, blocks);
  heaps_[0]->settle();
  EXPECT_EQ(heaps_[0]->figures().in_use, 0u);
}

TEST_F(TwoThreads, MemoryOfOneIsToBeHadByTheOther) {
  std::vector<void*> blocks;
  while (void* block = heaps_[0]->malloc(3000)) blocks.push_back(block);
  EXPECT_EQ(heaps_[1]->malloc(1), nullptr);
  EXPECT_EQ(heaps_[1]->malloc(100000), nullptr);
  free(0, blocks);
  EXPECT_NE(heaps_[1]->malloc(4 * group_bytes - chunk_bytes), nullptr) << "all but one chunk";
  EXPECT_EQ(heaps_[1]->malloc(1), nullptr) << "thread 0 keeps one";
  heaps_[0]->settle();
  EXPECT_NE(heaps_[1]->malloc(1), nullptr);
}

TEST_F(TwoThreads, APlaceGoesToTheNextProcessWithItsArenas) {
  const auto kept = allocate(0, 300, 1000);
  const auto full = allocate(0, 16, 4096);
  auto freed = allocate(0, 300, 1000);
  const std::uint64_t in_use = heaps_[0]->figures().in_use;
  free(0, freed);
  heaps_[0]->leave();
  // In between another thread frees a block.
  heaps_[1]->free(kept[0]);
  heaps_[1]->settle();
  open(0);
  std::set<void*> again;
  for (void* block : allocate(0, 301, 1000)) again.insert(block);
  EXPECT_TRUE(again.contains(kept[0]));
  EXPECT_LE(heaps_[0]->figures().in_use, in_use) << "the new process has taken new chunks";
  // Blocks of the earlier process, one of them of a chunk that this one has not seen yet.
  heaps_[0]->free(kept[1]);
  for (void* block : full) heaps_[0]->free(block);
  heaps_[0]->settle();
  EXPECT_EQ(heaps_[0]->usable_size(kept[2]), 1024u);
  for (std::size_t i = 2; i < kept.size(); ++i) heaps_[i % 2]->free(kept[i]);
  for (void* block : again) heaps_[0]->free(block);
  heaps_[1]->settle();
  heaps_[0]->settle();
  EXPECT_EQ(heaps_[0]->figures().in_use, 0u);
}

// Through a queue, at full speed: the memory of blocks on their way is bounded, so is the heap.
TEST(MemoryHeapThreads, AProducerAndAConsumerNeedNoMoreThanTheirQueue) {
  constexpr int blocks = 40000 / slow;
  PlainProgram program({.threads = 2, .bytes = 4 * group_bytes});
  std::array<std::atomic<void*>, 256> queue{};
  program.run([&](PlainMemory& memory) {
    MemoryHeap heap;
    ASSERT_TRUE(heap.open(memory, memory.memory(), 0).ok());
    for (int i = 0; i < blocks; ++i) {
      auto& place = queue[static_cast<std::size_t>(i) % queue.size()];
      if (memory.self() == 0) {
        void* const block = heap.malloc(64);
        ASSERT_NE(block, nullptr);
        std::memset(block, i & 0xff, 64);
        while (place.load() != nullptr) std::this_thread::yield();
        place.store(block);
      } else {
        void* block = nullptr;
        while ((block = place.exchange(nullptr)) == nullptr) std::this_thread::yield();
        EXPECT_EQ(static_cast<unsigned char*>(block)[63], i & 0xff);
        heap.free(block);
      }
    }
    heap.settle();
  });
  PlainMemory memory(program, 0);
  MemoryHeap heap;
  ASSERT_TRUE(heap.open(memory, memory.memory(), 0).ok());
  EXPECT_LE(heap.figures().most_in_use, 2u);
}

}  // namespace
}  // namespace tombolo::dsm::testing
