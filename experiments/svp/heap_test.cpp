// SPDX-License-Identifier: Apache-2.0
// First fit against a plain model: blocks do not overlap, all bytes are accounted for, and free
// blocks join.
#include "experiments/svp/heap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "base/random.h"

namespace tombolo::experiments {
namespace {

using simulator::Address;

constexpr std::uint64_t line = 32;
constexpr std::uint64_t lines_in_all = 64;
constexpr std::uint64_t start_of_all = 4096;

// A flag for each line of the memory.
class Model {
 public:
  // The first free range, or the last, of so many lines.
  std::optional<std::uint64_t> place(std::uint64_t lines, Heap::From from) const {
    std::optional<std::uint64_t> found;
    std::uint64_t run = 0;
    for (std::uint64_t i = 0; i <= lines_in_all; ++i) {
      const bool is_free = i < lines_in_all && !used_[i];
      if (is_free) {
        ++run;
        continue;
      }
      if (run >= lines) {
        if (from == Heap::From::below) return i - run;
        found = i - lines;
      }
      run = 0;
    }
    return found;
  }
  void set(std::uint64_t first, std::uint64_t lines, bool used) {
    for (std::uint64_t i = first; i < first + lines; ++i) {
      EXPECT_NE(used_[i], used) << "line " << i;
      used_[i] = used;
    }
  }
  std::uint64_t free_lines() const {
    return static_cast<std::uint64_t>(std::count(used_.begin(), used_.end(), false));
  }

 private:
  std::vector<bool> used_ = std::vector<bool>(lines_in_all);
};

struct Block {
  Address at;
  std::uint64_t lines;
};

class RandomHeap : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  RandomHeap() : random_(GetParam()) { heap_.add(Address(start_of_all), lines_in_all * line); }
  void allocate() {
    const std::uint64_t bytes = 1 + random_.below(12 * line);
    const std::uint64_t lines = (bytes + line - 1) / line;
    const auto from = random_.below(2) == 0 ? Heap::From::below : Heap::From::above;
    const std::optional<std::uint64_t> expected = model_.place(lines, from);
    Address at;
    const Status status = heap_.allocate(bytes, &at, from);
    ASSERT_EQ(status.ok(), expected.has_value()) << status.message();
    if (!expected) {
      EXPECT_EQ(status.code(), Code::no_memory);
      return;
    }
    EXPECT_EQ(at, Address(start_of_all + *expected * line));
    EXPECT_EQ(heap_.bytes_of(at), lines * line);
    model_.set(*expected, lines, true);
    blocks_.push_back({at, lines});
  }
  void free_one() {
    const auto n = static_cast<std::ptrdiff_t>(random_.below(blocks_.size()));
    const Block block = blocks_[static_cast<std::size_t>(n)];
    blocks_.erase(blocks_.begin() + n);
    heap_.free(block.at);
    model_.set((block.at.byte() - start_of_all) / line, block.lines, false);
  }

  Random random_;
  Heap heap_;
  Model model_;
  std::vector<Block> blocks_;
};

TEST_P(RandomHeap, IsFirstFit) {
  SCOPED_TRACE(GetParam());
  for (int step = 0; step < 2000; ++step) {
    if (blocks_.empty() || random_.below(5) < 3) {
      allocate();
    } else {
      free_one();
    }
    ASSERT_FALSE(HasFatalFailure());
    EXPECT_EQ(heap_.bytes_free(), model_.free_lines() * line);
    EXPECT_EQ(heap_.bytes_used(), (lines_in_all - model_.free_lines()) * line);
  }
  while (!blocks_.empty()) free_one();
  Address at;
  EXPECT_TRUE(heap_.allocate(lines_in_all * line, &at).ok());
  EXPECT_EQ(at, Address(start_of_all));
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomHeap, ::testing::Values(1, 2, 3, 4));

TEST(Heap, JoinsRangesThatWereAddedApart) {
  Heap heap;
  heap.add(Address(0), 64);
  heap.add(Address(128), 64);
  Address at;
  EXPECT_EQ(heap.allocate(128, &at).code(), Code::no_memory);
  heap.add(Address(64), 64);
  ASSERT_TRUE(heap.allocate(192, &at).ok());
  EXPECT_EQ(at, Address(0));
  EXPECT_EQ(heap.bytes_free(), 0u);
}

TEST(Heap, GivesALineEvenForNothing) {
  Heap heap;
  heap.add(Address(0), 64);
  Address a;
  Address b;
  ASSERT_TRUE(heap.allocate(0, &a).ok());
  ASSERT_TRUE(heap.allocate(0, &b).ok());
  EXPECT_NE(a, b);
}

TEST(Heap, SaysWhatIsInUseAndWhatIsFree) {
  Heap heap;
  heap.add(Address(0), 256);
  Address at;
  ASSERT_TRUE(heap.allocate(96, &at).ok());
  const Status status = heap.allocate(1000, &at);
  EXPECT_NE(status.message().find("1000 bytes are wanted; 96 are in use and 160 free"),
            std::string::npos)
      << status.message();
}

TEST(HeapDeathTest, ABlockIsFreedOnce) {
  Heap heap;
  heap.add(Address(0), 64);
  Address at;
  ASSERT_TRUE(heap.allocate(32, &at).ok());
  heap.free(at);
  EXPECT_DEATH(heap.free(at), "which is not in use");
}

}  // namespace
}  // namespace tombolo::experiments
