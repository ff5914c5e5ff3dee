// SPDX-License-Identifier: Apache-2.0
// Purpose: a function runs on another stack, and the caller's keeps all its bytes meanwhile.
#include "host/stacks/other_stack.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "base/rounding.h"
#include "host/memory/page.h"

namespace tombolo::host {
namespace {

class OtherStackTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!OtherStack().valid()) GTEST_SKIP() << "sanitizers must know all stacks";
  }
};

// Of a frame next to the caller's. Optimizers see no constant in it.
[[gnu::noinline]] std::uint64_t place_of_frame() {
  volatile char here = 0;
  volatile std::uint64_t place = 0;
  place = reinterpret_cast<std::uint64_t>(&here);
  return place;
}

std::uint64_t distance(std::uint64_t a, std::uint64_t b) { return a > b ? a - b : b - a; }

TEST_F(OtherStackTest, RunsTheFunctionOnIt) {
  OtherStack stack;
  std::uint64_t inside = 0;
  int runs = 0;
  stack.run([&] {
    inside = place_of_frame();
    ++runs;
  });
  EXPECT_EQ(runs, 1);
  EXPECT_GT(distance(inside, place_of_frame()), OtherStack::bytes);
}

// Uses much stack.
[[gnu::noinline]] std::uint64_t work(std::uint64_t n) {
  std::array<volatile std::uint64_t, 512> words;
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = n * i;
  std::uint64_t sum = n == 0 ? 0 : work(n - 1);
  for (auto& word : words) sum += word;
  return sum;
}

TEST_F(OtherStackTest, ChangesNoByteOfTheCallersStack) {
  const std::uint64_t page = page_bytes();
  constexpr std::uint64_t compared = 64 * 1024;
  static std::array<unsigned char, compared> before;
  static std::array<unsigned char, compared> after;
  static std::uint64_t low;
  low = (place_of_frame() - compared) / page * page;  // the stack may end behind the frame
  volatile char grown[compared];                      // so that the pages are there
  grown[0] = 1;
  grown[compared - 1] = grown[0];
  OtherStack stack;
  stack.run([] {
    std::memcpy(before.data(), reinterpret_cast<const void*>(low), compared);
    if (work(20) == 0) return;
    std::memcpy(after.data(), reinterpret_cast<const void*>(low), compared);
  });
  EXPECT_EQ(std::memcmp(before.data(), after.data(), compared), 0);
}

TEST_F(OtherStackTest, RunsWhileTheCallersStackCannotBeWrittenTo) {
  const std::uint64_t page = page_bytes();
  static std::uint64_t low;
  static std::uint64_t result;
  low = place_of_frame() / page * page - page;
  OtherStack stack;
  stack.run([] {
    const std::uint64_t bytes = 2 * page_bytes();  // the stack may end behind them
    if (mprotect(reinterpret_cast<void*>(low), bytes, PROT_READ) != 0) return;
    result = work(10);
    mprotect(reinterpret_cast<void*>(low), bytes, PROT_READ | PROT_WRITE);
  });
  EXPECT_EQ(result, work(10));
}

TEST_F(OtherStackTest, RunsAgainAndWithinAnother) {
  OtherStack outer;
  OtherStack inner;
  std::uint64_t places[2] = {};
  for (int i = 0; i < 1000; ++i) {
    std::uint64_t sum = 0;
    outer.run([&] {
      places[0] = place_of_frame();
      inner.run([&] {
        places[1] = place_of_frame();
        sum += work(2);
      });
      sum += work(3);
    });
    ASSERT_EQ(sum, work(2) + work(3));
  }
  EXPECT_NE(places[0] / OtherStack::bytes, places[1] / OtherStack::bytes);
}

TEST_F(OtherStackTest, HasTheWholeOfItsSize) {
  OtherStack stack;
  stack.run([] {
    volatile char all[OtherStack::bytes - 16 * 1024];
    for (std::size_t i = 0; i < sizeof all; i += 1024) all[i] = 1;
  });
}

TEST_F(OtherStackTest, EndsTheProcessThatNeedsMore) {
  EXPECT_DEATH(
      {
        OtherStack stack;
        stack.run([] {
          const std::uint64_t top = round_up(place_of_frame(), page_bytes());
          *reinterpret_cast<volatile char*>(top - OtherStack::bytes - 8) = 1;
        });
      },
      "");
}

TEST_F(OtherStackTest, PassesErrnoThrough) {
  OtherStack stack;
  errno = 0;
  stack.run([] { errno = ENOSPC; });
  EXPECT_EQ(errno, ENOSPC);
}

}  // namespace
}  // namespace tombolo::host
