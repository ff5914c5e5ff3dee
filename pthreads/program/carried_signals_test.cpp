// SPDX-License-Identifier: Apache-2.0
// Purpose: signals for one thread of a process reach it, as its mask says, whenever they come. Each
// test runs in a process of its own.
#include "pthreads/program/carried_signals.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <thread>

namespace tombolo::dsm {
namespace {

volatile sig_atomic_t handled = 0;
void on_signal(int number) { handled = handled + number; }

sigset_t set_of(std::initializer_list<int> numbers) {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : numbers) sigaddset(&set, number);
  return set;
}

// 0, or the line of the first expectation that failed.
int line_of(const std::function<void()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    signal(SIGTERM, &on_signal);
    signal(SIGHUP, &on_signal);
    if (!keep_carriers().ok()) _exit(1);
    body();
    _exit(0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}
void expect(bool condition, int line) {
  if (!condition) _exit(line);
}
void serve(std::initializer_list<int> blocked = {}) {
  const sigset_t mask = set_of(blocked);
  expect(serve_signals(mask, 0).ok(), __LINE__);
  let_signals_come();
}

TEST(CarriedSignals, ThoseThatComeBeforeTheHandlersCanRunWait) {
  EXPECT_EQ(line_of([] {
              expect(carry_signal(getpid(), SIGTERM) == 0, __LINE__);
              expect(serve_signals(set_of({}), 0).ok(), __LINE__);
              expect(carry_signal(getpid(), SIGHUP) == 0, __LINE__);
              signal(SIGUSR1, &on_signal);
              expect(raise(SIGUSR1) == 0 && handled == 0, __LINE__);
              let_signals_come();
              expect(handled == SIGTERM + SIGHUP + SIGUSR1, __LINE__);
            }),
            0);
}

// No other carrier comes later and takes it along.
TEST(CarriedSignals, OneThatComesBeforeItsThreadBeginsIsTakenWhenHandlersCanRun) {
  EXPECT_EQ(line_of([] {
              expect(carry_signal(getpid(), SIGTERM) == 0, __LINE__);
              expect(serve_signals(set_of({}), 0).ok() && handled == 0, __LINE__);
              let_signals_come();
              expect(handled == SIGTERM, __LINE__);
            }),
            0);
}

// CSG1
TEST(CarriedSignals, OneThatIsNotCarriedIsHeldBack) {
  EXPECT_EQ(line_of([] {
              serve();
              expect(kill(getpid(), SIGHUP) == 0 && handled == 0, __LINE__);
              expect(carry_signal(getpid(), SIGTERM) == 0 && handled == SIGTERM, __LINE__);
              expect(carry_signal(getpid(), SIGHUP) == 0, __LINE__);
              expect(handled == SIGTERM + SIGHUP, __LINE__);
              raise_withheld(SIGTERM);
              expect(handled == SIGTERM + SIGHUP + SIGTERM, __LINE__);
            }),
            0);
}

// CSG2
TEST(CarriedSignals, WaitForTheMask) {
  EXPECT_EQ(line_of([] {
              serve({SIGTERM});
              const sigset_t term = set_of({SIGTERM});
              sigset_t old;
              expect(carry_signal(getpid(), SIGTERM) == 0 && handled == 0, __LINE__);
              expect(change_mask(SIG_UNBLOCK, &term, &old) == 0, __LINE__);
              expect(handled == SIGTERM, __LINE__);
              expect(sigismember(&old, SIGTERM) == 1 && sigismember(&old, SIGHUP) == 0, __LINE__);
              expect(change_mask(SIG_BLOCK, nullptr, &old) == 0, __LINE__);
              expect(sigismember(&old, SIGTERM) == 0, __LINE__);
              expect(change_mask(99, &term, nullptr) == EINVAL, __LINE__);
            }),
            0);
}

TEST(CarriedSignals, OneThatACallHasTakenIsGone) {
  EXPECT_EQ(line_of([] {
              serve({SIGTERM});
              const sigset_t term = set_of({SIGTERM});
              expect(carry_signal(getpid(), SIGTERM) == 0, __LINE__);
              expect(sigwaitinfo(&term, nullptr) == SIGTERM, __LINE__);
              have_taken(SIGTERM);
              expect(change_mask(SIG_UNBLOCK, &term, nullptr) == 0 && handled == 0, __LINE__);
            }),
            0);
}

TEST(CarriedSignals, GoOnToTheThreadThatIsServed) {
  EXPECT_EQ(line_of([] {
              std::thread([] {
                serve();
                while (handled == 0) std::this_thread::yield();
                leave_signals();
              }).detach();
              while (handled == 0) {
                expect(carry_signal(getpid(), SIGTERM) == 0, __LINE__);
                std::this_thread::yield();
              }
            }),
            0);
}

TEST(CarriedSignals, OfAThreadThatHasEndedAreDropped) {
  EXPECT_EQ(line_of([] {
              {
                const NoCarriers while_it_runs;
                expect(carry_signal(getpid(), SIGTERM) == 0, __LINE__);
              }
              serve();
              expect(handled == 0, __LINE__);
            }),
            0);
}

TEST(CarriedSignals, ThatMakeNoHandlerRunAreAlone) {
  EXPECT_EQ(line_of([] {
              serve({SIGTERM});
              Carriers before = carriers();
              expect(!carriers_alone(before), __LINE__);
              expect(carry_signal(getpid(), SIGTERM) == 0 && carriers_alone(before), __LINE__);
              before = carriers();
              expect(carry_signal(getpid(), SIGHUP) == 0 && !carriers_alone(before), __LINE__);
            }),
            0);
}

}  // namespace
}  // namespace tombolo::dsm
