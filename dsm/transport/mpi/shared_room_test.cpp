// SPDX-License-Identifier: Apache-2.0
#include "dsm/transport/mpi/shared_room.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace tombolo::dsm {
namespace {

SharedRoom room(const char* host, std::uint64_t wanted, std::uint64_t left) {
  SharedRoom made{.wanted_bytes = wanted, .free_bytes = left};
  std::strncpy(made.host.data(), host, made.host.size() - 1);
  return made;
}

TEST(SharedRoom, IsForAllProcessesOfAHostTogether) {
  std::vector<SharedRoom> all = {room("a", 60, 100), room("b", 60, 120), room("b", 60, 120)};
  EXPECT_TRUE(check_rooms(all).ok()) << "just enough";
  all.push_back(room("a", 41, 100));
  const Status refused = check_rooms(all);
  EXPECT_EQ(refused.code(), Code::no_memory);
  EXPECT_NE(
      refused.message().find("the 2 processes on host a need 101 bytes of /dev/shm, which has "
                             "100 left"),
      std::string::npos)
      << refused.message();
}

TEST(SharedRoom, OfTheLastHostIsLookedAtToo) {
  const std::vector<SharedRoom> all = {room("a", 1, 100), room("b", 60, 119), room("b", 60, 120)};
  EXPECT_NE(check_rooms(all).message().find("host b"), std::string::npos) << "the least counts";
}

TEST(SharedRoom, IsNotNeededByAProcessThatIsAlone) {
  const std::vector<SharedRoom> all = {room("a", 60, 0), room("b", 60, 0)};
  EXPECT_TRUE(check_rooms(all).ok());
}

TEST(SharedRoom, OfOneNameAndTwoBootsIsThatOfTwoHosts) {
  std::vector<SharedRoom> all = {room("a", 60, 100), room("a", 60, 100)};
  EXPECT_FALSE(check_rooms(all).ok());
  all[1].boot[15] = 1;
  EXPECT_TRUE(check_rooms(all).ok());
}

TEST(SharedRoom, IsAskedOfTheFolder) {
  struct statvfs system {};
  ASSERT_EQ(statvfs("/dev/shm", &system), 0);
  const SharedRoom here = room_here(7);
  EXPECT_EQ(here.wanted_bytes, 7U);
  EXPECT_LE(here.free_bytes, std::uint64_t{system.f_blocks} * system.f_frsize);
  EXPECT_EQ(room_here(7, "/nowhere").free_bytes, SharedRoom::unlimited);
  EXPECT_TRUE(here.is_on_host_of(room_here(0, "/nowhere")));
}

}  // namespace
}  // namespace tombolo::dsm
