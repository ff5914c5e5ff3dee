// SPDX-License-Identifier: Apache-2.0
#include "host/memory/memory_grants.h"

#include <gtest/gtest.h>

namespace tombolo::host {
namespace {

using std::chrono::milliseconds;
constexpr MemoryGrants::Clock::time_point start{std::chrono::hours(1)};

TEST(MemoryGrants, NothingIsGrantedBeforeALook) {
  MemoryGrants grants;
  EXPECT_FALSE(grants.take(0, start));
  EXPECT_FALSE(grants.take(1, start));
}

TEST(MemoryGrants, A64thOfTheRoomIsGrantedAndNoByteMore) {
  MemoryGrants grants;
  grants.looked(6400 + 1000, 1000, start);
  EXPECT_TRUE(grants.take(60, start));
  EXPECT_FALSE(grants.take(41, start));
  EXPECT_TRUE(grants.take(40, start)) << "a refusal takes nothing";
  EXPECT_FALSE(grants.take(1, start));
}

TEST(MemoryGrants, ALookReplacesTheGrantsOfTheOneBefore) {
  MemoryGrants grants;
  grants.looked(6400, 0, start);
  grants.looked(640, 0, start);
  EXPECT_FALSE(grants.take(11, start));
  EXPECT_TRUE(grants.take(10, start));
}

TEST(MemoryGrants, GrantsEndAfterASecond) {
  MemoryGrants grants;
  grants.looked(6400, 0, start);
  EXPECT_TRUE(grants.take(1, start + milliseconds(999)));
  EXPECT_FALSE(grants.take(1, start + milliseconds(1000)));
}

}  // namespace
}  // namespace tombolo::host
