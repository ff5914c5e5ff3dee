// SPDX-License-Identifier: Apache-2.0
// Purpose: blocks of the heap are apart, aligned, as long as was asked for, and used again.
#include "dsm/allocator/class_heap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "dsm/allocator/private_heap.h"
#include "dsm/testing/mapped_threads.h"

namespace tombolo::dsm {
namespace {

constexpr std::uint64_t seed = 20131;

MemoryPlan plan(Thread threads) {
  return {.threads = threads, .locks = ClassHeap::locks + 1, .words = ClassHeap::words + 2};
}

struct Heaps {
  explicit Heaps(Thread threads = 1) : all(plan(threads)) {}
  ClassHeap of(Thread thread) { return ClassHeap(all[thread], all.memory(), 2, 1); }
  testing::MappedThreads all;
};

TEST(ClassHeap, BlocksAreApartAlignedAndLongEnough) {
  Heaps heaps;
  ClassHeap heap = heaps.of(0);
  std::mt19937_64 random(seed);
  std::vector<std::pair<std::byte*, std::size_t>> blocks;
  for (int i = 0; i < 300; ++i) {
    const std::size_t bytes = random() % 1500;
    const std::size_t alignment = std::size_t{1} << random() % 9;
    auto* const block = static_cast<std::byte*>(heap.allocate(bytes, alignment, i % 2 == 0));
    ASSERT_NE(block, nullptr) << "seed " << seed << " block " << i;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % std::max<std::size_t>(alignment, 16), 0U);
    EXPECT_GE(heap.usable(block), bytes);
    std::memset(block, i % 251 + 1, heap.usable(block));
    blocks.emplace_back(block, heap.usable(block));
  }
  for (std::size_t i = 0; i < blocks.size(); ++i)
    EXPECT_TRUE(std::all_of(blocks[i].first, blocks[i].first + blocks[i].second,
                            [&](std::byte b) { return b == std::byte(i % 251 + 1); }))
        << "seed " << seed << " block " << i;
}

TEST(ClassHeap, ABlockThatWasFreedIsUsedAgainAndCleared) {
  Heaps heaps;
  ClassHeap heap = heaps.of(0);
  void* const first = heap.allocate(1000, 16, false);
  void* const second = heap.allocate(1000, 16, false);
  std::memset(first, 0xff, 1000);
  heap.free(first);
  auto* const again = static_cast<unsigned char*>(heap.allocate(990, 16, true));
  EXPECT_EQ(again, first);
  EXPECT_TRUE(std::all_of(again, again + 990, [](unsigned char b) { return b == 0; }));
  EXPECT_NE(heap.allocate(1000, 16, false), second);
}

TEST(ClassHeap, NoRoomIsNullAndTheRestStays) {
  Heaps heaps;
  ClassHeap heap = heaps.of(0);
  const std::size_t room = heaps.all.memory().size();
  EXPECT_EQ(heap.allocate(room * 2, 16, false), nullptr);
  EXPECT_EQ(heap.allocate(~std::size_t{0}, 16, false), nullptr);
  EXPECT_EQ(heap.allocate(16, std::size_t{1} << 40, false), nullptr);
  void* const half = heap.allocate(room / 2, 16, false);
  ASSERT_NE(half, nullptr);
  EXPECT_EQ(heap.allocate(room / 2, 16, false), nullptr);
  EXPECT_NE(heap.allocate(1000, 16, false), nullptr);
  heap.free(half);
  EXPECT_EQ(heap.allocate(room / 2, 16, false), half);
}

TEST(ClassHeap, OneThreadFreesWhatAnotherHasGot) {
  constexpr int rounds = 2000;
  Heaps heaps(2);
  std::atomic<void*> handed{nullptr};
  heaps.all.run([&](ProgramMemory& memory) {
    ClassHeap heap = heaps.of(memory.self());
    for (int i = 0; i < rounds; ++i) {
      if (memory.self() == 0) {
        void* const block = heap.allocate(100, 16, false);
        ASSERT_NE(block, nullptr) << "blocks are not used again";
        std::memset(block, i, 100);
        while (handed.load() != nullptr) std::this_thread::yield();
        handed = block;
      } else {
        void* block = nullptr;
        while ((block = handed.exchange(nullptr)) == nullptr) std::this_thread::yield();
        EXPECT_EQ(static_cast<unsigned char*>(block)[99], static_cast<unsigned char>(i));
        heap.free(block);
      }
    }
  });
}

TEST(ClassHeapDeathTest, AFreeBlockIsNotFreedAgain) {
  Heaps heaps;
  ClassHeap heap = heaps.of(0);
  void* const block = heap.allocate(10, 16, false);
  heap.free(block);
  EXPECT_DEATH(heap.free(block), "no block, or one that is free already");
}

TEST(PrivateHeap, BlocksAreAlignedAndUsedAgain) {
  for (const std::size_t alignment : {1, 16, 64, 4096}) {
    void* const block = PrivateHeap::allocate(100, alignment);
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % alignment, 0U);
    EXPECT_GE(PrivateHeap::usable(block), 100U);
    std::memset(block, 1, PrivateHeap::usable(block));
    EXPECT_TRUE(PrivateHeap::has(block));
    PrivateHeap::free(block);
    EXPECT_EQ(PrivateHeap::allocate(100, alignment), block);
  }
  int other = 0;
  EXPECT_FALSE(PrivateHeap::has(&other));
  EXPECT_EQ(PrivateHeap::allocate(std::size_t{1} << 40), nullptr);
  PrivateHeap::free(nullptr);
}

}  // namespace
}  // namespace tombolo::dsm
