// SPDX-License-Identifier: Apache-2.0
// Purpose: the way of freed blocks back to their owner, in turns at each operation on words: under
// every order that is tried, each block comes back once.
// Thread safety: -
#include "dsm/allocator/returned_blocks.h"

#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "dsm/allocator/testing/plain_memory.h"

namespace tombolo::dsm::testing {
namespace {

using Taken = std::map<std::pair<Chunk, std::uint64_t>, std::uint64_t>;

void take(ReturnedBlocks& returned, Taken& taken) {
  returned.take(0, [&](Chunk chunk, std::uint64_t word, std::uint64_t blocks) {
    EXPECT_NE(blocks, 0u) << "a word without blocks was announced";
    std::uint64_t& all = taken[{chunk, word}];
    EXPECT_EQ(all & blocks, 0u) << "a block came back twice";
    all |= blocks;
  });
}

// Threads 1 and 2 give the blocks of three words of two chunks, each half of them, while their
// owner takes all that it finds. The rest is taken at the end.
void every_block_comes_back(std::uint64_t seed) {
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  PlainProgram program({.threads = 3, .bytes = group_bytes});
  Turns turns(3, seed);
  Taken taken;
  program.run(
      [&](PlainMemory& memory) {
        const HeapWords words(0, chunks_per_group, 3);
        ReturnedBlocks returned(memory, words);
        if (memory.self() == 0) {
          for (int i = 0; i < 6; ++i)
            if (returned.any(0)) take(returned, taken);
          return;
        }
        for (const std::uint64_t bit : {0, 2})
          for (const Chunk chunk : {5, 0})
            for (const std::uint64_t word : {0, 63, 7})
              EXPECT_TRUE(returned.give(0, chunk, word, memory.self() << bit));
      },
      &turns);
  PlainMemory memory(program, 0);
  const HeapWords words(0, chunks_per_group, 3);
  ReturnedBlocks returned(memory, words);
  take(returned, taken);
  EXPECT_EQ(taken.size(), 6u);
  for (const auto& [place, blocks] : taken) EXPECT_EQ(blocks, 0b1111u);
  EXPECT_FALSE(returned.any(0));
  for (const Chunk chunk : {0, 5}) EXPECT_EQ(memory.load(words.returned_words(chunk)), 0u);
}

TEST(Scheduled, EveryReturnedBlockComesBackOnce) {
  for (std::uint64_t seed = 1; seed <= 200 && !::testing::Test::HasFailure(); ++seed)
    every_block_comes_back(seed);
}

TEST(ReturnedBlocks, CostOneAtomicWhereTheWordIsAnnounced) {
  PlainProgram program({.threads = 2, .bytes = group_bytes});
  PlainMemory memory(program, 1);
  const HeapWords words(0, chunks_per_group, 2);
  ReturnedBlocks returned(memory, words);
  EXPECT_TRUE(returned.give(0, 3, 2, 1));
  EXPECT_EQ(memory.word_operations(), 5u);
  EXPECT_TRUE(returned.give(0, 3, 2, 2));
  EXPECT_EQ(memory.word_operations(), 6u);
  EXPECT_TRUE(returned.give(0, 3, 1, 1));
  EXPECT_EQ(memory.word_operations(), 8u);
}

TEST(ReturnedBlocks, NoticeASecondReturn) {
  PlainProgram program({.threads = 2, .bytes = group_bytes});
  PlainMemory memory(program, 1);
  const HeapWords words(0, chunks_per_group, 2);
  ReturnedBlocks returned(memory, words);
  EXPECT_TRUE(returned.give(0, 3, 2, 6));
  EXPECT_FALSE(returned.give(0, 3, 2, 4));
}

}  // namespace
}  // namespace tombolo::dsm::testing
