// SPDX-License-Identifier: Apache-2.0
#include "mpi/windows/attached.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <random>
#include <thread>

namespace tombolo::mpi {
namespace {

class AttachedTest : public testing::Test {
 protected:
  void SetUp() override {
    const Status status = read();
    if (!status.ok()) GTEST_SKIP() << status.message();
  }
  Status read() { return view_.read(getpid(), attached_->published()); }
  bool covers(std::size_t from, std::size_t bytes) {
    const auto low = reinterpret_cast<std::uint64_t>(memory_ + from);
    return view_.covers({low, low + bytes});
  }
  std::unique_ptr<Attached> attached_ = std::make_unique<Attached>();
  AttachedView view_;
  char memory_[4096];
};

TEST_F(AttachedTest, AViewCoversWhatIsAttached) {
  EXPECT_FALSE(covers(0, 1));
  EXPECT_TRUE(covers(0, 0));
  ASSERT_TRUE(attached_->add(memory_ + 100, 50));
  EXPECT_FALSE(covers(100, 50)) << "not before it is read again";
  ASSERT_TRUE(read().ok());
  EXPECT_TRUE(covers(100, 50));
  EXPECT_FALSE(covers(99, 2));
  EXPECT_FALSE(covers(149, 2));
  ASSERT_TRUE(attached_->add(memory_ + 150, 50));
  ASSERT_TRUE(attached_->add(memory_ + 300, 50));
  ASSERT_TRUE(read().ok());
  EXPECT_TRUE(covers(120, 80)) << "two that follow each other";
  EXPECT_FALSE(covers(190, 120));
  EXPECT_TRUE(covers(300, 50));
  ASSERT_TRUE(attached_->remove(memory_ + 100));
  ASSERT_TRUE(read().ok());
  EXPECT_FALSE(covers(100, 1));
  EXPECT_TRUE(covers(150, 50));
}

TEST_F(AttachedTest, RefusesWhatOverlapsAndWhatIsNotThere) {
  ASSERT_TRUE(attached_->add(memory_ + 100, 50));
  EXPECT_FALSE(attached_->add(memory_ + 149, 1));
  EXPECT_FALSE(attached_->add(memory_ + 50, 51));
  EXPECT_FALSE(attached_->remove(memory_ + 101));
  EXPECT_TRUE(attached_->add(memory_ + 10, 0));
  EXPECT_TRUE(attached_->remove(memory_ + 10));
  EXPECT_FALSE(attached_->remove(memory_ + 10));
}

TEST_F(AttachedTest, NeighboursMayTouchAndOverlapByNoByte) {
  ASSERT_TRUE(attached_->add(memory_ + 100, 50));
  EXPECT_TRUE(attached_->add(memory_ + 150, 1)) << "begins where the other ends";
  EXPECT_TRUE(attached_->add(memory_ + 99, 1)) << "ends where the other begins";
  EXPECT_FALSE(attached_->add(memory_ + 100, 50)) << "the same again";
  EXPECT_FALSE(attached_->add(memory_ + 98, 2));
  EXPECT_FALSE(attached_->add(memory_ + 90, 100)) << "around all";
  EXPECT_FALSE(attached_->add(memory_ + 120, 0)) << "of no bytes, but inside";
  ASSERT_TRUE(read().ok());
  EXPECT_TRUE(covers(99, 52)) << "what was refused changes nothing";
  EXPECT_FALSE(covers(98, 1));
  EXPECT_FALSE(covers(151, 1));
}

TEST_F(AttachedTest, RangesGoInAnyOrderAndTheRestStays) {
  constexpr std::size_t n = 8;
  std::array<std::size_t, n> order{};
  for (std::size_t i = 0; i < n; ++i) order[i] = i;
  std::mt19937 random(5);
  for (int turn = 0; turn < 20; ++turn) {
    std::shuffle(order.begin(), order.end(), random);
    for (const std::size_t i : order) ASSERT_TRUE(attached_->add(memory_ + 100 * i, 40 + i));
    std::shuffle(order.begin(), order.end(), random);
    for (std::size_t gone = 0; gone < n; ++gone) {
      ASSERT_TRUE(attached_->remove(memory_ + 100 * order[gone]));
      EXPECT_FALSE(attached_->remove(memory_ + 100 * order[gone])) << "it is gone";
      ASSERT_TRUE(read().ok());
      for (std::size_t i = 0; i < n; ++i) {
        const std::size_t at = order[i];
        EXPECT_EQ(covers(100 * at, 40 + at), i > gone) << turn << " " << gone << " " << at;
        EXPECT_FALSE(covers(100 * at, 41 + at));
      }
    }
  }
}

TEST_F(AttachedTest, OfNoBytesIsCountedAndCoversNothing) {
  ASSERT_TRUE(attached_->add(memory_ + 10, 0));
  ASSERT_TRUE(attached_->add(memory_ + 10, 0));
  ASSERT_TRUE(attached_->add(memory_ + 10, 5)) << "no byte of it was attached";
  ASSERT_TRUE(read().ok());
  EXPECT_TRUE(covers(10, 5));
  ASSERT_TRUE(attached_->remove(memory_ + 10)) << "that with bytes goes first";
  ASSERT_TRUE(read().ok());
  EXPECT_FALSE(covers(10, 1));
  EXPECT_TRUE(attached_->remove(memory_ + 10));
  EXPECT_TRUE(attached_->remove(memory_ + 10));
  EXPECT_FALSE(attached_->remove(memory_ + 10));
}

TEST_F(AttachedTest, EachIsAUseOfTheProcessesMemory) {
  // Memory that is attached must not be moved by a window over it, until it is detached.
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* const plain =
      mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(plain, MAP_FAILED);
  host::OwnMemory& own = host::own_memory();
  {
    const auto use = own.enter(plain, page);
    if (own.share(use).empty()) GTEST_SKIP() << "nothing can be shared here";
  }
  ASSERT_TRUE(attached_->add(static_cast<char*>(plain) + 8, 8));
  {
    const auto use = own.enter(plain, page);
    EXPECT_TRUE(own.share(use).empty());
  }
  ASSERT_TRUE(attached_->remove(static_cast<char*>(plain) + 8));
  {
    const auto use = own.enter(plain, page);
    EXPECT_FALSE(own.share(use).empty());
  }
  munmap(plain, page);
}

TEST_F(AttachedTest, AViewOfAnEndedProcessIsAFaultAndStaysAsItWas) {
  ASSERT_TRUE(attached_->add(memory_ + 100, 50));
  ASSERT_TRUE(read().ok());
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(view_.read(child, attached_->published()).code(), Code::process_failed);
  EXPECT_EQ(view_.read(getpid(), 8).code(), Code::out_of_range);
  EXPECT_TRUE(covers(100, 50));
}

TEST_F(AttachedTest, ATableThatIsBeingChangedIsWaitedFor) {
  ASSERT_TRUE(attached_->add(memory_ + 100, 50));
  auto& table = *reinterpret_cast<Attached::Table*>(attached_->published());
  ++table.version;  // odd: a change has begun
  std::thread changer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ++table.version;
  });
  ASSERT_TRUE(read().ok());
  EXPECT_EQ(table.version % 2, 0u) << "it was read before the change was over";
  changer.join();
  EXPECT_TRUE(covers(100, 50));
}

TEST_F(AttachedTest, AViewReadMeanwhileIsThatOfOneMoment) {
  // The first and the last byte of each pair are attached together or not at all.
  ASSERT_TRUE(attached_->add(memory_ + 4000, 8));
  std::atomic<bool> done = false;
  std::thread changer([&] {
    std::mt19937 random(3);
    for (int i = 0; i < 3000; ++i) {
      const std::size_t n = random() % 40;
      for (std::size_t k = 0; k < n; ++k) attached_->add(memory_ + 64 * k, 16);
      for (std::size_t k = 0; k < n; ++k) attached_->remove(memory_ + 64 * k);
    }
    done = true;
  });
  while (!done) {
    const Status status = read();
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_TRUE(covers(4000, 8));
    for (std::size_t k = 0; k < 40; ++k) {
      EXPECT_EQ(covers(64 * k, 1), covers(64 * k, 16));
      EXPECT_FALSE(covers(64 * k + 16, 1));
    }
  }
  changer.join();
}

}  // namespace
}  // namespace tombolo::mpi
