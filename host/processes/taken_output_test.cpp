// SPDX-License-Identifier: Apache-2.0
#include "host/processes/taken_output.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace tombolo::host {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds briefly(20);
constexpr milliseconds long_enough(60000);

// Both ends of a way to another process.
class TakenOutput : public testing::TestWithParam<bool> {
 protected:
  TakenOutput() {
    // Written at index 1, read at index 0, as with a pipe.
    const int failed =
        GetParam() ? pipe(ends_.data()) : socketpair(AF_UNIX, SOCK_STREAM, 0, ends_.data());
    EXPECT_EQ(failed, 0);
    EXPECT_EQ(write(ends_[1], "text", 4), 4);
  }
  ~TakenOutput() override {
    for (const int end : ends_) close(end);
  }
  void take(std::size_t bytes) {
    std::array<char, 8> into = {};
    EXPECT_EQ(read(ends_[0], into.data(), bytes), static_cast<ssize_t>(bytes));
  }
  std::array<int, 2> ends_ = {};
};

TEST_P(TakenOutput, IsNotTakenWhileALastByteIsLeft) {
  EXPECT_FALSE(wait_until_taken(ends_[1], briefly));
  take(3);
  EXPECT_FALSE(wait_until_taken(ends_[1], briefly));
  take(1);
  EXPECT_TRUE(wait_until_taken(ends_[1], briefly));
}

TEST_P(TakenOutput, IsWaitedForUntilTheReaderComes) {
  std::atomic<bool> taken = false;
  std::thread reader([&] {
    std::this_thread::sleep_for(briefly);
    taken = true;
    take(4);
  });
  EXPECT_TRUE(wait_until_taken(ends_[1], long_enough));
  EXPECT_TRUE(taken);
  reader.join();
}

INSTANTIATE_TEST_SUITE_P(Ways, TakenOutput, testing::Bool(),
                         [](const auto& way) { return way.param ? "Pipe" : "Socket"; });

TEST(TakenOutputOfFiles, NeedsNoReader) {
  std::FILE* const file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  ASSERT_EQ(write(fileno(file), "text", 4), 4);
  EXPECT_TRUE(wait_until_taken(fileno(file), long_enough));
  std::fclose(file);
}

TEST(TakenOutputOfFiles, OfAClosedDescriptorIsNothing) {
  EXPECT_TRUE(wait_until_taken(-1, long_enough));
}

// A child that fails, and the end of a pipe from which its standard error is read.
struct Failing {
  Failing() {
    std::array<int, 2> ends = {};
    EXPECT_EQ(pipe(ends.data()), 0);
    child = fork();
    if (child == 0) {
      dup2(ends[1], STDERR_FILENO);
      fail_with("why\n");
    }
    close(ends[1]);
    from = ends[0];
  }
  ~Failing() { close(from); }
  bool has_ended() const { return waitpid(child, nullptr, WNOHANG) == child; }
  int status() const {
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  pid_t child = 0;
  int from = -1;
};

TEST(FailWith, EndsTheProcessOnceItsLineIsTaken) {
  Failing failing;
  pollfd line = {.fd = failing.from, .events = POLLIN, .revents = 0};
  ASSERT_EQ(poll(&line, 1, -1), 1);
  std::this_thread::sleep_for(briefly);
  EXPECT_FALSE(failing.has_ended());
  std::array<char, 8> into = {};
  EXPECT_EQ(read(failing.from, into.data(), into.size()), 4);
  EXPECT_STREQ(into.data(), "why\n");
  EXPECT_EQ(failing.status(), EXIT_FAILURE);
}

}  // namespace
}  // namespace tombolo::host
