// SPDX-License-Identifier: Apache-2.0
#include "runtime/reports/reports.h"

#include <gtest/gtest.h>

namespace tombolo::runtime {
namespace {

TEST(Reports, AreWrittenOnceByTheFirstProcess) {
  Reports reports(0);
  ::testing::internal::CaptureStderr();
  reports.once("one");
  reports.once("two");
  reports.once("one");
  reports.own_once("mine");
  reports.own_once("mine");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "tombolo: one\ntombolo: two\ntombolo: rank 0: mine\n");
}

TEST(Reports, OfOthersAreOnlyTheirOwn) {
  Reports reports(3);
  ::testing::internal::CaptureStderr();
  reports.once("one");
  reports.own_once("mine");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "tombolo: rank 3: mine\n");
}

}  // namespace
}  // namespace tombolo::runtime
