// SPDX-License-Identifier: Apache-2.0
// Purpose: how much memory is left, as hosts and control groups of both versions say it.
#include "host/memory/memory_room.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

#include "host/descriptor.h"
#include "host/memory/testing/fake_host.h"

namespace tombolo::host {
namespace {

using testing::FakeHost;

TEST(MemoryRoom, IsTheLeastOfHostAndControlGroups) {
  FakeHost host;
  host.file("proc/meminfo", "MemTotal: 9 kB\nMemAvailable: 1000 kB\nSwapFree: 24 kB\n");
  EXPECT_EQ(memory_room(host.root()).bytes, 1024u * 1024);
  host.file("proc/self/cgroup", "0::/job/step\n");
  host.file("sys/fs/cgroup/job/step/memory.max", "max\n");
  host.file("sys/fs/cgroup/job/step/memory.current", "4096\n");
  EXPECT_EQ(memory_room(host.root()).bytes, 1024u * 1024);
  host.file("sys/fs/cgroup/job/memory.max", "500000\n");
  host.file("sys/fs/cgroup/job/memory.current", "300000\n");
  host.file("sys/fs/cgroup/job/memory.swap.max", "0\n");
  host.file("sys/fs/cgroup/job/memory.stat", "anon 7\nactive_file 30\ninactive_file 12\n");
  const MemoryRoom room = memory_room(host.root());
  EXPECT_EQ(room.bytes, 200042u);
  EXPECT_NE(room.limit.find("memory.max"), std::string::npos);
}

TEST(MemoryRoom, KnowsTheFirstVersionOfControlGroups) {
  FakeHost host;
  host.file("proc/meminfo", "MemAvailable: 1000 kB\n");
  host.file("proc/self/cgroup", "3:cpu,cpuacct:/other\n2:memory:/job\n");
  host.file("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "300000\n");
  host.file("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "100000\n");
  host.file("sys/fs/cgroup/memory/job/memory.stat",
            "active_file 5\ninactive_file 5\ntotal_active_file 1\ntotal_inactive_file 6\n");
  host.file("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  host.file("sys/fs/cgroup/memory/memory.usage_in_bytes", "100000\n");
  EXPECT_EQ(memory_room(host.root()).bytes, 200007u);
}

TEST(MemoryRoom, KnowsStrictOvercommit) {
  FakeHost host;
  EXPECT_FALSE(strict_overcommit(host.root()));
  host.file("proc/sys/vm/overcommit_memory", "2\n");
  EXPECT_TRUE(strict_overcommit(host.root()));
}

constexpr std::uint64_t free_bytes = std::uint64_t{1000} * 1024;

TEST(MemoryRoom, OfAHostThatSaysNothingIsNotLimited) {
  FakeHost host;
  EXPECT_EQ(memory_room(host.root()).bytes, MemoryRoom::unlimited) << "MR2";
  promise_memory(4096);
  EXPECT_EQ(memory_room(host.root()).bytes, MemoryRoom::unlimited);
  release_promise(4096);
  host.file("proc/meminfo", "MemTotal: 9 kB\nSwapFree: 100 kB\n");
  EXPECT_EQ(memory_room(host.root()).bytes, MemoryRoom::unlimited) << "an old kernel";
  host.file("proc/meminfo", "MemAvailable: lots\nMemAvailable: 1000 kB\n");
  EXPECT_EQ(memory_room(host.root()).bytes, free_bytes) << "lines without a number are left out";
  EXPECT_EQ(memory_room(host.root()).limit, "the host's free memory");
}

// The files of the kernel, and no descriptor to read them by.
TEST(MemoryRoom, IsNotLimitedWhereNoDescriptorIsLeft) {
  if (memory_room().bytes == MemoryRoom::unlimited) GTEST_SKIP() << "no limit is known here";
  std::vector<Descriptor> all;
  while (true) {
    Descriptor one(open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!one.valid()) break;
    all.push_back(std::move(one));
  }
  const std::uint64_t bytes = memory_room().bytes;
  all.clear();
  EXPECT_EQ(bytes, MemoryRoom::unlimited) << "MR2";
  EXPECT_LT(memory_room().bytes, MemoryRoom::unlimited);
}

TEST(MemoryRoom, IsThatOfTheGroupWhereTheHostSaysNothing) {
  FakeHost host;
  host.file("proc/self/cgroup", "0::/a\n");
  host.group("/a", "300000", "100000");
  EXPECT_EQ(memory_room(host.root()).bytes, MemoryRoom::unlimited) << "the swap is not known";
  host.file("sys/fs/cgroup/a/memory.swap.max", "0\n");
  EXPECT_EQ(memory_room(host.root()).bytes, 200'000u);
}

TEST(MemoryRoom, IsLimitedByAllGroupsUpToTheRoot) {
  FakeHost host;
  host.file("proc/meminfo", "MemAvailable: 1000 kB\n");
  host.file("proc/self/cgroup", "0::/a/b\n");
  host.group("/a/b", "700000", "0");
  EXPECT_EQ(memory_room(host.root()).bytes, 700'000u);
  host.group("/a", "600000", "100000");
  EXPECT_EQ(memory_room(host.root()).bytes, 500'000u);
  host.group("", "400000", "0");
  EXPECT_EQ(memory_room(host.root()).bytes, 400'000u);
  host.group("/ab", "1", "0");
  host.group("/a/b/c", "1", "0");
  EXPECT_EQ(memory_room(host.root()).bytes, 400'000u) << "this process is in neither";
  host.group("/a/b", "700000", "800000");
  EXPECT_EQ(memory_room(host.root()).bytes, 0u) << "a limit that was lowered below the use";
}

TEST(MemoryRoom, IsThatOfTheHostWhereAGroupSaysNothing) {
  FakeHost host;
  host.file("proc/meminfo", "MemAvailable: 1000 kB\n");
  host.file("proc/self/cgroup", "no group\n0::/a\n");
  host.file("sys/fs/cgroup/a/memory.max", "7\n");
  EXPECT_EQ(memory_room(host.root()).bytes, free_bytes) << "the use is not known";
  host.group("/a", "max", "0");
  EXPECT_EQ(memory_room(host.root()).bytes, free_bytes);
  host.group("/a", "much", "0");
  EXPECT_EQ(memory_room(host.root()).bytes, free_bytes);
  host.group("/a", "7", "7");
  EXPECT_EQ(memory_room(host.root()).bytes, 0u);
  host.remove("sys/fs/cgroup/a/memory.stat");
  EXPECT_EQ(memory_room(host.root()).bytes, free_bytes) << "how much of the use can be given back";
}

TEST(MemoryRoom, CountsTheSwapThatTheGroupMayUse) {
  FakeHost host;
  host.file("proc/meminfo", "MemAvailable: 1000 kB\nSwapFree: 100 kB\n");
  host.file("proc/self/cgroup", "0::/a\n");
  host.group("/a", "300000", "100000");
  EXPECT_EQ(memory_room(host.root()).bytes, 200'000u + 102'400);
  host.file("sys/fs/cgroup/a/memory.swap.max", "max\n");
  EXPECT_EQ(memory_room(host.root()).bytes, 200'000u + 102'400);
  host.file("sys/fs/cgroup/a/memory.swap.max", "50000\n");
  EXPECT_EQ(memory_room(host.root()).bytes, 200'000u + 50'000);
  host.file("sys/fs/cgroup/a/memory.swap.current", "20000\n");
  EXPECT_EQ(memory_room(host.root()).bytes, 200'000u + 30'000);
  host.file("sys/fs/cgroup/a/memory.swap.max", "900000\n");
  EXPECT_EQ(memory_room(host.root()).bytes, 200'000u + 102'400) << "no more than there is";
}

TEST(MemoryRoom, IsLessByWhatWasPromisedAndNotTouched) {
  FakeHost host;
  host.file("proc/meminfo", "MemAvailable: 1000 kB\nShmem: 10 kB\n");
  promise_memory(10'240);
  EXPECT_EQ(memory_room(host.root()).bytes, free_bytes) << "the host may count all of it";
  promise_memory(4096);
  const MemoryRoom room = memory_room(host.root());
  EXPECT_EQ(room.bytes, free_bytes - 4096);
  EXPECT_NE(room.limit.find("earlier segments"), std::string::npos) << room.limit;
  promise_memory(2 * free_bytes);
  EXPECT_EQ(memory_room(host.root()).bytes, 0u);
  release_promise(2 * free_bytes + 4096 + 10'240);
  EXPECT_EQ(memory_room(host.root()).bytes, free_bytes);
}

TEST(MemoryRoom, IsStrictOnlyWhereTheKernelGrantsNoMoreThanItHas) {
  FakeHost host;
  for (const char* text : {"0\n", "1\n", "", "two\n"}) {
    host.file("proc/sys/vm/overcommit_memory", text);
    EXPECT_FALSE(strict_overcommit(host.root())) << text;
  }
}

}  // namespace
}  // namespace tombolo::host
