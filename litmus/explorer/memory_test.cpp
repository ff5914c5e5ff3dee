// SPDX-License-Identifier: Apache-2.0
// Purpose: shows that the memory of a run numbers its words and lines home by home, keeps each
// version of a line, and has one hash for one content.
// Thread safety: -
#include "litmus/explorer/memory.h"

#include <gtest/gtest.h>

namespace tombolo::litmus {
namespace {

// Two words, and a line and a part of one, at each of three homes.
constexpr MemoryShape shape{.cores = 3, .sync_bytes = 16, .data_bytes = line_bytes + 8};

LineBytes filled(unsigned v) {
  LineBytes bytes;
  bytes.fill(static_cast<std::byte>(v));
  return bytes;
}

TEST(Memory, NumbersWordsHomeByHome) {
  const Memory memory(shape);
  ASSERT_EQ(memory.words(), 6u);
  for (std::size_t word = 0; word < memory.words(); ++word) {
    const machine::SyncPlace place = memory.place_of_word(word);
    EXPECT_EQ(place.home, word / 2);
    EXPECT_EQ(place.offset, word % 2 * 8);
    EXPECT_EQ(memory.word_index(place), word);
  }
}

TEST(Memory, NumbersLinesHomeByHomeAndRoundsUp) {
  const Memory memory(shape);
  ASSERT_EQ(memory.lines(), 6u) << "the part of a line is a line";
  for (std::uint32_t line = 0; line < memory.lines(); ++line) {
    const machine::DataPlace place = memory.place_of_line(line);
    EXPECT_EQ(place.home, line / 2);
    EXPECT_EQ(place.offset, line % 2 * line_bytes);
    EXPECT_EQ(memory.line_index(place), line);
    EXPECT_EQ(memory.line_index(place + 7), line) << "any byte of it";
  }
  EXPECT_EQ(memory.line_index({0, line_bytes - 1}), 0u);
  EXPECT_EQ(Memory({.cores = 2, .sync_bytes = 8, .data_bytes = line_bytes}).lines(), 2u);
}

TEST(MemoryDeathTest, RefusesWhatIsNotThere) {
  const Memory memory(shape);
  EXPECT_DEATH((void)memory.word_index({3, 0}), "no sync word 0 at home 3");
  EXPECT_DEATH((void)memory.word_index({0, 16}), "no sync word 16 at home 0");
  EXPECT_DEATH((void)memory.word_index({0, 9}), "no sync word 9 at home 0");
  EXPECT_DEATH((void)memory.line_index({3, 0}), "no byte 0 at home 3");
  EXPECT_DEATH((void)memory.line_index({2, line_bytes + 8}), "no byte 72 at home 2");
}

TEST(Memory, KeepsEachVersionOfALine) {
  Memory memory(shape);
  EXPECT_EQ(memory.latest(1), 0u);
  memory.change(1, filled(7), ~LineMask{0});
  memory.change(1, filled(9), 0b110);
  ASSERT_EQ(memory.latest(1), 2u);
  EXPECT_EQ(memory.at(1, 0), LineBytes{});
  EXPECT_EQ(memory.at(1, 1), filled(7));
  LineBytes mixed = filled(7);
  mixed[1] = mixed[2] = std::byte{9};
  EXPECT_EQ(memory.at(1, 2), mixed) << "the bytes of the mask and no others";
  EXPECT_EQ(memory.latest(0), 0u) << "other lines are as they were";
  EXPECT_EQ(memory.latest(2), 0u);
}

TEST(Memory, ChangesOfTheLastByteCount) {
  Memory memory(shape);
  memory.change(0, filled(1), LineMask{1} << 63);
  ASSERT_EQ(memory.latest(0), 1u);
  EXPECT_EQ(memory.at(0, 1)[63], std::byte{1});
  EXPECT_NE(memory.hash_at(0, 1), memory.hash_at(0, 0));
}

TEST(Memory, HasNoVersionForAChangeThatChangesNothing) {
  Memory memory(shape);
  memory.change(0, LineBytes{}, ~LineMask{0});
  EXPECT_EQ(memory.latest(0), 0u);
  memory.change(0, filled(5), 0);
  EXPECT_EQ(memory.latest(0), 0u) << "an empty mask";
  memory.change(0, filled(5), 1);
  memory.change(0, filled(5), 1);
  EXPECT_EQ(memory.latest(0), 1u);
  memory.change(0, LineBytes{}, 1);
  EXPECT_EQ(memory.latest(0), 2u) << "back to an older content is a change";
}

TEST(Memory, HashesALineByItsContent) {
  Memory memory(shape);
  memory.change(0, filled(1), 1);
  memory.change(0, LineBytes{}, 1);
  EXPECT_EQ(memory.hash_at(0, 2), memory.hash_at(0, 0));
  memory.change(1, filled(1), 1);
  EXPECT_EQ(memory.hash_at(1, 1), memory.hash_at(0, 1)) << "by content, not by number";
  // The same bytes in another unit are another content.
  memory.change(2, filled(1), LineMask{1} << 8);
  EXPECT_NE(memory.hash_at(2, 1), memory.hash_at(1, 1));
}

TEST(Memory, HashesWordsByWhatTheyHold) {
  Memory memory(shape);
  const std::uint64_t empty = memory.words_hash();
  memory.store(0, 5);
  const std::uint64_t five_at_0 = memory.words_hash();
  EXPECT_NE(five_at_0, empty);
  memory.store(1, 5);
  memory.store(0, 0);
  EXPECT_NE(memory.words_hash(), five_at_0) << "one value in another word";
  EXPECT_NE(memory.words_hash(), empty);
  memory.store(0, 5);
  memory.store(1, 0);
  EXPECT_EQ(memory.words_hash(), five_at_0) << "whatever the way there";
  memory.store(0, 6);
  EXPECT_NE(memory.words_hash(), five_at_0);
  EXPECT_EQ(memory.load(0), 6u);
  EXPECT_EQ(memory.load(1), 0u);
}

TEST(Memory, IsAsNewWhenCleared) {
  Memory memory(shape);
  const std::uint64_t words = memory.words_hash();
  const std::uint64_t line = memory.hash_at(1, 0);
  memory.store(3, 5);
  memory.change(1, filled(7), ~LineMask{0});
  memory.clear();
  EXPECT_EQ(memory.load(3), 0u);
  EXPECT_EQ(memory.words_hash(), words);
  EXPECT_EQ(memory.latest(1), 0u);
  EXPECT_EQ(memory.at(1, 0), LineBytes{});
  EXPECT_EQ(memory.hash_at(1, 0), line);
  memory.store(3, 5);
  memory.store(3, 0);
  EXPECT_EQ(memory.words_hash(), words) << "nothing is left of the value before";
}

}  // namespace
}  // namespace tombolo::litmus
