// SPDX-License-Identifier: Apache-2.0
// Purpose: shows which values one core sees and which it brings to memory: its store buffer, its
// dirty copies, and its writes through; and that its hash tells apart states that can go on
// differently.
// Thread safety: -
#include "litmus/explorer/private_memory.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tombolo::litmus {
namespace {

using Versions = std::vector<std::uint32_t>;
constexpr LineMask all_bytes = ~LineMask{0};
constexpr std::byte none{0};

constexpr LineMask unit_mask(unsigned unit) { return LineMask{0xff} << unit * unit_bytes; }

LineBytes filled(unsigned v) {
  LineBytes bytes;
  bytes.fill(static_cast<std::byte>(v));
  return bytes;
}

// One home, four words and two lines; `other` changes memory behind the back of `own`.
class PrivateMemoryOf : public ::testing::Test {
 protected:
  std::byte byte(std::uint32_t line, std::uint32_t version, unsigned unit) {
    return own.read(line, version)[unit * unit_bytes];
  }
  std::byte in_memory(std::uint32_t line, unsigned unit) const {
    return memory.at(line, memory.latest(line))[unit * unit_bytes];
  }
  void other_writes(std::uint32_t line, unsigned unit, unsigned v) {
    memory.change(line, filled(v), unit_mask(unit));
  }
  Versions versions(std::uint32_t line, LineMask mask) const {
    Versions found{99};
    own.versions(line, mask, found);
    return found;
  }

