// SPDX-License-Identifier: Apache-2.0
// Purpose: tests the fence in all threads where the kernel allows it, refuses it, and begins to
// refuse it.
// Thread safety: -
#include "host/processes/thread_fence.h"

#include <gtest/gtest.h>
#include <linux/membarrier.h>
#include <sys/wait.h>

#include <cstdlib>

#include "host/memory/testing/system_calls.h"

namespace tombolo::host {
namespace {

using testing::Answering;
using testing::Call;

bool is_fence(const Call& call) {
  return call.number == SYS_membarrier && call.int_at(0) == MEMBARRIER_CMD_PRIVATE_EXPEDITED;
}

// Each in a program that has not asked yet.
class ThreadFenceDeathTest : public ::testing::Test {
 protected:
  ThreadFenceDeathTest() { ::testing::GTEST_FLAG(death_test_style) = "threadsafe"; }
};

TEST_F(ThreadFenceDeathTest, AsksTheKernelEachTime) {
  EXPECT_EXIT(
      {
        int calls = 0;
        const Answering answering([&](const Call& call) {
          if (call.number != SYS_membarrier) return testing::pass(call);
          calls += is_fence(call) ? 1 : 0;
          return 0L;
        });
        const bool can = can_fence_threads();
        calls = 0;
        fence_threads();
        fence_threads();
        std::exit(can && can_fence_threads() ? calls : 9);
      },
      ::testing::ExitedWithCode(2), "");
}

TEST_F(ThreadFenceDeathTest, CannotWhereTheKernelRefuses) {
  for (const int refused :
       {MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, MEMBARRIER_CMD_PRIVATE_EXPEDITED})
    EXPECT_EXIT(
        {
          const Answering answering([&](const Call& call) {
            const bool refuses = call.number == SYS_membarrier && call.int_at(0) == refused;
            return refuses ? testing::refuse(ENOSYS) : testing::pass(call);
          });
          std::exit(can_fence_threads() ? 1 : 0);
        },
        ::testing::ExitedWithCode(0), "");
}

TEST_F(ThreadFenceDeathTest, StopsTheProgramWhereTheKernelBeginsToRefuse) {
  if (!can_fence_threads()) GTEST_SKIP() << "no membarrier on this host";
  EXPECT_DEATH(
      {
        const Answering answering([&](const Call& call) {
          return is_fence(call) ? testing::refuse(EPERM) : testing::pass(call);
        });
        fence_threads();
      },
      "membarrier: the kernel allowed it before, and refuses it now");
}

TEST(ThreadFence, IsThereInAForkedChild) {
  if (!can_fence_threads()) GTEST_SKIP() << "no membarrier on this host";
  const pid_t child = fork();
  if (child == 0) {
    bool refused = false;
    const Answering answering([&](const Call& call) {
      // As a kernel answers that does not hand the registration on.
      if (!is_fence(call) || refused) return testing::pass(call);
      refused = true;
      return testing::refuse(EPERM);
    });
    fence_threads();
    _exit(refused ? 0 : 1);
  }
  int state = 0;
  waitpid(child, &state, 0);
  EXPECT_TRUE(WIFEXITED(state) && WEXITSTATUS(state) == 0);
}

TEST(ThreadFence, IsAskedForAnewInAForkedChild) {
  (void)can_fence_threads();
  const pid_t child = fork();
  if (child == 0) {
    const Answering answering([&](const Call& call) {
      return call.number == SYS_membarrier ? testing::refuse(EPERM) : testing::pass(call);
    });
    _exit(can_fence_threads() ? 1 : 0);
  }
  int state = 0;
  waitpid(child, &state, 0);
  EXPECT_TRUE(WIFEXITED(state) && WEXITSTATUS(state) == 0);
}

TEST(ThreadFence, WaitsForMemoryOfTheKernel) {
  int refusals = 3;
  const Answering answering([&](const Call& call) {
    if (!is_fence(call)) return testing::pass(call);
    return refusals-- > 0 ? testing::refuse(ENOMEM) : 0L;
  });
  fence_threads();
  EXPECT_EQ(refusals, -1);
}

}  // namespace
}  // namespace tombolo::host
