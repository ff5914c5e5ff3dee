// SPDX-License-Identifier: Apache-2.0
// Purpose: publishes of written pages: no stored byte is missing in memory as another host sees it,
// and not much else is written back.
#include "backends/flushed/written_regions.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "backends/flushed/testing/far_memory.h"
#include "base/random.h"
#include "host/memory/page.h"

namespace tombolo::flushed {
namespace {

using namespace host::flush;

using testing::FarMemory;
using Regions = WrittenRegions;

const std::size_t page = host::page_bytes();
const std::size_t lines_of_page = page / line_bytes;
constexpr std::size_t room = std::size_t{3} << 20;

// Zeros of this process, at a page boundary.
class WrittenRegionsTest : public ::testing::Test {
 protected:
  WrittenRegionsTest()
      : memory_(static_cast<std::byte*>(
            mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {
    // All of a huge page counts as written. Fails where the kernel knows none.
    (void)madvise(memory_, room, MADV_NOHUGEPAGE);
  }
  ~WrittenRegionsTest() override { munmap(memory_, room); }
  void store(std::size_t at, int value) const { std::memcpy(memory_ + at, &value, sizeof value); }

  std::byte* memory_;
};

// A region that was published until only written pages are written back.
class SettledRegionTest : public WrittenRegionsTest {
 protected:
  static constexpr std::size_t bytes = 1 << 20;
  static constexpr std::size_t lines_of_region = bytes / line_bytes;

  SettledRegionTest() {
    for (int i = 0; i < 6; ++i) publish();
    EXPECT_EQ(far_.first_difference(), bytes);
    (void)far_.lines();
  }
  void publish() { regions_.publish(FarMemory::policy(), 0, memory_, bytes); }

  FarMemory far_{memory_, bytes};
  Regions regions_;
};

// Tests that need a watch.
class WatchedRegionTest : public SettledRegionTest {
 protected:
  void SetUp() override {
    const Status available = host::WriteWatch::available();
    if (!available.ok()) GTEST_SKIP() << available.message();
  }
};

TEST_F(WrittenRegionsTest, PublishesWhatWasStoredBeforeTheFirstTime) {
  FarMemory far(memory_, room);
  for (std::size_t at = 0; at < room; at += 3333) store(at, 1);
  Regions regions;
  regions.publish(FarMemory::policy(), 0, memory_, room);
  EXPECT_EQ(far.first_difference(), room);
}

TEST_F(WatchedRegionTest, WritesBackPagesThatWereWrittenAndNoOthers) {
  publish();
  EXPECT_EQ(far_.lines(), 0u) << "nothing was stored";
  store(5 * page + 100, 7);
  store(9 * page, 8);
  store(10 * page + 8, 9);
  publish();
  EXPECT_EQ(far_.first_difference(), bytes);
  EXPECT_EQ(far_.lines(), 3 * lines_of_page);
  publish();
  EXPECT_EQ(far_.lines(), 0u);
}

// Ends inside a page, inside a line; regions that hold no whole page; the least region.
TEST_F(WrittenRegionsTest, PublishesRegionsWhereverTheyStartAndEnd) {
  for (const std::size_t start : {std::size_t{0}, line_bytes, page - line_bytes}) {
    for (const std::size_t bytes :
         {std::size_t{1}, page, 2 * page, std::size_t{Regions::least_bytes - 1},
          std::size_t{Regions::least_bytes}, 10 * page, 10 * page + 1, 10 * page + 777}) {
      FarMemory far(memory_ + start, bytes);
      Regions regions;
      Random random(bytes);
      for (int round = 0; round < 60; ++round) {
        const std::size_t at = round % 3 == 0   ? bytes - 1
                               : round % 3 == 1 ? 0
                                                : random.below(bytes);
        memory_[start + at] = static_cast<std::byte>(round + 1);
        regions.publish(FarMemory::policy(), 0, memory_ + start, bytes);
        ASSERT_EQ(far.first_difference(), bytes) << start << " + " << bytes << ", " << round;
      }
    }
  }
}

TEST_F(WrittenRegionsTest, LosesNothingOfAnyProgram) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    Random random(seed);
    const std::size_t bytes = Regions::least_bytes + random.below(room - Regions::least_bytes);
    FarMemory far(memory_, bytes);
    Regions regions;
    for (int round = 0; round < 150; ++round) {
      // Few stores, then many, then few again.
      const std::size_t most = round / 25 % 2 == 0 ? 5 : 2000;
      for (std::size_t i = random.below(most); i > 0; --i)
        memory_[random.below(bytes)] = static_cast<std::byte>(random.next());
      regions.publish(FarMemory::policy(), 0, memory_, bytes);
      ASSERT_EQ(far.first_difference(), bytes) << "seed " << seed << ", round " << round;
    }
  }
}

TEST_F(WatchedRegionTest, SeldomLooksWhileMuchIsWrittenAndOftenAgainAfterwards) {
  std::size_t whole = 0;
  for (int round = 0; round < 600; ++round) {
    // Half of the pages: a look would write back half of the region.
    for (std::size_t at = 0; at < bytes; at += 2 * page) store(at, round + 1);
    publish();
    if (far_.lines() == lines_of_region) ++whole;
  }
  EXPECT_EQ(far_.first_difference(), bytes);
  EXPECT_GT(whole, 570u);
  std::size_t until = 0;
  do {
    publish();
  } while (far_.lines() > 0 && ++until < 1000);
  EXPECT_LE(until, Regions::longest_rest + 2);
  store(0, 1);
  publish();
  EXPECT_EQ(far_.lines(), lines_of_page);
}

TEST_F(WrittenRegionsTest, KeepsTheRegionsOfSeveralHomesApart) {
  constexpr std::size_t bytes = 100 * 4096 + 128;  // neighbours share pages
  FarMemory far_0(memory_, bytes);
  FarMemory far_1(memory_ + bytes, bytes);
  Regions regions;
  Random random(8);
  for (int round = 0; round < 200; ++round) {
    for (int i = 0; i < 4; ++i) store(random.below(2 * bytes - 4), round);
    store(bytes - 4, round);
    store(bytes, round);
    regions.publish(FarMemory::policy(), 0, memory_, bytes);
    ASSERT_EQ(far_0.first_difference(), bytes);
    regions.publish(FarMemory::policy(), 1, memory_ + bytes, bytes);
    ASSERT_EQ(far_1.first_difference(), bytes);
  }
}

// A second core of this process that wants the same pages gets no watch, and publishes everything.
TEST_F(SettledRegionTest, PublishesEverythingWhereAnotherCoreWatches) {
  Regions second;
  for (int round = 0; round < 20; ++round) {
    store(7 * page, round + 1);
    if (round % 2 == 0) publish();
    (void)far_.lines();
    second.publish(FarMemory::policy(), 0, memory_, bytes);
    ASSERT_EQ(far_.lines(), lines_of_region);
    ASSERT_EQ(far_.first_difference(), bytes);
  }
}

TEST_F(WrittenRegionsTest, PublishesEverythingIfTheSettingSaysSo) {
  Policy by = FarMemory::policy();
  by.watch_writes = false;
  constexpr std::size_t bytes = 1 << 20;
  FarMemory far(memory_, bytes);
  Regions regions;
  for (int round = 0; round < 10; ++round) {
    regions.publish(by, 0, memory_, bytes);
    EXPECT_EQ(far.lines(), bytes / line_bytes);
  }
}

TEST_F(WatchedRegionTest, PublishesEverythingOnceTheWatchIsLost) {
  // Other memory in its place.
  ASSERT_NE(
      mmap(memory_, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
      MAP_FAILED);
  for (int round = 0; round < 10; ++round) {
    store(3 * page, round + 1);
    publish();
    EXPECT_EQ(far_.first_difference(), bytes);
    EXPECT_EQ(far_.lines(), lines_of_region);
  }
}

TEST_F(SettledRegionTest, PublishesEverythingInAForkedChildAndTakesNothingFromTheParent) {
  store(2 * page, 5);
  const pid_t child = fork();
  if (child == 0) {
    store(4 * page, 6);
    publish();
    _exit(far_.first_difference() == bytes && far_.lines() == lines_of_region ? 0 : 1);
  }
  int state = 0;
  waitpid(child, &state, 0);
  EXPECT_TRUE(WIFEXITED(state) && WEXITSTATUS(state) == 0);
  publish();
  EXPECT_EQ(far_.word(2 * page) & 0xff, 5u);
}

// Lets others run between the look and the write-back.
Policy hesitating() {
  Policy by = FarMemory::policy();
  for (auto& operation : by.write_back)
    operation.apply = [](const std::byte* first, const std::byte* end) {
      std::this_thread::yield();
      FarMemory::policy().write_back[0].apply(first, end);
    };
  return by;
}

// A thread's stores are in memory when its own publish returns, although another thread's look may
// have found them first.
TEST_F(SettledRegionTest, EachThreadFindsItsStoresInMemoryAfterItsPublish) {
  constexpr std::size_t threads = 4;
  const Policy by = hesitating();
  std::atomic<int> missing = 0;
  std::vector<std::thread> running;
  for (std::size_t thread = 0; thread < threads; ++thread)
    running.emplace_back([&, thread] {
      Random random(thread);
      for (std::uint64_t round = 1; round <= 3000; ++round) {
        // Words of its own, in pages that all use.
        const std::size_t at = random.below(20) * page + thread * line_bytes;
        auto* word = reinterpret_cast<std::uint64_t*>(memory_ + at);
        std::atomic_ref(*word).store(round, std::memory_order_relaxed);  // ordered by publish
        regions_.publish(by, 0, memory_, bytes);
        if (far_.word(at) != round) ++missing;
      }
    });
  for (auto& thread : running) thread.join();
  EXPECT_EQ(missing, 0);
}

TEST(WriteWatchSetting, MayBeOnOrOff) {
  EXPECT_TRUE(choose_policy("clflush", "").watch_writes);
  EXPECT_TRUE(choose_policy("clflush", "on").watch_writes);
  EXPECT_FALSE(choose_policy("clflush", "off").watch_writes);
  const Policy wrong = choose_policy("clflush", "maybe");
  EXPECT_EQ(wrong.error.code(), Code::bad_configuration);
  EXPECT_NE(wrong.error.message().find("maybe"), std::string::npos);
  EXPECT_NE(describe().find("publishes"), std::string::npos);
}

}  // namespace
}  // namespace tombolo::flushed
