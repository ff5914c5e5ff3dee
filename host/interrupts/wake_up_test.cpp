// SPDX-License-Identifier: Apache-2.0
// Purpose: a thread that sleeps in the kernel is woken, however early the wake-up comes.
#include "host/interrupts/wake_up.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <ctime>
#include <thread>

namespace tombolo::host {
namespace {

constexpr unsigned long_enough_s = 100;

// The result of `body` in a process of its own that is served; `meanwhile` is called with its
// number as soon as it is.
template <class Body, class Meanwhile>
int in_another_process(Body&& body, Meanwhile&& meanwhile) {
  std::array<int, 2> ready{};
  EXPECT_EQ(pipe(ready.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    if (!serve_wake_ups().ok() || write(ready[1], "r", 1) != 1) _exit(99);
    alarm(long_enough_s);
    _exit(body());
  }
  char letter = 0;
  EXPECT_EQ(read(ready[0], &letter, 1), 1);
  meanwhile(child);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  close(ready[0]);
  close(ready[1]);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

// 0 when it was woken out of the call.
int sleeps() {
  timespec rest{.tv_sec = 2L * long_enough_s, .tv_nsec = 0};
  return nanosleep(&rest, nullptr) == -1 && errno == EINTR && has_been_woken() ? 0 : 1;
}

TEST(WakeUp, EndsASystemCall) {
  EXPECT_EQ(in_another_process(sleeps, [](pid_t process) { EXPECT_TRUE(wake_up(process)); }), 0);
}

// WKU1: the signal has been handled when the thread goes to sleep.
TEST(WakeUp, ComesAgainForAThreadThatWasNotYetAsleep) {
  const auto later = [] {
    while (!has_been_woken()) {
    }
    return sleeps();
  };
  EXPECT_EQ(in_another_process(later, [](pid_t process) { wake_up(process); }), 0);
}

TEST(WakeUp, IsForgottenForTheNextThread) {
  const auto twice = [] {
    if (sleeps() != 0) return 1;
    forget_wake_ups();
    timespec rest{.tv_sec = 0, .tv_nsec = 100'000'000};  // ten times the time until the next one
    return nanosleep(&rest, nullptr) == 0 && !has_been_woken() ? 0 : 2;
  };
  EXPECT_EQ(in_another_process(twice, [](pid_t process) { wake_up(process); }), 0);
}

// As in the handler of another signal.
TEST(WakeUp, IsKnownWhileItsSignalWaits) {
  const auto held = [] {
    if (will_be_woken()) return 1;
    std::uint64_t all = ~std::uint64_t{0};
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, nullptr, sizeof all);
    if (!wake_up(getpid()) || !will_be_woken() || has_been_woken()) return 2;
    const std::uint64_t none = 0;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, nullptr, sizeof none);
    return has_been_woken() && will_be_woken() ? 0 : 3;
  };
  EXPECT_EQ(in_another_process(held, [](pid_t) {}), 0);
}

// WKU2: the read goes on, and gets the letter that is written later.
TEST(WakeUp, RestartsCallsWhereThatIsWanted) {
  std::array<int, 2> line{};
  ASSERT_EQ(pipe(line.data()), 0);
  const auto reads = [&] {
    restart_after_wake_ups(true);
    char letter = 0;
    while (!has_been_woken()) {
      pollfd ready{.fd = line[0], .events = POLLIN, .revents = 0};
      poll(&ready, 1, -1);  // which the kernel does not restart
    }
    if (read(line[0], &letter, 1) != 1 || letter != 'x') return 1;
    restart_after_wake_ups(false);
    return sleeps();
  };
  const auto wakes = [&](pid_t process) {
    wake_up(process);
    usleep(50'000);
    wake_up(process);
    EXPECT_EQ(write(line[1], "x", 1), 1);
  };
  EXPECT_EQ(in_another_process(reads, wakes), 0);
  close(line[0]);
  close(line[1]);
}

TEST(WakeUp, OfNoProcessIsTold) { EXPECT_FALSE(wake_up(1 << 22)); }

// WKU3: the process's first thread has the signal, and sends it on.
TEST(WakeUp, ReachesTheThreadThatIsServed) {
  const auto second = [] {
    leave_wake_ups();
    int result = 1;
    std::thread([&] {
      if (!serve_wake_ups().ok() || kill(getpid(), __SIGRTMIN) != 0) return;
      result = sleeps();
    }).join();
    return result == 0 && !wake_ups_are_served() ? 0 : 2;
  };
  EXPECT_EQ(in_another_process(second, [](pid_t) {}), 0);
}

}  // namespace
}  // namespace tombolo::host
