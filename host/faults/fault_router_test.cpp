// SPDX-License-Identifier: Apache-2.0
// Purpose: faults go to the target of their address, and all others where they went before. Most
// cases are children, which end by a fault or change the actions of signals.
// Thread safety: -
#include "host/faults/fault_router.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csetjmp>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "host/faults/guarded_memory.h"
#include "host/faults/signal_chain.h"
#include "host/memory/page.h"
#include "host/memory/testing/memory.h"
#include "host/stacks/alternate_stack.h"

namespace tombolo::host {
namespace {

using testing::in_child;
using testing::Plain;
using testing::status_of;

#if defined(__SANITIZE_ADDRESS__)
constexpr bool sanitized = true;  // its handlers are behind ours
#else
constexpr bool sanitized = false;
#endif

void close_pages(const Plain& plain) {
  EXPECT_EQ(mprotect(plain.at(0), plain.bytes(), PROT_NONE), 0);
}
void load(const volatile char* at) { (void)*at; }

// Opens the page that has met a fault.
class Opening : public FaultTarget {
 public:
  bool on_fault(const Fault& fault) override {
    faults.push_back(fault);
    if (during) during();
    if (!wanted) return false;
    errno = ERANGE;
    const auto page = reinterpret_cast<std::uint64_t>(fault.address) / page_bytes() * page_bytes();
    const int access = fault.kind == FaultKind::load ? PROT_READ : PROT_READ | PROT_WRITE;
    return mprotect(reinterpret_cast<void*>(page), page_bytes(), access) == 0;
  }

  std::vector<Fault> faults;
  bool wanted = true;
  std::function<void()> during;
};

class Catching {
 public:
  Catching(const AddressRange& range, FaultTarget& target) : range_(range) {
    const Status status = catch_faults(range, target);
    EXPECT_TRUE(status.ok()) << status.message();
  }
  ~Catching() { leave_faults(range_); }

 private:
  AddressRange range_;
};

// The text of a child on stderr, and its end.
struct Ended {
  int status = 0;
  std::string said;
};
Ended run_child(const std::function<int()>& body) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t process = fork();
  if (process == 0) {
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    _exit(body());
  }
  close(ends[1]);
  Ended ended;
  std::array<char, 4096> part;
  for (ssize_t got; (got = read(ends[0], part.data(), part.size())) > 0;)
    ended.said.append(part.data(), static_cast<std::size_t>(got));
  close(ends[0]);
  ended.status = status_of(process);
  return ended;
}
bool says(const Ended& ended, const std::string& text) {
  return ended.said.find(text) != std::string::npos;
}
std::string hexadecimal(const void* address) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%p", address);
  return text.data();
}

// ---- Faults that are wanted ---------------------------------------------------------------------

TEST(FaultRouter, TellsLoadsFromStores) {
  Plain plain(4);
  close_pages(plain);
  Opening target;
  const Catching catching(plain.range(), target);
  load(plain.page(1) + 5);
  *plain.page(2) = 1;
  *(plain.page(1) + 6) = 1;
  ASSERT_EQ(target.faults.size(), 3u);
  EXPECT_EQ(target.faults[0].address, plain.page(1) + 5);
  EXPECT_EQ(target.faults[1].address, plain.page(2));
  EXPECT_EQ(target.faults[2].address, plain.page(1) + 6);
#if defined(__x86_64__) || defined(__aarch64__)
  EXPECT_EQ(target.faults[0].kind, FaultKind::load);
  EXPECT_EQ(target.faults[1].kind, FaultKind::store);
  EXPECT_EQ(target.faults[2].kind, FaultKind::store);
#endif
}

TEST(FaultRouter, NamesTheInstructionWhileATargetIsCalled) {
  const Plain plain(1);
  Opening target;
  const Catching catching(plain.range(), target);
  const Fault* here = nullptr;
  target.during = [&] { here = fault_here(); };
  close_pages(plain);
  load(plain.at(0));
  ASSERT_NE(here, nullptr);
  EXPECT_EQ(fault_here(), nullptr);
#if defined(__x86_64__) || defined(__aarch64__)
  Dl_info code;
  ASSERT_NE(dladdr(reinterpret_cast<const void*>(target.faults[0].instruction), &code), 0);
  Dl_info own;
  ASSERT_NE(dladdr(reinterpret_cast<const void*>(&close_pages), &own), 0);
  EXPECT_EQ(code.dli_fbase, own.dli_fbase);
#endif
}

