// SPDX-License-Identifier: Apache-2.0
#include "mpi/windows/attached.h"

#include <gtest/gtest.h>
#include <unistd.h>

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
