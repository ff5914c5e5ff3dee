// SPDX-License-Identifier: Apache-2.0
// Purpose: tests the parts of a range of addresses: that none is lost, and where they end.
// Thread safety: -
#include "svp/remote/heap.h"

#include <gtest/gtest.h>

#include <array>

namespace tombolo::svp {
namespace {

constexpr std::uint64_t line = Heap::line;

struct Lines {
  alignas(line) std::array<std::byte, 4 * line> bytes;
  Heap heap;
  Lines() { heap.begin(bytes.data(), bytes.size()); }
};

TEST(SharedHeap, GivesOutAllOfItAndNoMore) {
  Lines lines;
  Heap& heap = lines.heap;
  EXPECT_EQ(heap.take(4 * line + 1), nullptr);
  std::byte* const all = heap.take(4 * line);
  EXPECT_EQ(all, lines.bytes.data());
  EXPECT_EQ(heap.take(0), nullptr);
  EXPECT_EQ(heap.largest(), 0u);
  heap.give_back(all);
  EXPECT_EQ(heap.largest(), 4 * line);
}

// SVH1, in each order of three parts.
TEST(SharedHeap, JoinsPartsThatComeBack) {
  for (const auto& order : std::to_array<std::array<std::size_t, 3>>(
           {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}})) {
    Lines lines;
    Heap& heap = lines.heap;
    const std::array<std::byte*, 3> parts{heap.take(1), heap.take(line + 1), heap.take(line)};
    EXPECT_EQ(heap.largest(), 0u);
    for (const std::size_t i : order) heap.give_back(parts[i]);
    EXPECT_EQ(heap.largest(), 4 * line) << order[0] << order[1] << order[2];
  }
}

// A hole that is filled exactly leaves nothing behind, where the next part begins.
TEST(SharedHeap, LosesNothingByAHoleThatIsFilled) {
  Lines lines;
  Heap& heap = lines.heap;
  std::byte* const first = heap.take(line);
  std::byte* const hole = heap.take(line);
  std::byte* const last = heap.take(2 * line);
  heap.give_back(hole);
  EXPECT_EQ(heap.take(line), hole);
  for (std::byte* const part : {last, first, hole}) heap.give_back(part);
  EXPECT_EQ(heap.largest(), 4 * line);
}

TEST(SharedHeap, KnowsTheLastLineOfAPart) {
  Lines lines;
  Heap& heap = lines.heap;
  std::byte* const before = heap.take(line);
  std::byte* const part = heap.take(line + 1);  // two lines
  EXPECT_TRUE(heap.ends_a_part(part, part + 2 * line));
  EXPECT_TRUE(heap.ends_a_part(part + line, part + 2 * line));
  EXPECT_TRUE(heap.ends_a_part(part, part + line + 1));
  EXPECT_FALSE(heap.ends_a_part(part, part + line));
  EXPECT_FALSE(heap.ends_a_part(part, part + 2 * line + 1));
  EXPECT_FALSE(heap.ends_a_part(before - 1, before));
}

TEST(SharedHeapDeathTest, FreesWhatItHasGivenOutAlone) {
  Lines lines;
  EXPECT_DEATH(lines.heap.give_back(lines.bytes.data()),
               "shared memory that this process has not allocated is freed");
}

}  // namespace
}  // namespace tombolo::svp