TEST(FaultRouter, GivesEachRangeItsTarget) {
  Plain first(2);
  Plain second(2);
  close_pages(first);
  close_pages(second);
  Opening of_first;
  Opening of_second;
  const Catching one(first.range(), of_first);
  const Catching two(second.range(), of_second);
  load(second.at(0));
  load(first.at(first.bytes() - 1));
  EXPECT_EQ(of_first.faults.size(), 1u);
  EXPECT_EQ(of_second.faults.size(), 1u);
}

TEST(FaultRouter, LeavesErrnoToTheProgram) {
  Plain plain(1);
  close_pages(plain);
  Opening target;
  const Catching catching(plain.range(), target);
  errno = EDOM;
  load(plain.at(0));
  EXPECT_EQ(errno, EDOM);
}

TEST(FaultRouter, CatchesInAllThreads) {
  Plain plain(1);
  close_pages(plain);
  Opening target;
  const Catching catching(plain.range(), target);
  std::thread([&] { *plain.at(3) = 1; }).join();
  EXPECT_EQ(target.faults.size(), 1u);
}

int signals_seen = 0;
bool in_target = false;
bool seen_in_target = false;

TEST(FaultRouter, SignalsOfTheProgramWaitForTheTarget) {
  signals_seen = 0;
  struct sigaction action {};
  action.sa_handler = [](int) {
    ++signals_seen;
    seen_in_target = seen_in_target || in_target;
  };
  struct sigaction before {};
  sigaction(SIGUSR1, &action, &before);
  Plain plain(1);
  close_pages(plain);
  Opening target;
  target.during = [] {
    in_target = true;
    raise(SIGUSR1);
    in_target = false;
  };
  const Catching catching(plain.range(), target);
  load(plain.at(0));
  EXPECT_EQ(signals_seen, 1);
  EXPECT_FALSE(seen_in_target);
  sigaction(SIGUSR1, &before, nullptr);
}

TEST(FaultRouter, AFaultInATargetIsOneMore) {
  Plain outer(1);
  Plain inner(1);
  close_pages(outer);
  close_pages(inner);
  Opening of_outer;
  Opening of_inner;
  of_outer.during = [&] { load(inner.at(0)); };
  const Catching one(outer.range(), of_outer);
  const Catching two(inner.range(), of_inner);
  load(outer.at(0));
  EXPECT_EQ(of_inner.faults.size(), 1u);
}

TEST(FaultRouter, RunsOnTheAlternateStack) {
  std::thread([] {
    ASSERT_TRUE(ensure_alternate_stack().ok());
    stack_t stack{};
    sigaltstack(nullptr, &stack);
    EXPECT_GE(stack.ss_size, alternate_stack_bytes);
    Plain plain(1);
    close_pages(plain);
    Opening target;
    const char* at = nullptr;
    target.during = [&] {
      char here = 0;
      at = &here;
    };
    const Catching catching(plain.range(), target);
    load(plain.at(0));
    if (sanitized) return;  // which has stacks of its own
    EXPECT_GE(at, stack.ss_sp);
    EXPECT_LT(at, static_cast<char*>(stack.ss_sp) + stack.ss_size);
  }).join();
}

TEST(AlternateStack, IsMadeOnceAndReplacesASmallerOne) {
  std::thread([] {
    std::vector<char> small(16384);
    stack_t stack{};
    stack.ss_sp = small.data();
    stack.ss_size = small.size();
    stack_t before{};
    sigaltstack(&stack, &before);
    ASSERT_TRUE(ensure_alternate_stack().ok());
    stack_t first{};
    sigaltstack(nullptr, &first);
    EXPECT_NE(first.ss_sp, small.data());
    ASSERT_TRUE(ensure_alternate_stack().ok());
    sigaltstack(nullptr, &stack);
    EXPECT_EQ(stack.ss_sp, first.ss_sp);
    sigaltstack(&before, nullptr);
  }).join();
}

// ---- Faults that are not ------------------------------------------------------------------------

