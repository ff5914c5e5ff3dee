// SPDX-License-Identifier: Apache-2.0
#include "host/processes/processors.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "host/memory/testing/fake_host.h"

namespace tombolo::host {
namespace {

using testing::FakeHost;

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

std::uint32_t online() { return static_cast<std::uint32_t>(sysconf(_SC_NPROCESSORS_ONLN)); }

TEST(Processors, AreThoseOfTheHostWhateverTheLauncherBoundThisProcessTo) {
  const std::uint32_t all = processors();
  EXPECT_EQ(all, std::min(online(), processor_quota().processors));
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

// --- Quotas -------------------------------------------------------------------------------------

class ProcessorQuotaTest : public ::testing::Test {
 protected:
  // The text of the kernel's file of the second version.
  void limit(const std::string& group, const std::string& text) {
    host.file("sys/fs/cgroup" + group + "/cpu.max", text + "\n");
  }
  // Those of the first.
  void limit_first(const std::string& group, const std::string& quota, const std::string& period) {
    host.file("sys/fs/cgroup/cpu" + group + "/cpu.cfs_quota_us", quota + "\n");
    host.file("sys/fs/cgroup/cpu" + group + "/cpu.cfs_period_us", period + "\n");
  }
  std::uint32_t quota() const { return processor_quota(host.root()).processors; }
  std::uint64_t group() const { return processor_quota(host.root()).group; }

  static constexpr std::uint32_t unlimited = ProcessorQuota::unlimited;
  FakeHost host;
};

TEST_F(ProcessorQuotaTest, IsTheTimeOfAPeriodRoundedUp) {
  host.file("proc/self/cgroup", "0::/\n");
  EXPECT_EQ(quota(), unlimited) << "the host says nothing";
  limit("", "max 100000");
  EXPECT_EQ(quota(), unlimited);
  limit("", "200000 100000");
  EXPECT_EQ(quota(), 2u);
  limit("", "200001 100000");
  EXPECT_EQ(quota(), 3u);
  limit("", "1000 100000");
  EXPECT_EQ(quota(), 1u);
  for (const char* const text : {"", "0 100000", "100000 0", "100000", "-1 100000"}) {
    limit("", text);
    EXPECT_EQ(quota(), unlimited) << text;
  }
}

TEST_F(ProcessorQuotaTest, IsTheLeastOfAllGroupsUpToTheRoot) {
  host.file("proc/self/cgroup", "0::/pod/container\n");
  limit("/pod/container", "400000 100000");
  EXPECT_EQ(quota(), 4u);
  const std::uint64_t inner = group();
  limit("/pod", "300000 100000");
  EXPECT_EQ(quota(), 3u);
  const std::uint64_t outer = group();
  EXPECT_NE(inner, outer);
  limit("/pod/container", "200000 100000");
  EXPECT_EQ(quota(), 2u);
  EXPECT_EQ(group(), inner);
  limit("/pod", "200000 100000");
  EXPECT_EQ(group(), outer) << "other containers have part of it";
  limit("", "100000 100000");
  EXPECT_EQ(quota(), 1u);
  limit("/pod/container/step", "1000 1000000");
  limit("/po", "1000 1000000");
  EXPECT_EQ(quota(), 1u) << "this process is in neither";
}

TEST_F(ProcessorQuotaTest, OfTheFirstVersionIsInTwoFiles) {
  host.file("proc/self/cgroup", "5:memory:/other\n4:cpuacct,cpu:/job\n0::/\n");
  limit_first("/job", "-1", "100000");
  EXPECT_EQ(quota(), unlimited);
  limit_first("/job", "250000", "100000");
  limit_first("/other", "100000", "100000");
  EXPECT_EQ(quota(), 3u);
  limit_first("", "150000", "100000");
  EXPECT_EQ(quota(), 2u) << "a container sees its own group as the root";
}

TEST_F(ProcessorQuotaTest, BoundsTheProcessorsOfTheHost) {
  host.file("proc/self/cgroup", "0::/\n");
  EXPECT_EQ(processors(host.root()), online());
  limit("", "1000 100000");
  EXPECT_EQ(processors(host.root()), 1u);
  limit("", std::to_string(online() + 1) + "00000 100000");
  EXPECT_EQ(processors(host.root()), online());
}

}  // namespace
}  // namespace tombolo::host