  Memory memory{{.cores = 1, .sync_bytes = 32, .data_bytes = 2 * line_bytes}};
  PrivateMemory own{memory};
};

// ---- Store buffer -------------------------------------------------------------------------------

TEST_F(PrivateMemoryOf, StoresAreSeenByTheirCoreBeforeTheyLeave) {
  memory.store(1, 4);
  EXPECT_EQ(own.visible(1), 4u);
  own.stores().push_back({.word = 1, .value = 5});
  own.stores().push_back({.word = 2, .value = 6});
  own.stores().push_back({.word = 1, .value = 7});
  EXPECT_EQ(own.visible(1), 7u) << "the youngest";
  EXPECT_EQ(own.visible(2), 6u);
  EXPECT_EQ(own.visible(0), 0u);
  EXPECT_EQ(memory.load(1), 4u);
}

TEST_F(PrivateMemoryOf, StoresLeaveInTheOrderOfTheProgram) {
  own.stores() = {{.word = 1, .value = 5}, {.word = 2, .value = 6}, {.word = 1, .value = 7}};
  own.oldest_store_to_memory();
  EXPECT_EQ(memory.load(1), 5u);
  EXPECT_EQ(memory.load(2), 0u);
  EXPECT_EQ(own.visible(1), 7u);
  own.oldest_store_to_memory();
  EXPECT_EQ(memory.load(2), 6u);
  own.oldest_store_to_memory();
  EXPECT_EQ(memory.load(1), 7u);
  EXPECT_TRUE(own.stores().empty());
}

// ---- Versions -----------------------------------------------------------------------------------

TEST_F(PrivateMemoryOf, CleanLineMayBeOfAnyVersionSinceTheFloor) {
  for (const unsigned v : {1u, 2u, 3u}) other_writes(0, 0, v);
  EXPECT_EQ(versions(0, unit_mask(0)), (Versions{0, 1, 2, 3}));
  EXPECT_EQ(byte(0, 1, 0), std::byte{1});
  EXPECT_EQ(own.floor(0), 1u) << "no older one from now on (L1)";
  EXPECT_EQ(versions(0, unit_mask(0)), (Versions{1, 2, 3}));
  EXPECT_EQ(own.floor(1), 0u) << "another line has a floor of its own";
  own.refresh(0, all_bytes);
  EXPECT_EQ(versions(0, unit_mask(0)), (Versions{3}));
}

TEST_F(PrivateMemoryOf, OfEqualVersionsTheOldestStandsForAll) {
  other_writes(0, 0, 1);
  other_writes(0, 1, 1);
  other_writes(0, 0, 0);
  EXPECT_EQ(versions(0, unit_mask(0)), (Versions{0, 1}))
      << "2 shows the same bytes as 1, and 3 the same as 0";
  EXPECT_EQ(versions(0, unit_mask(1)), (Versions{0, 2}));
  EXPECT_EQ(versions(0, all_bytes), (Versions{0, 1, 2, 3}));
  EXPECT_EQ(versions(0, 0), (Versions{0})) << "nothing is looked at";
}

// ---- Dirty lines --------------------------------------------------------------------------------

TEST_F(PrivateMemoryOf, WriteFetchesTheRestOfItsLine) {
  other_writes(0, 1, 1);
  other_writes(0, 1, 2);
  own.write(0, 1, filled(9), unit_mask(0));
  EXPECT_TRUE(own.dirty(0));
  EXPECT_FALSE(own.dirty(1));
  EXPECT_EQ(byte(0, 2, 0), std::byte{9});
  EXPECT_EQ(byte(0, 2, 1), std::byte{1}) << "its copy, whatever version is asked for";
  EXPECT_EQ(own.floor(0), 1u);
  EXPECT_EQ(in_memory(0, 0), none) << "not before it is written back";
}

TEST_F(PrivateMemoryOf, SecondWriteKeepsTheCopy) {
  own.write(0, 0, filled(9), unit_mask(0));
  other_writes(0, 2, 3);
  own.write(0, 1, filled(8), unit_mask(1));
  EXPECT_EQ(byte(0, 0, 0), std::byte{9});
  EXPECT_EQ(byte(0, 0, 1), std::byte{8});
  EXPECT_EQ(byte(0, 0, 2), none) << "not fetched again";
}

TEST_F(PrivateMemoryOf, WriteBackTakesStaleNeighboursAlong) {
  own.write(0, 0, filled(9), unit_mask(0));
  other_writes(0, 1, 3);
  own.write_back(0);
  EXPECT_EQ(in_memory(0, 0), std::byte{9});
  EXPECT_EQ(in_memory(0, 1), none) << "the other core's bytes are lost (R2)";
  EXPECT_FALSE(own.dirty(0));
  EXPECT_EQ(own.floor(0), memory.latest(0));
}

TEST_F(PrivateMemoryOf, RefreshFetchesACleanLine) {
  other_writes(0, 0, 1);
  own.refresh(0, unit_mask(1));
  EXPECT_EQ(own.floor(0), 1u) << "a line is fetched whole";
}

TEST_F(PrivateMemoryOf, RefreshLosesWhatWasWrittenThereAndNoMore) {
  own.write(0, 0, filled(9), unit_mask(0));
  own.write(0, 0, filled(8), unit_mask(1));
  other_writes(0, 0, 3);
  other_writes(0, 2, 4);
  own.refresh(0, unit_mask(0));
  ASSERT_TRUE(own.dirty(0));
  EXPECT_EQ(byte(0, 0, 0), std::byte{3});
  EXPECT_EQ(byte(0, 0, 1), std::byte{8}) << "still dirty";
  EXPECT_EQ(byte(0, 0, 2), std::byte{4}) << "new beside it";
  own.refresh(0, unit_mask(1));
  EXPECT_FALSE(own.dirty(0));
  EXPECT_EQ(byte(0, memory.latest(0), 1), none);
}

// ---- Written through ----------------------------------------------------------------------------

TEST_F(PrivateMemoryOf, WriteThroughIsSeenByItsCoreAtOnce) {
  own.write_through(1, filled(5), unit_mask(1));
  EXPECT_EQ(byte(0, 0, 1), std::byte{5}) << "L3";
  EXPECT_EQ(byte(0, 0, 0), none);
  EXPECT_EQ(byte(1, 0, 1), none) << "unit 1 is of line 0";
  EXPECT_EQ(in_memory(0, 1), none);
  EXPECT_TRUE(own.is_pending(1));
  EXPECT_FALSE(own.is_pending(0));
  EXPECT_FALSE(own.drained());
}

TEST_F(PrivateMemoryOf, WriteThroughSettlesItsOwnBytesOnly) {
  own.write_through(1, filled(5), unit_mask(1));
  own.write_through(9, filled(6), unit_mask(1));
  other_writes(0, 0, 3);
  own.settle(1);
  EXPECT_EQ(in_memory(0, 1), std::byte{5});
  EXPECT_EQ(in_memory(0, 0), std::byte{3}) << "neighbours stay";
  EXPECT_EQ(in_memory(1, 1), none) << "the other is still on its way";
  EXPECT_FALSE(own.is_pending(1));
  EXPECT_TRUE(own.is_pending(9));
  EXPECT_FALSE(own.drained());
  own.settle(9);
  EXPECT_EQ(in_memory(1, 1), std::byte{6});
  EXPECT_TRUE(own.drained());
}

TEST_F(PrivateMemoryOf, WritesThroughToOneUnitAreCombined) {
  own.write_through(0, filled(5), 0b0011);
  own.write_through(0, filled(6), 0b0110);
  own.write_through(1, filled(7), unit_mask(1));
  ASSERT_EQ(own.pieces().size(), 2u);
  own.settle(0);
  const LineBytes line = memory.at(0, memory.latest(0));
  EXPECT_EQ(line[0], std::byte{5});
  EXPECT_EQ(line[1], std::byte{6});
  EXPECT_EQ(line[2], std::byte{6});
  EXPECT_EQ(line[3], none);
  EXPECT_EQ(line[unit_bytes], none);
}

TEST_F(PrivateMemoryOf, WhatHasSettledIsNotCombinedWithWhatComesAfter) {
  other_writes(0, 1, 3);  // a newer version keeps the piece in sight of the older one
  own.write_through(0, filled(5), unit_mask(0));
  own.settle(0);
  own.write_through(0, filled(6), unit_mask(0));
  EXPECT_TRUE(own.is_pending(0));
  EXPECT_EQ(in_memory(0, 0), std::byte{5});
  EXPECT_EQ(byte(0, 0, 0), std::byte{6});
  own.settle(0);
  EXPECT_EQ(in_memory(0, 0), std::byte{6});
}

TEST_F(PrivateMemoryOf, SettledPieceIsSeenBesideOlderVersionsOnly) {
  own.write_through(0, filled(5), unit_mask(0));
  own.settle(0);
  other_writes(0, 0, 6);
  EXPECT_EQ(versions(0, unit_mask(0)), (Versions{0, 2})) << "0 with its own 5, and the newest";
  EXPECT_EQ(byte(0, 0, 0), std::byte{5});
  EXPECT_EQ(own.pieces().size(), 1u);
  EXPECT_EQ(byte(0, 2, 0), std::byte{6});
  EXPECT_TRUE(own.pieces().empty()) << "it can be seen no more";
}

TEST_F(PrivateMemoryOf, PieceIsForgottenAtItsOwnVersion) {
  own.write_through(0, filled(5), unit_mask(0));
  own.write_through(8, filled(6), unit_mask(0));
  own.settle(0);
  own.settle(8);
  ASSERT_EQ(own.pieces().size(), 2u);
  (void)own.read(0, 1);
  ASSERT_EQ(own.pieces().size(), 1u) << "that of the other line stays";
  EXPECT_EQ(own.pieces()[0].unit, 8u);
}

TEST_F(PrivateMemoryOf, PieceThatIsNoChangeIsForgottenWhenItSettles) {
  other_writes(0, 0, 5);
  own.refresh(0, all_bytes);
  own.write_through(0, filled(5), unit_mask(0));
  own.settle(0);
  EXPECT_EQ(memory.latest(0), 1u);
  EXPECT_TRUE(own.pieces().empty());
}

TEST_F(PrivateMemoryOf, WriteThroughChangesADirtyCopyAsWell) {
  own.write(0, 0, filled(9), unit_mask(0));
  own.write_through(1, filled(5), unit_mask(1));
  EXPECT_EQ(byte(0, 0, 1), std::byte{5});
  own.write_back(0);
  EXPECT_EQ(in_memory(0, 1), std::byte{5}) << "with the line, before it settles";
  EXPECT_TRUE(own.is_pending(1));
}

TEST_F(PrivateMemoryOf, DirtyCopyIsFetchedWithWhatIsOnItsWay) {
  own.write_through(1, filled(5), unit_mask(1));
  own.write(0, 0, filled(9), unit_mask(0));
  EXPECT_EQ(byte(0, 0, 1), std::byte{5});
}

// ---- All of it ----------------------------------------------------------------------------------

TEST_F(PrivateMemoryOf, IsAsNewWhenCleared) {
  const std::uint64_t before = own.hash();
  own.stores().push_back({.word = 1, .value = 5});
  own.write(0, 0, filled(9), unit_mask(0));
  own.write_through(8, filled(5), unit_mask(0));
  other_writes(1, 1, 1);
  own.refresh(1, all_bytes);
  own.clear();
  memory.clear();
  EXPECT_TRUE(own.stores().empty());
  EXPECT_FALSE(own.dirty(0));
  EXPECT_EQ(own.floor(1), 0u);
  EXPECT_TRUE(own.pieces().empty());
  EXPECT_EQ(own.hash(), before);
}

// Each line of the list makes the state another one, and no two of them the same.
TEST_F(PrivateMemoryOf, HashTellsStatesApart) {
  std::vector<std::uint64_t> hashes{own.hash()};
  const auto another = [&](const char* what) {
    const std::uint64_t hash = own.hash();
    EXPECT_EQ(std::count(hashes.begin(), hashes.end(), hash), 0) << what;
    hashes.push_back(hash);
  };
  own.stores() = {{.word = 1, .value = 5}};
  another("a store");
  own.stores() = {{.word = 1, .value = 6}};
  another("of another value");
  own.stores() = {{.word = 2, .value = 5}};
  another("to another word");
  own.stores() = {{.word = 2, .value = 5}, {.word = 1, .value = 5}};
  another("and one more");
  own.stores() = {{.word = 1, .value = 5}, {.word = 2, .value = 5}};
  another("in the other order");
  own.stores().clear();
  own.write_through(0, filled(5), unit_mask(0));
  another("a piece on its way");
  own.write_through(0, filled(6), unit_mask(0));
  another("of other bytes");
  own.settle(0);
  another("settled");
  other_writes(0, 1, 1);
  another("a newer version behind it");
  (void)own.read(0, 1);
  another("of which it can see two");
  own.write(0, 2, filled(7), unit_mask(0));
  another("a dirty line");
  own.write(0, 2, filled(8), unit_mask(0));
  another("of other bytes");
  own.write(0, 2, filled(8), unit_mask(7));
  another("with more of them");
  own.write(1, 0, filled(8), unit_mask(0));
  another("and another one");
}

TEST_F(PrivateMemoryOf, HashIsOfPlacesAndMasks) {
  PrivateMemory second(memory);
  own.write(0, 0, filled(8), unit_mask(0));
  second.write(1, 0, filled(8), unit_mask(0));
  EXPECT_NE(own.hash(), second.hash()) << "one content in different lines";
  own.clear();
  second.clear();
  own.write(0, 0, LineBytes{}, unit_mask(0));
  second.write(0, 0, LineBytes{}, unit_mask(1));
  EXPECT_NE(own.hash(), second.hash()) << "one content, of which other bytes are written";
  own.clear();
  second.clear();
  own.write_through(0, LineBytes{}, unit_mask(0));
  second.write_through(1, LineBytes{}, unit_mask(1));
  EXPECT_NE(own.hash(), second.hash()) << "pieces of one content in different units";
  second.clear();
  second.write_through(8, LineBytes{}, unit_mask(0));
  EXPECT_NE(own.hash(), second.hash()) << "in different lines";
  second.clear();
  second.write_through(0, LineBytes{}, 1);
  EXPECT_NE(own.hash(), second.hash()) << "a shorter piece";
}

TEST_F(PrivateMemoryOf, HashForgetsVersionsThatItCanSeeNoMore) {
  const std::uint64_t before = own.hash();
  other_writes(0, 0, 1);
  EXPECT_NE(own.hash(), before) << "it may see the old and the new";
  own.refresh(0, all_bytes);
  EXPECT_EQ(own.hash(), before) << "the new, which is hashed with memory";
}

}  // namespace
}  // namespace tombolo::litmus