TEST(FaultRouter, AFaultElsewhereEndsTheProcessAndNamesTheAddress) {
  if (sanitized) GTEST_SKIP();
  Plain caught(2);
  Plain other(1);
  close_pages(other);
  Opening target;
  const Catching catching(caught.range(), target);
  for (char* const at : {other.at(3), caught.at(0) + caught.bytes()}) {
    const Ended ended = run_child([&] {
      const Catching again(caught.range(), target);
      *at = 1;
      return 0;
    });
    EXPECT_EQ(ended.status, 200 + SIGSEGV);
    EXPECT_TRUE(says(ended, hexadecimal(at) + ", which it may not (SIGSEGV)")) << ended.said;
  }
}

TEST(FaultRouter, AFaultIsExplainedWithoutRangesToo) {
  if (sanitized) GTEST_SKIP();
  Plain other(1);
  close_pages(other);
  const Ended ended = run_child([&] {
    const Status told = tell_faults([](const void*) { return "; it never was"; });
    if (!told.ok()) return 1;
    *other.at(3) = 1;
    return 0;
  });
  EXPECT_EQ(ended.status, 200 + SIGSEGV);
  EXPECT_TRUE(says(ended, hexadecimal(other.at(3)) + ", which it may not (SIGSEGV); it never was"))
      << ended.said;
}

TEST(FaultRouter, AnUnwantedFaultIsASegmentationFault) {
  if (sanitized) GTEST_SKIP();
  Plain plain(1);
  close_pages(plain);
  Opening target;
  target.wanted = false;
  const Ended ended = run_child([&] {
    const Catching catching(plain.range(), target);
    load(plain.at(9));
    return 0;
  });
  EXPECT_EQ(ended.status, 200 + SIGSEGV);
  EXPECT_TRUE(says(ended, hexadecimal(plain.at(9)) + ", which it may not (SIGSEGV)")) << ended.said;
}

// By userfaultfd it comes as SIGBUS.
TEST(FaultRouter, AnUnwantedFaultOfAnotherSignalIsASegmentationFaultToo) {
  if (sanitized) GTEST_SKIP();
  if (const Status status = available(FaultMechanism::userfault); !status.ok())
    GTEST_SKIP() << status.message();
  for (const bool blocked : {false, true}) {
    const Ended ended = run_child([&] {
      std::unique_ptr<GuardedMemory> memory;
      if (!GuardedMemory::create(FaultMechanism::userfault, page_bytes(), {}, memory).ok())
        return 1;
      Opening target;
      target.wanted = false;
      const Catching catching(memory->view(), target);
      sigset_t mask;
      sigemptyset(&mask);
      sigaddset(&mask, SIGSEGV);
      if (blocked) sigprocmask(SIG_BLOCK, &mask, nullptr);
      load(reinterpret_cast<char*>(memory->view().low));
      return 0;
    });
    EXPECT_EQ(ended.status, 200 + SIGSEGV);
    EXPECT_TRUE(says(ended, "which it may not (SIGSEGV)")) << ended.said;
  }
}

// ---- The program's own handlers -----------------------------------------------------------------

sigjmp_buf program_goes_on;
siginfo_t told{};
sigset_t held_back;
void program_handler(int signal, siginfo_t* info, void*) {
  told = *info;
  told.si_errno = signal;
  pthread_sigmask(SIG_BLOCK, nullptr, &held_back);
  siglongjmp(program_goes_on, 1);
}
struct sigaction action_of_the_program() {
  struct sigaction action {};
  action.sa_sigaction = program_handler;
  action.sa_flags = SA_SIGINFO;
  sigaddset(&action.sa_mask, SIGUSR2);
  return action;
}

TEST(FaultRouter, AFaultElsewhereGoesToTheHandlerFromBefore) {
  Plain caught(1);
  Plain other(1);
  close_pages(other);
  EXPECT_EQ(in_child([&] {
              const struct sigaction action = action_of_the_program();
              Opening target;
              const Catching catching(caught.range(), target);
              set_earlier_action(SIGSEGV, &action, nullptr);
              struct sigaction now {};
              set_earlier_action(SIGSEGV, nullptr, &now);
              if (now.sa_sigaction != program_handler) return 1;
              if (sigsetjmp(program_goes_on, 1) == 0) {
                load(other.at(7));
                return 2;
              }
              if (told.si_errno != SIGSEGV || told.si_addr != other.at(7)) return 3;
              if (told.si_code != SEGV_ACCERR) return 4;
              // As if ours were not there.
              if (sigismember(&held_back, SIGSEGV) != 1 || sigismember(&held_back, SIGUSR2) != 1)
                return 5;
              if (sigismember(&held_back, SIGUSR1) != 0) return 6;
              return 0;
            }),
            0);
}

