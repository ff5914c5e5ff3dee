// SPDX-License-Identifier: Apache-2.0
#include "base/check.h"

#include <gtest/gtest.h>

#include <csignal>

namespace tombolo {
namespace {

TEST(Check, ThatHoldsLooksOnceAndFormatsNothing) {
  int looks = 0;
  int texts = 0;
  const auto text = [&] { return ++texts; };
  TOMBOLO_CHECK(++looks == 1, "{}", text());
  EXPECT_EQ(looks, 1);
  EXPECT_EQ(texts, 0);
}

TEST(Check, IsOneStatement) {
  bool otherwise = false;
  if (otherwise)
    TOMBOLO_CHECK(false, "not reached");
  else
    otherwise = true;
  EXPECT_TRUE(otherwise);
}

TEST(CheckDeathTest, SaysWhatWhyAndWhereInOneLine) {
  const int offset = 72;
  EXPECT_EXIT(TOMBOLO_CHECK(offset < 64, "put: offset {} is past the {} bytes", offset, 64),
              testing::KilledBySignal(SIGABRT),
              "^tombolo: put: offset 72 is past the 64 bytes \\(offset < 64 does not hold, "
              ".*check_test.cpp:[0-9]+\\)\n$");
}

TEST(CheckDeathTest, StopsFromCodeThatCannotFail) {
  const auto careful = []() noexcept { TOMBOLO_CHECK(1 + 1 == 3, "arithmetic"); };
  EXPECT_EXIT(careful(), testing::KilledBySignal(SIGABRT), "tombolo: arithmetic");
}

}  // namespace
}  // namespace tombolo
