// SPDX-License-Identifier: Apache-2.0
#include "host/processes/program_output.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace tombolo::host {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(ProgramOutput, IsRead) {
  EXPECT_EQ(output_of({"echo", "one", "two words"}, seconds(20)), "one two words\n");
  const auto much = output_of({"seq", "1", "20000"}, seconds(20));
  ASSERT_TRUE(much);
  EXPECT_EQ(much->size(), 108894u) << "more than a pipe holds";
}

TEST(ProgramOutput, IsNoneOfAProgramThatIsNotThere) {
  EXPECT_FALSE(output_of({"tombolo-has-no-such-program"}, seconds(20)));
}

TEST(ProgramOutput, IsNoneOfAProgramThatTakesTooLong) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_FALSE(output_of({"sleep", "100"}, milliseconds(50)));
  EXPECT_LT(std::chrono::steady_clock::now() - start, seconds(50));
}

// HO1: a library that is preloaded here is not meant for the tool.
TEST(ProgramOutput, TheProgramHasItsOwnEnvironment) {
  setenv("TOMBOLO_TEST_OF_OUTPUT", "1", 1);
  EXPECT_EQ(output_of({"env"}, seconds(20)), "LC_ALL=C\n");
}

}  // namespace
}  // namespace tombolo::host
