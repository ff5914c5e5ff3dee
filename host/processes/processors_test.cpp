// SPDX-License-Identifier: Apache-2.0
#include "host/processes/processors.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tombolo::host {
namespace {

// In a process of its own.
template <class Check>
bool holds_in_child(Check check) {
  const pid_t child = fork();
  if (child == 0) _exit(check() ? 0 : 1);
  int state = 0;
  waitpid(child, &state, 0);
  return WIFEXITED(state) && WEXITSTATUS(state) == 0;
}

// The lowest processor that this process may run on.
int lowest() {
  cpu_set_t own;
  CPU_ZERO(&own);
  if (sched_getaffinity(0, sizeof own, &own) != 0) return -1;
  int one = 0;
  while (!CPU_ISSET(one, &own)) ++one;
  return one;
}

bool bind_to(int one) {
  cpu_set_t own;
  CPU_ZERO(&own);
  CPU_SET(one, &own);
  return sched_setaffinity(0, sizeof own, &own) == 0;
}

TEST(Processors, AreThoseOfTheHostWhateverTheLauncherBoundThisProcessTo) {
  const std::uint32_t all = processors();
  EXPECT_EQ(all, static_cast<std::uint32_t>(sysconf(_SC_NPROCESSORS_ONLN)));
  EXPECT_TRUE(holds_in_child([&] { return bind_to(lowest()) && processors() == all; }));
}

TEST(Processors, ThatAProcessMayRunOnAreThoseItIsBoundTo) {
  cpu_set_t own;
  CPU_ZERO(&own);
  ASSERT_EQ(sched_getaffinity(0, sizeof own, &own), 0);
  EXPECT_EQ(allowed_processors().count(), static_cast<std::uint32_t>(CPU_COUNT(&own)));
  EXPECT_TRUE(holds_in_child([] {
    const int one = lowest();
    if (!bind_to(one)) return false;
    ProcessorSet here = allowed_processors();
    const bool single = here.count() == 1;
    here.add(static_cast<std::uint32_t>(one));
    return single && here.count() == 1;
  }));
}

TEST(Processors, OfTwoSetsAreThoseOfEither) {
  ProcessorSet first, second;
  for (const std::uint32_t number : {0u, 63u, 64u}) first.add(number);
  for (const std::uint32_t number : {64u, ProcessorSet::most - 1}) second.add(number);
  EXPECT_EQ(first.count(), 3u);
  EXPECT_EQ(second.count(), 2u);
  first.add(second);
  EXPECT_EQ(first.count(), 4u);
  EXPECT_EQ(ProcessorSet().count(), 0u);
}

}  // namespace
}  // namespace tombolo::host
