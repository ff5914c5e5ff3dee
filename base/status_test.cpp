// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace tombolo {
namespace {

static_assert(sizeof(Status) == sizeof(void*));

TEST(Status, IsOkWithoutAMessage) {
  const Status ok;
  EXPECT_TRUE(ok.ok());
  EXPECT_EQ(ok.code(), Code::ok);
  EXPECT_EQ(ok.rank(), -1);
  EXPECT_EQ(ok.message(), "");
}

TEST(Status, CopiesAndMovesKeepTheError) {
  Status error = Status::process_failed(3, "rank 3 died");
  const Status copy = error;
  EXPECT_FALSE(error.ok());
  EXPECT_EQ(copy.rank(), 3);
  const Status moved = std::move(error);
  EXPECT_EQ(moved.message(), "rank 3 died");
  EXPECT_EQ(copy.message(), "rank 3 died");
  EXPECT_EQ(moved.code(), Code::process_failed);
}

TEST(Status, AssignmentDropsWhatWasHeld) {
  Status status = Status::io("open: No such file");
  status = Status::no_memory("4096 bytes");
  EXPECT_EQ(status.code(), Code::no_memory);
  const Status& same = status;
  status = same;
  EXPECT_EQ(status.message(), "4096 bytes");
  status = Status{};
  EXPECT_TRUE(status.ok());
}

TEST(Status, EachErrorHasItsCode) {
  EXPECT_EQ(Status::no_memory("m").code(), Code::no_memory);
  EXPECT_EQ(Status::process_failed(0, "m").code(), Code::process_failed);
  EXPECT_EQ(Status::unsupported("m").code(), Code::unsupported);
  EXPECT_EQ(Status::bad_configuration("m").code(), Code::bad_configuration);
  EXPECT_EQ(Status::io("m").code(), Code::io);
  EXPECT_EQ(Status::out_of_range("m").code(), Code::out_of_range);
  EXPECT_EQ(Status::stopped("m").code(), Code::stopped);
  EXPECT_EQ(Status::epoch("m").code(), Code::epoch);
  EXPECT_EQ(Status::io("m").rank(), -1) << "only a process has a rank";
}

TEST(Status, IsSharedByThreadsUntilTheLastOneDropsIt) {
  const Status error = Status::io("shared");
  std::atomic<int> wrong = 0;
  const auto copy_and_drop = [&] {
    for (int i = 0; i < 20'000; ++i) {
      const Status mine = error;
      Status other = mine;
      other = Status();
      if (mine.message() != "shared") ++wrong;
    }
  };
  std::thread first(copy_and_drop);
  std::thread second(copy_and_drop);
  first.join();
  second.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(error.message(), "shared");
}

TEST(Status, TryReturnsTheError) {
  const auto tried = [](const Status& given) -> Status {
    TOMBOLO_TRY(given);
    return Status::epoch("behind");
  };
  EXPECT_EQ(tried(Status::io("first")).message(), "first");
  EXPECT_EQ(tried({}).message(), "behind");
}

}  // namespace
}  // namespace tombolo
