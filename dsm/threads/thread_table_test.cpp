// SPDX-License-Identifier: Apache-2.0
// Purpose: threads are created, joined and detached once each, by servers that run one at a time.
#include "dsm/threads/thread_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

#include "dsm/testing/mapped_threads.h"
#include "dsm/threads/runtime_hooks.h"

namespace tombolo::dsm {
namespace {

constexpr ThreadHandle first = ThreadTable::first_thread;

MemoryPlan plan(Thread servers) {
  return {.threads = servers,
          .locks = ThreadTableLayout::locks,
          .words = ThreadTableLayout::words(servers)};
}

// Servers of which each is played by the test when it likes.
class Table {
 public:
  explicit Table(Thread servers) : threads_(plan(servers)), layout_{.servers = servers} {}

  ThreadTable of(Thread thread) { return ThreadTable(threads_[thread], layout_); }
  testing::MappedThreads& threads() { return threads_; }

  // As of the last create().
  bool lacked_server() const { return lacked_server_; }
  int create(ThreadHandle& out, bool detached = false) {
    ThreadTable table = of(0);
    const int error = table.create(
        {.function = &add_one, .argument = &out, .detached = detached},
        [this](Thread server) { return started_.push_back(server), refusal; }, out);
    lacked_server_ = table.lacked_server();
    return error;
  }
  // The server runs its task.
  void run(Thread server) {
    ThreadTable table = of(server);
    Task task;
    const ThreadHandle thread = table.take(task);
    table.finish(thread, reinterpret_cast<std::uint64_t>(task.function(task.argument)));
  }
  const std::vector<Thread>& started() const { return started_; }
  int refusal = 0;

 private:
  bool lacked_server_ = false;
  static void* add_one(void* value) { return static_cast<char*>(value) + 1; }
  testing::MappedThreads threads_;
  ThreadTableLayout layout_;
  std::vector<Thread> started_;
};

TEST(ThreadTable, AThreadIsJoinedOnce) {
  Table table(2);
  ThreadHandle thread = 0;
  ASSERT_EQ(table.create(thread), 0);
  EXPECT_EQ(table.started(), std::vector<Thread>{1});
  std::uint64_t result = 0;
  EXPECT_EQ(table.of(0).try_join(first, thread, result), EBUSY);
  EXPECT_EQ(table.of(0).server_of(thread), 1U);
  table.run(1);
  EXPECT_EQ(table.of(0).server_of(thread), 0U);
  EXPECT_EQ(table.of(0).join(first, thread, result), 0);
  EXPECT_EQ(result, reinterpret_cast<std::uint64_t>(&thread) + 1);
  EXPECT_EQ(table.of(0).join(first, thread, result), ESRCH);
  EXPECT_EQ(table.of(0).detach(thread), ESRCH);
  EXPECT_FALSE(table.of(0).exists(thread));
}

TEST(ThreadTable, AServerRunsThreadsOneAfterAnother) {
  Table table(2);
  std::vector<ThreadHandle> seen;
  for (int i = 0; i < 10; ++i) {
    ThreadHandle thread = 0;
    ASSERT_EQ(table.create(thread), 0);
    table.run(1);
    std::uint64_t result = 0;
    EXPECT_EQ(table.of(0).join(first, thread, result), 0);
    EXPECT_EQ(std::count(seen.begin(), seen.end(), thread), 0) << "a handle is used again";
    seen.push_back(thread);
  }
  EXPECT_EQ(table.started().size(), 1U);
}

TEST(ThreadTable, WithoutAFreeServerThereIsNoThread) {
  Table table(3);
  ThreadHandle threads[3] = {};
  ASSERT_EQ(table.create(threads[0]), 0);
  ASSERT_EQ(table.create(threads[1]), 0);
  EXPECT_FALSE(table.lacked_server());
  EXPECT_EQ(table.create(threads[2]), EAGAIN);
  EXPECT_TRUE(table.lacked_server());
  table.run(2);
  EXPECT_EQ(table.create(threads[2]), 0);
  EXPECT_EQ(table.of(0).server_of(threads[2]), 2U);
}

TEST(ThreadTable, AServerThatDoesNotStartIsTriedAgain) {
  Table table(2);
  ThreadHandle thread = 0;
  table.refusal = ENOMEM;
  EXPECT_EQ(table.create(thread), ENOMEM);
  EXPECT_FALSE(table.of(0).exists(thread));
  table.of(0).wait_for_all();
  table.refusal = 0;
  EXPECT_EQ(table.create(thread), 0);
}

TEST(ThreadTable, JoinsThatCannotEndAreRefused) {
  Table table(3);
  ThreadHandle one = 0;
  ThreadHandle other = 0;
  ASSERT_EQ(table.create(one), 0);
  ASSERT_EQ(table.create(other), 0);
  std::uint64_t result = 0;
  EXPECT_EQ(table.of(1).join(one, one, result), EDEADLK);
  EXPECT_EQ(table.of(1).join(one, first, result), EINVAL);
  EXPECT_EQ(table.of(1).join(one, 12345, result), ESRCH);
  EXPECT_EQ(table.of(1).join(one, 0, result), ESRCH);
  // One waits for the other, which may not wait for it.
  std::jthread joiner([&] { EXPECT_EQ(table.of(0).join(one, other, result), 0); });
  ThreadTable of_other = table.of(2);
  while (!of_other.joined(other)) std::this_thread::yield();
  EXPECT_EQ(of_other.detach(other), EINVAL);
  std::uint64_t none = 0;
  EXPECT_EQ(of_other.join(other, one, none), EDEADLK);
  table.run(2);
}

TEST(ThreadTable, DetachedThreadsLeaveNothing) {
  Table table(2);
  ThreadHandle thread = 0;
  ASSERT_EQ(table.create(thread, true), 0);
  std::uint64_t result = 0;
  EXPECT_EQ(table.of(0).join(first, thread, result), EINVAL);
  EXPECT_EQ(table.of(0).detach(thread), EINVAL);
  table.run(1);
  EXPECT_FALSE(table.of(0).exists(thread));
  ASSERT_EQ(table.create(thread), 0);
  EXPECT_EQ(table.of(0).detach(thread), 0);
  table.run(1);
  EXPECT_FALSE(table.of(0).exists(thread));
  ASSERT_EQ(table.create(thread), 0);
  table.run(1);
  EXPECT_EQ(table.of(0).detach(thread), 0) << "it has ended before";
  EXPECT_FALSE(table.of(0).exists(thread));
  table.of(0).wait_for_all();
}

TEST(ThreadTable, MoreThreadsThanRecordsInAll) {
  Table table(2);
  std::vector<ThreadHandle> seen;
  for (std::uint64_t i = 0; i < ThreadTableLayout::records + 10; ++i) {
    ASSERT_EQ(table.create(seen.emplace_back(), true), 0) << i;
    table.run(1);
  }
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(std::unique(seen.begin(), seen.end()), seen.end()) << "THT4";
}

TEST(ThreadTable, NoRecordIsLeft) {
  Table table(2);
  std::vector<ThreadHandle> threads(ThreadTableLayout::records - 1);
  for (ThreadHandle& thread : threads) {
    ASSERT_EQ(table.create(thread), 0);
    table.run(1);
  }
  ThreadHandle more = 0;
  EXPECT_EQ(table.create(more), EAGAIN);
  EXPECT_FALSE(table.lacked_server()) << "threads that were not joined are in the way";
  std::uint64_t result = 0;
  EXPECT_EQ(table.of(0).join(first, threads[77], result), 0);
  EXPECT_EQ(table.create(more), 0);
}

}  // namespace
}  // namespace tombolo::dsm