// In a program of its own, where no faults are caught yet.
TEST(FaultRouter, TheHandlerFromBeforeIsFound) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const struct sigaction action = action_of_the_program();
        sigaction(SIGSEGV, &action, nullptr);
        Plain caught(1);
        Plain other(1);
        close_pages(other);
        Opening target;
        const Catching catching(caught.range(), target);
        if (sigsetjmp(program_goes_on, 1) == 0) load(other.at(7));
        _exit(told.si_addr == other.at(7) ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST(FaultRouter, AnUnwantedFaultIsTheSegmentationFaultOfTheProgram) {
  if (const Status status = available(FaultMechanism::userfault); !status.ok())
    GTEST_SKIP() << status.message();
  EXPECT_EQ(in_child([&] {
              std::unique_ptr<GuardedMemory> memory;
              if (!GuardedMemory::create(FaultMechanism::userfault, page_bytes(), {}, memory).ok())
                return 1;
              Opening target;
              target.wanted = false;
              const Catching catching(memory->view(), target);
              const struct sigaction action = action_of_the_program();
              set_earlier_action(SIGSEGV, &action, nullptr);
              if (sigsetjmp(program_goes_on, 1) == 0) {
                load(reinterpret_cast<char*>(memory->view().low));
                return 2;
              }
              if (told.si_errno != SIGSEGV || told.si_signo != SIGSEGV) return 3;
              return told.si_addr == reinterpret_cast<void*>(memory->view().low) ? 0 : 4;
            }),
            0);
}

TEST(FaultRouter, ASignalThatAProcessSendsIsNoFault) {
  Plain plain(1);
  Opening target;
  for (const int signal : {SIGSEGV, SIGBUS}) {
    const int ended = in_child([&] {
      const Catching catching(plain.range(), target);
      struct sigaction plainly {};
      set_earlier_action(signal, &plainly, nullptr);
      raise(signal);
      return 0;
    });
    EXPECT_EQ(ended, 200 + signal);
  }
}

TEST(SignalChain, ActionsWithoutAFunctionAreNotCalled) {
  struct sigaction action {};
  action.sa_flags = SA_SIGINFO;
  for (auto* const none : {SIG_DFL, SIG_IGN}) {
    action.sa_handler = none;
    EXPECT_FALSE(has_handler(action));
  }
  action.sa_sigaction = program_handler;
  EXPECT_TRUE(has_handler(action));
}

// ---- The table ----------------------------------------------------------------------------------

TEST(FaultRouter, AChildHasNoRanges) {
  Plain plain(1);
  close_pages(plain);
  Opening target;
  const Catching catching(plain.range(), target);
  const Ended ended = run_child([&] {
    load(plain.at(0));
    return 0;
  });
  EXPECT_NE(ended.status, 0);
  load(plain.at(0));
  EXPECT_EQ(target.faults.size(), 1u);
}

TEST(FaultRouter, RangesThatAreLeftMakeRoom) {
  Opening target;
  constexpr std::uint64_t far = std::uint64_t{1} << 40;
  std::vector<AddressRange> ranges;
  Status status;
  while (status.ok() && ranges.size() < 2000) {
    const std::uint64_t low = far + ranges.size() * page_bytes();
    status = catch_faults({low, low + page_bytes()}, target);
    if (status.ok()) ranges.push_back({low, low + page_bytes()});
  }
  EXPECT_EQ(status.code(), Code::no_memory);
  EXPECT_EQ(ranges.size(), 512u);
  leave_faults(ranges[100]);
  Plain plain(1);
  close_pages(plain);
  {
    const Catching catching(plain.range(), target);
    load(plain.at(0));
    EXPECT_EQ(target.faults.size(), 1u);
  }
  for (const AddressRange& range : ranges) leave_faults(range);
}

}  // namespace
}  // namespace tombolo::host
