// SPDX-License-Identifier: Apache-2.0
// Purpose: pages that move back with their use, one short use after the other (OM7). The clock is
// the test's: each look at it takes a millisecond, so that to move pages there and back takes two.
#include <gtest/gtest.h>

#include <array>
#include <chrono>

#include "host/images/own_memory.h"
#include "host/images/testing/own_memories.h"
#include "host/memory/page.h"
#include "host/memory/testing/memory.h"

namespace tombolo::host {
namespace {

using namespace std::chrono_literals;

using testing::is_private;
using testing::is_shared;
using testing::NeedsSharing;
using testing::Plain;

const std::uint64_t page = page_bytes();

OwnMemory::Time the_time;

OwnMemory::Time now() { return the_time += 1ms; }

OwnMemory& with_clock() { return testing::fresh("/", &now); }

// Whether the memory is shared while it is used for so long.
bool is_shared_for(OwnMemory& own, char* start, std::uint64_t bytes,
                   std::chrono::milliseconds time) {
  auto use = own.enter(start, bytes);
  const bool shared = own.share(use) == use.range();
  EXPECT_EQ(shared, is_shared(start));
  the_time += time;
  return shared;
}

class OwnMemoryLivesTest : public NeedsSharing {};

TEST_F(OwnMemoryLivesTest, PagesDoNotMoveForTheNextOfSeveralUsesThatLiveForAMoment) {
  Plain plain(4);
  OwnMemory& own = with_clock();
  EXPECT_TRUE(is_shared_for(own, plain.at(0), 4 * page, 0ms));
  EXPECT_TRUE(is_shared_for(own, plain.at(8), 3 * page, 0ms));
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(is_shared_for(own, plain.at(0), 4 * page, 0ms));
    EXPECT_TRUE(is_private(plain.at(0)));
  }
}

TEST_F(OwnMemoryLivesTest, PagesMoveAgainAfterAUseThatLivesLonger) {
  Plain plain(4);
  OwnMemory& own = with_clock();
  for (int i = 0; i < 2; ++i) is_shared_for(own, plain.at(0), 4 * page, 0ms);
  EXPECT_FALSE(is_shared_for(own, plain.at(0), 4 * page, 1ms)) << "2 ms, as long as it takes";
  EXPECT_TRUE(is_shared_for(own, plain.at(0), 4 * page, 0ms));
}

TEST_F(OwnMemoryLivesTest, PagesMoveForUsesThatLiveAsLongAsTheMove) {
  Plain plain(4);
  OwnMemory& own = with_clock();
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(is_shared_for(own, plain.at(0), 4 * page, 1ms));
}

TEST_F(OwnMemoryLivesTest, PagesOfTwoUsesLiveUntilTheLastOneEnds) {
  Plain plain(4);
  OwnMemory& own = with_clock();
  for (int i = 0; i < 4; ++i) {
    auto use = own.enter(plain.at(0), 4 * page);
    EXPECT_EQ(own.share(use), use.range()) << i;
    EXPECT_TRUE(is_shared_for(own, plain.at(0), 4 * page, 0ms));
    EXPECT_TRUE(is_shared(plain.at(0))) << "the other use is there";
    the_time += 10ms;
  }
}

alignas(4096) std::array<char, 16 * 4096> few_variables{1};

TEST_F(OwnMemoryLivesTest, PagesThatStayMoveOnceAndForAll) {
  OwnMemory& own = with_clock();
  for (int i = 0; i < 5; ++i)
    EXPECT_TRUE(is_shared_for(own, few_variables.data(), few_variables.size(), 0ms));
}

alignas(4096) std::array<char, OwnMemory::most_kept_bytes + (1 << 20)> many_variables;

TEST_F(OwnMemoryLivesTest, MorePagesThanMayStayMoveBackAsOthers) {
  OwnMemory& own = with_clock();
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(is_shared_for(own, many_variables.data(), many_variables.size(), 0ms), i < 2);
}

}  // namespace
}  // namespace tombolo::host
