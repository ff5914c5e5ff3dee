// SPDX-License-Identifier: Apache-2.0
// Purpose: the waits of a memory that all processes map are counted where that is wanted.
// Thread safety: -
#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <thread>
#include <vector>

#include "dsm/testing/mapped_threads.h"

namespace tombolo::dsm {
namespace {

const MemoryPlan plan{.threads = 2, .locks = 4, .words = 8};

// The second one wants the lock while the first one has it, as a rule.
void compete(testing::MappedThreads& threads) {
  ASSERT_TRUE(threads[0].acquire(1).ok());
  std::jthread other([&threads] {
    ASSERT_TRUE(threads[1].acquire(1).ok());
    ASSERT_TRUE(threads[1].release(1).ok());
  });
  for (int i = 0; i < 100; ++i) std::this_thread::yield();
  ASSERT_TRUE(threads[0].release(1).ok());
}

std::uint64_t waits() { return runtime::counters().counter("dsm_lock_waits").value(); }

TEST(MappedMemory, CountsTheLocksThatItHasWaitedFor) {
  testing::MappedThreads threads(plan, {.timed = true});
  const std::uint64_t before = waits();
  ASSERT_TRUE(threads[0].acquire(1).ok());
  ASSERT_TRUE(threads[0].release(1).ok());
  EXPECT_EQ(waits(), before) << "it was free";
  while (waits() == before) compete(threads);
}

TEST(MappedMemory, PutsTheWaitsIntoATrace) {
  Trace trace;
  ASSERT_TRUE(trace.ready());
  testing::MappedThreads threads(plan, {.trace = &trace});
  while (trace.count() == 0) compete(threads);
  EXPECT_NE(trace.lines(0, 0).find(R"("name": "lock wait")"), std::string::npos);
}

TEST(MappedMemory, CountsNothingThatIsNotWanted) {
  testing::MappedThreads threads(plan);
  const std::uint64_t before = waits();
  for (int i = 0; i < 20; ++i) compete(threads);
  EXPECT_EQ(waits(), before);
}

// DMM3, with a number of threads that is no power of two.
TEST(MappedMemory, WordsAndLocksOfSeveralHomesAreApart) {
  using Memory = MappedTeamMemory<runtime::HostCore>;
  const Shape shape{.threads = 3, .locks = 7};
  constexpr WordIndex words = 2050;
  const Memory::Layout layout = Memory::take(shape, words);
  EXPECT_EQ(layout.mapped.homes, 2);
  EXPECT_GE(layout.mapped.sleepers, layout.mapped.words + words / 2 * sizeof(std::uint64_t));
  EXPECT_GE(layout.mapped.locks, layout.mapped.sleepers + 512 * sizeof(std::uint64_t));
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> block(3 * layout.sync_bytes / sizeof(Line));
  runtime::HostCore::Attachment at;
  at.cores = 3;
  at.sync = block.front().bytes;
  at.sync_bytes_per_home = layout.sync_bytes;
  Memory memory(std::move(at), layout, shape, {}, {});
  for (WordIndex word = 0; word < words; ++word) memory.store(word, word + 1);
  for (Lock lock = 0; lock < shape.locks; ++lock) {
    bool taken = false;
    EXPECT_TRUE(memory.try_acquire(lock, taken).ok());
    EXPECT_TRUE(taken) << lock;
  }
  for (WordIndex word = 0; word < words; ++word) EXPECT_EQ(memory.load(word), word + 1);
  for (const Line& line : std::span(block).subspan(2 * layout.sync_bytes / sizeof(Line)))
    EXPECT_TRUE(std::ranges::all_of(line.bytes, [](std::byte b) { return b == std::byte{0}; }));
}

}  // namespace
}  // namespace tombolo::dsm
