// SPDX-License-Identifier: Apache-2.0
// Purpose: the calls around a fork come in pairs, and nothing of them stays in the child.
#include "host/processes/shared_fork.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <utility>

#include "host/memory/testing/system_calls.h"
#include "host/processes/no_signals.h"

namespace tombolo::host {
namespace {

using testing::Answering;
using testing::Call;
using testing::pass;

std::string calls;
std::optional<sigset_t> blocked;

bool blocks(int signal) {
  sigset_t now;
  pthread_sigmask(SIG_BLOCK, nullptr, &now);
  return sigismember(&now, signal) != 0;
}

int status_of(pid_t child) {
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

// The test runs in a process of its own, whose handlers stay there.
int in_child(int (*body)()) {
  calls.clear();
  const pid_t child = fork();
  if (child == 0) _exit(body());
  const int status = status_of(child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 200;
}

bool fork_and_wait() {
  const pid_t child = fork_sharing_files(SIGCHLD);
  if (child == 0) _exit(0);
  return status_of(child) == 0;
}

void add_first() {
  around_forks([] { calls += "(a"; }, [] { calls += "a)"; }, nullptr);
}
void add_second() {
  around_forks([] { calls += "(b"; }, [] { calls += "b)"; }, nullptr);
}

TEST(SharedFork, CallsItsHandlersInPairs) {
  EXPECT_EQ(in_child([] {
              add_first();
              add_second();
              return fork_and_wait() && calls == "(b(aa)b)" ? 0 : 1;
            }),
            0);
}

TEST(SharedFork, CallsNoHandlerAfterTheForkThatItDidNotCallBefore) {
  EXPECT_EQ(in_child([] {
              add_first();
              bool added = false;
              const Answering answering([&](const Call& call) {
                // The fork asks for the thread's number once the handlers have been called.
                if (call.number == SYS_gettid && !std::exchange(added, true)) add_second();
                return pass(call);
              });
              if (!fork_and_wait() || !added || calls != "(aa)") return 1;
              return fork_and_wait() && calls == "(aa)(b(aa)b)" ? 0 : 2;
            }),
            0);
}

TEST(SharedFork, AChildBlocksNoSignalsThatAHandlerBlocks) {
  EXPECT_EQ(in_child([] {
              around_forks([] { blocked = block_signals(); }, [] { give_back_signals(*blocked); },
                           nullptr);
              const pid_t child = fork_sharing_files(SIGCHLD);
              if (child == 0) _exit(blocks(SIGUSR1) ? 1 : 0);
              return status_of(child) == 0 && blocked && !blocks(SIGUSR1) ? 0 : 1;
            }),
            0);
}

}  // namespace
}  // namespace tombolo::host
