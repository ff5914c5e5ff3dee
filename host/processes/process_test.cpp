// SPDX-License-Identifier: Apache-2.0
// Purpose: a process is told from others of its number by its start, whatever it is called; and how
// many processors there are.
#include "host/processes/process.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ctime>
#include <fstream>
#include <string>

namespace tombolo::host {
namespace {

// Calls itself `name`, and waits to be killed.
class Named {
 public:
  explicit Named(const char* name) {
    int ready[2];
    EXPECT_EQ(pipe(ready), 0);
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_NAME, name);
      (void)!write(ready[1], "", 1);
      for (;;) pause();
    }
    char byte = 0;
    EXPECT_EQ(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
  }
  ~Named() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Named(const Named&) = delete;
  Named& operator=(const Named&) = delete;
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = 0;
};

std::uint64_t ticks_since_boot() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  const auto per_second = static_cast<std::uint64_t>(sysconf(_SC_CLK_TCK));
  return static_cast<std::uint64_t>(now.tv_sec) * per_second +
         static_cast<std::uint64_t>(now.tv_nsec) * per_second / 1'000'000'000;
}

TEST(ProcessName, TellsWhenTheProcessWasStarted) {
  const std::uint64_t before = ticks_since_boot();
  const Named child("child");
  const std::uint64_t after = ticks_since_boot();
  const ProcessName name = process_named(child.pid());
  EXPECT_EQ(name.pid, child.pid());
  ASSERT_NE(name.started, 0u);
  if (name.started + 100 < before || name.started > after + 100)
    GTEST_SKIP() << "the kernel of this host counts its ticks otherwise";
  EXPECT_GE(name.started + 2, before);
  EXPECT_LE(name.started, after + 2);
}

TEST(ProcessName, MayHoldParenthesesAndBlanks) {
  const Named plain("plain");
  const std::uint64_t started = process_named(plain.pid()).started;
  for (const char* called : {"a) Z 1 (b", ") ) )", "Z", "((", ""}) {
    const Named odd(called);
    const ProcessName name = process_named(odd.pid());
    EXPECT_GE(name.started, started) << called;
    EXPECT_LT(name.started, started + 10'000) << called;
    EXPECT_FALSE(has_ended(name)) << called;
  }
}

TEST(ProcessName, OfANumberThatNobodyHasIsUnknownAndEnded) {
  const pid_t pid = fork();
  if (pid == 0) _exit(0);
  waitpid(pid, nullptr, 0);
  const ProcessName name = process_named(pid);
  EXPECT_EQ(name, (ProcessName{pid, 0}));
  EXPECT_TRUE(number_is_free(name));
  EXPECT_TRUE(has_ended(name));
}

TEST(ProcessName, IsUncollectedFromItsEndUntilItsParentAsks) {
  ProcessName name;
  {
    const Named child("child");
    name = process_named(child.pid());
    EXPECT_FALSE(is_uncollected(name));
    kill(child.pid(), SIGKILL);
    siginfo_t ended{};
    ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child.pid()), &ended, WEXITED | WNOWAIT), 0);
    EXPECT_TRUE(is_uncollected(name));
    EXPECT_FALSE(is_uncollected({name.pid, name.started + 1U})) << "of another process";
  }
  EXPECT_FALSE(is_uncollected(name));
}

TEST(ProcessName, OfAnotherUserIsNotFree) {
  // Signal 0 to it may be refused, which is no sign of its end.
  const ProcessName first = process_named(1);
  EXPECT_FALSE(number_is_free(first));
  EXPECT_FALSE(has_ended(first));
  if (geteuid() != 0) return;
  const pid_t child = fork();
  if (child == 0) {
    if (setuid(65534) != 0) _exit(0);
    _exit(number_is_free(first) || has_ended(first) ? 1 : 0);
  }
  int state = 0;
  waitpid(child, &state, 0);
  EXPECT_TRUE(WIFEXITED(state) && WEXITSTATUS(state) == 0);
}

}  // namespace
}  // namespace tombolo::host
