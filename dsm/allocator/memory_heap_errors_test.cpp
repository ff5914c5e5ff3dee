// SPDX-License-Identifier: Apache-2.0
// Purpose: mistakes of the program at the heap, which stop it with a message, and failures of its
// memory, which do not.
// Thread safety: -
#include <gtest/gtest.h>

#include "dsm/allocator/memory_heap.h"
#include "dsm/allocator/testing/plain_memory.h"

namespace tombolo::dsm::testing {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

class HeapErrors : public ::testing::Test {
 protected:
  HeapErrors() {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    for (MemoryHeap* heap : {&heap_, &other_})
      EXPECT_TRUE(heap->open(heap == &heap_ ? memory_ : other_memory_, memory_.memory(), 0).ok());
  }

  PlainProgram program_{{.threads = 2, .bytes = 4 * group_bytes}};
  PlainMemory memory_{program_, 0};
  PlainMemory other_memory_{program_, 1};
  MemoryHeap heap_;
  MemoryHeap other_;
};
using HeapErrorsDeathTest = HeapErrors;

TEST_F(HeapErrorsDeathTest, AForeignAddressStops) {
  int variable = 0;
  EXPECT_DEATH(heap_.free(&variable), "free: 0x[0-9a-f]* is not an address of the global heap");
  EXPECT_DEATH(heap_.realloc(&variable, 8), "is not an address of the global heap");
  std::byte* const end = memory_.memory().data() + memory_.memory().size();
  EXPECT_DEATH(heap_.free(end), "is not an address of the global heap");
  EXPECT_DEATH(heap_.free(end - 16), "no block of the global heap begins at");
}

TEST_F(HeapErrorsDeathTest, AnAddressWithinABlockStops) {
  auto* const chunk = static_cast<std::byte*>(heap_.malloc(48));
  EXPECT_DEATH(heap_.free(chunk + 1365 * 48), "begins") << "past the last block of its chunk";
  for (const std::size_t bytes : {std::size_t{40}, std::size_t{100000}, 2 * mib}) {
    void* const block = heap_.malloc(bytes);
    EXPECT_DEATH(heap_.free(static_cast<std::byte*>(block) + 16), "begins") << bytes;
    EXPECT_DEATH(other_.free(static_cast<std::byte*>(block) + 16), "begins") << bytes;
    EXPECT_DEATH(other_.usable_size(static_cast<std::byte*>(block) + 16), "begins") << bytes;
    if (bytes > 8192) {
      EXPECT_DEATH(heap_.free(static_cast<std::byte*>(block) + 4096), "begins") << bytes;
    }
  }
}

TEST_F(HeapErrorsDeathTest, FreeingTwiceStops) {
  for (const std::size_t bytes : {std::size_t{40}, std::size_t{100000}, 2 * mib}) {
    void* const block = heap_.malloc(bytes);
    // Another block, so that the chunk is not given back.
    heap_.malloc(bytes);
    heap_.free(block);
    EXPECT_DEATH(heap_.free(block), "freed twice") << bytes;
  }
}

TEST_F(HeapErrorsDeathTest, FreeingTwiceElsewhereStopsWhenBlocksGoBack) {
  void* const block = heap_.malloc(40);
  other_.free(block);
  EXPECT_DEATH((other_.free(block), other_.settle()), "freed twice");
  other_.settle();
  EXPECT_DEATH((other_.free(block), other_.settle()), "freed twice");
  EXPECT_DEATH((heap_.free(block), heap_.settle()), "freed twice");
  heap_.settle();
  EXPECT_DEATH(heap_.free(block), "begins") << "its chunk has been given back";
}

TEST_F(HeapErrorsDeathTest, WrongPlacesStop) {
  MemoryHeap heap;
  std::byte elsewhere[16];
  EXPECT_DEATH((void)heap.open(memory_, elsewhere, 0), "not in the program's memory");
  EXPECT_DEATH((void)heap.open(memory_, memory_.memory(), 1), "words, and there are");
}

// A process has died, perhaps with the lock of the heap: calls that need it end.
TEST_F(HeapErrors, ADeadProcessIsAnError) {
  void* const small = heap_.malloc(40);
  void* const medium = heap_.malloc(100000);
  const HeapWords words(0, 4 * chunks_per_group, 2);
  memory_.store(words.lock(), 2);
  memory_.fail_pauses();
  errno = 0;
  EXPECT_EQ(heap_.malloc(100000), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(heap_.failure().code(), Code::process_failed);
  EXPECT_EQ(heap_.malloc(2 * mib), nullptr);
  EXPECT_EQ(heap_.malloc(3000), nullptr) << "it needs a chunk";
  EXPECT_EQ(heap_.realloc(medium, 200000), nullptr);
  heap_.free(medium);
  EXPECT_NE(heap_.malloc(40), nullptr) << "it needs no lock";
  heap_.free(small);
}

}  // namespace
}  // namespace tombolo::dsm::testing
