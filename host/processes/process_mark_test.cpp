// SPDX-License-Identifier: Apache-2.0
// Purpose: a mark is seen by other processes as long as its process has it, has one owner, and is
// gone with a process that is killed.
#include "host/processes/process_mark.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

namespace tombolo::host {
namespace {

std::string own(std::string_view text) { return fmt::format("{} of test {}", text, getpid()); }

TEST(ProcessMark, IsSeenAsLongAsItIsHeld) {
  const MarkLookup lookup;
  ASSERT_TRUE(lookup.ok());
  ProcessMark mark;
  EXPECT_FALSE(lookup.is_taken(own("a")));
  EXPECT_EQ(mark.take(own("a")), Taken::yes);
  EXPECT_TRUE(mark.held());
  EXPECT_TRUE(lookup.is_taken(own("a")));
  EXPECT_FALSE(lookup.is_taken(own("b")));
  mark.drop();
  EXPECT_FALSE(lookup.is_taken(own("a")));
}

TEST(ProcessMark, HasOneOwner) {
  ProcessMark first;
  ProcessMark second;
  EXPECT_EQ(first.take(own("a")), Taken::yes);
  EXPECT_EQ(second.take(own("a")), Taken::by_another);
  EXPECT_FALSE(second.held());
  first.drop();
  EXPECT_EQ(second.take(own("a")), Taken::yes);
}

TEST(ProcessMark, LongNamesDifferByTheirStartToo) {
  const std::string end(300, 'x');
  const MarkLookup lookup;
  ProcessMark mark;
  EXPECT_EQ(mark.take(own("a") + end), Taken::yes);
  EXPECT_TRUE(lookup.is_taken(own("a") + end));
  EXPECT_FALSE(lookup.is_taken(own("b") + end));
}

TEST(ProcessMark, IsGoneWithAProcessThatIsKilled) {
  const std::string name = own("a");
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    ProcessMark mark;
    if (mark.take(name) != Taken::yes) _exit(1);
    (void)!write(ready[1], "", 1);
    for (;;) pause();
  }
  char byte = 0;
  close(ready[1]);
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  const MarkLookup lookup;
  EXPECT_TRUE(lookup.is_taken(name));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_FALSE(lookup.is_taken(name));
  close(ready[0]);
}

}  // namespace
}  // namespace tombolo::host
