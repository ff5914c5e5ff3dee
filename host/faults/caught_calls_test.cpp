// SPDX-License-Identifier: Apache-2.0
// Purpose: system calls that are caught: they are made as the program asked for them, changed or
// left out as the target says, and signals go on.
#include "host/faults/caught_calls.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <thread>
#include <vector>

#include "host/faults/fault_router.h"
#include "host/faults/guarded_memory.h"
#include "host/memory/page.h"
#include "host/stacks/alternate_stack.h"

namespace tombolo::host {
namespace {

// Answers getppid with 77, makes all else, and counts.
struct Answers final : CallTarget {
  bool before(SystemCall& call) override {
    ++seen;
    if (call.number != SYS_getppid) return true;
    call.result = 77;
    return false;
  }
  int seen = 0;
};

// Opens the page.
struct Opens final : FaultTarget {
  bool on_fault(const Fault&) override {
    ++faults;
    return memory->change(memory->view(), Access::closed, Access::writable).ok();
  }
  std::unique_ptr<GuardedMemory> memory;
  int faults = 0;
};

// In a thread of its own, with faults caught.
template <class Body>
void with_calls_caught(Body&& body) {
  if (!can_catch_calls().ok()) GTEST_SKIP() << can_catch_calls().message();
  std::thread([&] {
    static Opens opens;
    ASSERT_TRUE(
        GuardedMemory::create(FaultMechanism::automatic, page_bytes(), {}, opens.memory).ok());
    *opens.memory->alias(opens.memory->view().low) = std::byte{5};
    ASSERT_TRUE(ensure_alternate_stack().ok());
    ASSERT_TRUE(catch_faults(opens.memory->view(), opens).ok());
    Answers answers;
    ASSERT_TRUE(catch_calls(answers).ok());
    body(answers, opens);
    leave_calls();
    leave_faults(opens.memory->view());
    opens.memory.reset();
  }).join();
}

TEST(CaughtCalls, TheTargetAnswersOrLetsThemBeMade) {
  with_calls_caught([](Answers& answers, Opens&) {
    const pid_t parent = getppid();
    const pid_t self = getpid();
    const long closed = close(-1);
    const int error = errno;
    const int seen = answers.seen;
    leave_calls();
    EXPECT_EQ(parent, 77);
    EXPECT_EQ(self, getpid());
    EXPECT_EQ(closed, -1);
    EXPECT_EQ(error, EBADF);
    EXPECT_EQ(seen, 3);
  });
}

TEST(CaughtCalls, PassIsForItsLife) {
  with_calls_caught([](Answers& answers, Opens&) {
    pid_t parent = 0;
    {
      const CallsPass pass;
      parent = getppid();
    }
    const int seen = answers.seen;
    const pid_t after = getppid();
    leave_calls();
    EXPECT_NE(parent, 77);
    EXPECT_EQ(seen, 0);
    EXPECT_EQ(after, 77);
  });
}

// The mask that a call sets is the program's after the handler, and handlers return.
TEST(CaughtCalls, SignalsAndTheirMaskAreTheProgramsOwn) {
  static volatile sig_atomic_t came = 0;
  with_calls_caught([](Answers&, Opens&) {
    struct sigaction action {};
    action.sa_handler = [](int) { came = came + 1; };
    sigaction(SIGUSR1, &action, nullptr);
    sigset_t set;
    sigset_t now;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    raise(SIGUSR1);
    const int held_back = came;
    pthread_sigmask(SIG_SETMASK, nullptr, &now);
    pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
    leave_calls();
    EXPECT_EQ(held_back, 0);
    EXPECT_EQ(sigismember(&now, SIGUSR1), 1);
    EXPECT_EQ(came, 1);
  });
}

TEST(CaughtCalls, HandlersOfFaultsAreNotCaught) {
  with_calls_caught([](Answers& answers, Opens& opens) {
    const auto* const at = reinterpret_cast<const volatile std::byte*>(opens.memory->view().low);
    const std::byte value = *at;
    const int seen = answers.seen;
    const pid_t parent = getppid();
    leave_calls();
    EXPECT_EQ(value, std::byte{5});
    EXPECT_GE(opens.faults, 1);
    EXPECT_EQ(seen, 0) << "the handler's own";
    EXPECT_EQ(parent, 77) << "those after it are caught";
  });
}

// Fills a page before each write, and has a signal come meanwhile the first time.
struct FillsPage final : CallTarget {
  bool before(SystemCall& call) override {
    if (call.number != SYS_write) return true;
    if (++writes == 1) raise(SIGUSR1);
    lengths.push_back(static_cast<int>(call.arguments[2]));
    call.arguments[2] = 3;
    *page = std::byte{'a'};
    return true;
  }
  std::byte* page = nullptr;
  int writes = 0;
  std::vector<int> lengths;
};

// As a handler that takes a mutex of the program's may do.
TEST(CaughtCalls, TheTargetIsAskedAgainWhereAHandlerHasChangedThings) {
  if (!can_catch_calls().ok()) GTEST_SKIP() << can_catch_calls().message();
  static FillsPage target;
  target.page = static_cast<std::byte*>(
      mmap(nullptr, page_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  long written = 0;
  std::thread([&] {
    ASSERT_TRUE(ensure_alternate_stack().ok());
    ASSERT_TRUE(tell_faults([](const void*) { return ""; }).ok());
    struct sigaction action {};
    action.sa_handler = [](int) {
      *target.page = std::byte{'x'};
      getppid();
    };
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR1, &action, nullptr);
    ASSERT_TRUE(catch_calls(target).ok());
    written = write(ends[1], target.page, 5);
    leave_calls();
  }).join();
  EXPECT_EQ(written, 3);
  char letter = 0;
  EXPECT_EQ(read(ends[0], &letter, 1), 1);
  EXPECT_EQ(letter, 'a') << "as it was made ready for the call";
  EXPECT_EQ(target.lengths, (std::vector{5, 5})) << "with the program's arguments";
  close(ends[0]);
  close(ends[1]);
  munmap(target.page, page_bytes());
}

}  // namespace
}  // namespace tombolo::host
