// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"

#include <gtest/gtest.h>

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
