// SPDX-License-Identifier: Apache-2.0
// Purpose: faults of other threads while pages are held and afterwards, in an order that the test
// gives: the handler asks for its thread's number by a system call, in which the test can keep it.
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

#include "host/images/write_hold.h"
#include "host/memory/page.h"
#include "host/memory/testing/memory.h"
#include "host/memory/testing/system_calls.h"

namespace tombolo::host {
namespace {

using testing::Answering;
using testing::Call;
using testing::in_child;
using testing::is_private;
using testing::pass;
using testing::Plain;
using testing::refuse;

const std::uint64_t page = page_bytes();
#if defined(__SANITIZE_THREAD__)
constexpr bool handlers_are_ours = false;
#else
constexpr bool handlers_are_ours = true;
#endif

class WriteHoldCallsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!handlers_are_ours) GTEST_SKIP() << "the sanitizer delays signals";
  }
};

// False after some seconds, so that a test which fails ends.
bool comes(const std::function<bool()>& event) {
  for (int i = 0; i < 50'000; ++i) {
    if (event()) return true;
    usleep(100);
  }
  return false;
}

// Another thread that stores to a byte once it is told to.
class Writer {
 public:
  // Its handler of faults waits for go_on() at each of these calls.
  explicit Writer(volatile char* byte, std::vector<long> waits_at = {})
      : thread_([this, byte, waits_at] {
          const Answering answering([&](const Call& call) {
            if (call.number == SYS_nanosleep) ++sleeps_;
            if (std::find(waits_at.begin(), waits_at.end(), call.number) == waits_at.end())
              return pass(call);
            const int turn = ++waits_;
            while (turns_ < turn) usleep(100);
            return pass(call);
          });
          runs_ = true;
          while (!stores_) usleep(100);
          *byte = 1;
          stored_ = true;
        }) {
    while (!runs_) usleep(100);  // a thread that starts blocks signals
  }
  ~Writer() {
    if (stores_ && !stored_) std::_Exit(80);  // it would never end
    stores_ = true;
    thread_.join();
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  void store() { stores_ = true; }
  bool has_stored() const { return stored_; }
  int waits() const { return waits_; }    // that have begun
  int sleeps() const { return sleeps_; }  // of the handler
  void go_on(int turns = 1'000'000) { turns_ = turns; }

 private:
  std::atomic<bool> runs_{false};
  std::atomic<bool> stores_{false};
  std::atomic<bool> stored_{false};
  std::atomic<int> waits_{0};
  std::atomic<int> turns_{0};
  std::atomic<int> sleeps_{0};
  std::thread thread_;
};

// In a process of its own, in which a program's handler may be there first. 0 if all is well.
int alone(void (*handler)(int), int flags, const std::function<int()>& body) {
  return in_child([&] {
    struct sigaction action = {};
    action.sa_handler = handler;
    action.sa_flags = flags;
    if (sigaction(SIGSEGV, &action, nullptr) != 0) return 90;
    std::_Exit(body());  // threads may be left
  });
}

// --- Stores to held pages -----------------------------------------------------------------------

void no_fault_of_program(int) { _exit(91); }

TEST_F(WriteHoldCallsTest, AHandlerThatComesAfterTheHoldLetsTheStoreBeTriedAgain) {
  EXPECT_EQ(alone(no_fault_of_program, 0,
                  [] {
                    const Plain plain(1);
                    Writer writer(plain.at(8), {SYS_gettid});
                    WriteHold hold;
                    if (!hold.take(plain.range())) return 1;
                    writer.store();
                    if (!comes([&] { return writer.waits() > 0; })) return 2;
                    hold.release();
                    writer.go_on();
                    return comes([&] { return writer.has_stored(); }) ? 0 : 3;
                  }),
            0);
}

TEST_F(WriteHoldCallsTest, AHandlerThatComesInALaterHoldLetsTheStoreBeTriedAgain) {
  EXPECT_EQ(alone(no_fault_of_program, 0,
                  [] {
                    const Plain plain(1);
                    const Plain other(1);
                    Writer writer(plain.at(8), {SYS_gettid});
                    WriteHold hold;
                    if (!hold.take(plain.range())) return 1;
                    writer.store();
                    if (!comes([&] { return writer.waits() > 0; })) return 2;
                    for (int i = 0; i < 1000; ++i) {
                      hold.release();
                      if (!hold.take(other.range())) return 3;
                    }
                    writer.go_on();
                    return comes([&] { return writer.has_stored(); }) ? 0 : 4;
                  }),
            0);
}

TEST_F(WriteHoldCallsTest, AHoldThatBeginsWhileTheHandlerLooksIsWaitedForAsWell) {
  EXPECT_EQ(alone(no_fault_of_program, 0,
                  [] {
                    const Plain plain(1);
                    Writer writer(plain.at(8), {SYS_gettid, SYS_futex});
                    WriteHold first;
                    if (!first.take(plain.range())) return 1;
                    writer.store();
                    if (!comes([&] { return writer.waits() == 1; })) return 2;
                    first.release();
                    writer.go_on(1);
                    if (!comes([&] { return writer.waits() == 2; })) return 3;
                    WriteHold second;  // between the look at the hold and that at the page
                    if (!second.take(plain.range())) return 4;
                    writer.go_on();
                    if (!comes([&] { return writer.sleeps() > 1; })) return 5;
                    if (writer.has_stored()) return 6;
                    second.release();
                    return comes([&] { return writer.has_stored(); }) ? 0 : 7;
                  }),
            0);
}

// A thread of higher priority must leave its processor to the holder.
TEST_F(WriteHoldCallsTest, AStoreWaitsAsleep) {
  EXPECT_EQ(alone(no_fault_of_program, 0,
                  [] {
                    const Plain plain(1);
                    Writer writer(plain.at(8));
                    WriteHold hold;
                    if (!hold.take(plain.range())) return 1;
                    writer.store();
                    if (!comes([&] { return writer.sleeps() > 2; })) return 2;
                    hold.release();
                    return comes([&] { return writer.has_stored(); }) ? 0 : 3;
                  }),
            0);
}

// Threads with small stacks have such.
TEST_F(WriteHoldCallsTest, TheHandlerRunsOnTheStackForSignals) {
  EXPECT_EQ(alone(SIG_DFL, 0,
                  [] {
                    static std::array<char, 65536> signals;
                    const Plain plain(1);
                    std::atomic<bool> ready{false};
                    std::atomic<std::uint64_t> place{0};
                    std::thread writer([&] {
                      const stack_t stack{signals.data(), 0, signals.size()};
                      stack_t former = {};
                      sigaltstack(&stack, &former);
                      const Answering answering([&](const Call& call) {
                        const char here = 0;
                        if (call.number == SYS_gettid)
                          place = reinterpret_cast<std::uint64_t>(&here);
                        return pass(call);
                      });
                      ready = true;
                      while (place == 0) *static_cast<volatile char*>(plain.at(0)) = 1;
                      sigaltstack(&former, nullptr);
                    });
                    while (!ready) usleep(100);
                    WriteHold hold;
                    if (!hold.take(plain.range())) return 1;
                    if (!comes([&] { return place != 0; })) return 2;
                    hold.release();
                    writer.join();
                    const auto low = reinterpret_cast<std::uint64_t>(signals.data());
                    return place >= low && place < low + signals.size() ? 0 : 3;
                  }),
            0);
}

TEST_F(WriteHoldCallsTest, EachStoreWaitsWhereTheProgramsHandlerWasForOneFault) {
  EXPECT_EQ(alone(no_fault_of_program, static_cast<int>(SA_RESETHAND),
                  [] {
                    const Plain plain(2);
                    for (const std::uint64_t i : {0, 1}) {
                      Writer writer(plain.page(i), {SYS_gettid});
                      WriteHold hold;
                      if (!hold.take(plain.range())) return 1;
                      writer.store();
                      if (!comes([&] { return writer.waits() > 0; })) return 2;
                      hold.release();
                      writer.go_on();
                      if (!comes([&] { return writer.has_stored(); })) return 3;
                    }
                    return 0;
                  }),
            0);
}

// --- Other faults of other threads --------------------------------------------------------------

std::atomic<int> faults_of_program;
std::atomic<std::uint64_t> place_of_fault;

// Lets the program's handler, one without details, make the page accessible again.
void make_accessible(int) {
  ++faults_of_program;
  (void)mmap(reinterpret_cast<void*>(place_of_fault.load()), page, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

// A store to a page of `plain`, of which pages 1 and 2 are held, goes to the program's handler.
int fault_beside(std::uint64_t faulting, const std::function<void(const Plain&)>& prepare) {
  return alone(make_accessible, 0, [&] {
    const Plain plain(4);
    Writer writer(plain.page(faulting));
    place_of_fault = reinterpret_cast<std::uint64_t>(plain.page(faulting));
    WriteHold hold;
    if (!hold.take(plain.pages(1, 2))) return 1;
    prepare(plain);
    writer.store();
    if (!comes([&] { return writer.has_stored(); })) return 2;
    return faults_of_program == 1 ? 0 : 3;
  });
}

TEST_F(WriteHoldCallsTest, AFaultBesideTheHeldPagesGoesToTheProgramsHandler) {
  EXPECT_EQ(fault_beside(0, [](const Plain& plain) { mprotect(plain.page(0), page, PROT_READ); }),
            0);
  EXPECT_EQ(fault_beside(3, [](const Plain& plain) { mprotect(plain.page(3), page, PROT_READ); }),
            0);
}

TEST_F(WriteHoldCallsTest, AFaultOfMissingMemoryGoesToTheProgramsHandler) {
  EXPECT_EQ(fault_beside(2, [](const Plain& plain) { munmap(plain.page(2), page); }), 0);
}

TEST_F(WriteHoldCallsTest, AFaultAfterTheHoldGoesToTheProgramsHandler) {
  EXPECT_EQ(alone(make_accessible, 0,
                  [] {
                    const Plain plain(1);
                    Writer writer(plain.at(0));
                    place_of_fault = reinterpret_cast<std::uint64_t>(plain.at(0));
                    WriteHold hold;
                    if (!hold.take(plain.range())) return 1;
                    hold.release();
                    mprotect(plain.at(0), page, PROT_READ);
                    writer.store();
                    if (!comes([&] { return writer.has_stored(); })) return 2;
                    return faults_of_program == 1 ? 0 : 3;
                  }),
            0);
}

void end_well(int) { _exit(0); }

// Data that is run: no store, though the page can be written to.
TEST_F(WriteHoldCallsTest, AFaultThatComesAgainGoesToTheProgramsHandler) {
  EXPECT_EQ(alone(end_well, 0,
                  [] {
                    alarm(5);  // instead of trying for ever
                    const Plain plain(1);
                    Writer writer(plain.at(0));
                    WriteHold hold;
                    if (!hold.take(plain.range())) return 1;
                    hold.release();
                    reinterpret_cast<void (*)()>(plain.at(0))();
                    return 2;
                  }),
            0);
}

std::atomic<bool> fault_is_blocked;

void look_whether_blocked(int signal) {
  sigset_t now;
  pthread_sigmask(SIG_BLOCK, nullptr, &now);
  fault_is_blocked = sigismember(&now, SIGSEGV) != 0;
  make_accessible(signal);
}

int fault_of_program(int flags) {
  return alone(look_whether_blocked, flags, [] {
    const Plain plain(1);
    Writer other(plain.at(0));
    if (!can_hold_writes()) return 90;
    place_of_fault = reinterpret_cast<std::uint64_t>(plain.at(0));
    mprotect(plain.at(0), page, PROT_READ);
    *plain.at(0) = 1;
    sigset_t now;
    pthread_sigmask(SIG_BLOCK, nullptr, &now);
    if (sigismember(&now, SIGSEGV) != 0) return 91;
    return fault_is_blocked ? 1 : 0;
  });
}

TEST_F(WriteHoldCallsTest, TheProgramsHandlerBlocksFaultsAsItHasAskedFor) {
  EXPECT_EQ(fault_of_program(0), 1);
  EXPECT_EQ(fault_of_program(SA_NODEFER), 0);
}

TEST_F(WriteHoldCallsTest, AnIgnoredSignalStaysIgnoredAndAFaultEndsTheProcess) {
  EXPECT_EQ(alone(SIG_IGN, 0,
                  [] {
                    const Plain plain(1);
                    Writer writer(plain.at(0));
                    if (!can_hold_writes()) return 1;
                    raise(SIGSEGV);
                    mprotect(plain.at(0), page, PROT_READ);
                    writer.store();
                    return comes([&] { return writer.has_stored(); }) ? 2 : 3;
                  }),
            200 + SIGSEGV);
  EXPECT_EQ(alone(SIG_IGN, 0,
                  [] {
                    const Plain plain(1);
                    Writer writer(plain.at(0));
                    if (!can_hold_writes()) return 1;
                    raise(SIGSEGV);
                    writer.store();
                    return comes([&] { return writer.has_stored(); }) ? 0 : 2;
                  }),
            0);
}

// --- Holds that are none ------------------------------------------------------------------------

// Another thread, whose first action is to block faults, until it is told not to.
class Blocking {
 public:
  Blocking()
      : thread_([this] {
          sigset_t fault;
          sigemptyset(&fault);
          sigaddset(&fault, SIGSEGV);
          pthread_sigmask(SIG_BLOCK, &fault, nullptr);
          state_ = 1;
          while (state_ == 1) usleep(100);
          pthread_sigmask(SIG_UNBLOCK, &fault, nullptr);
          state_ = 3;
          while (state_ == 3) usleep(100);
        }) {
    while (state_ == 0) usleep(100);
  }
  ~Blocking() {
    unblock();
    state_ = 4;
    thread_.join();
  }
  Blocking(const Blocking&) = delete;
  Blocking& operator=(const Blocking&) = delete;
  void unblock() {
    if (state_ == 1) state_ = 2;
    while (state_ == 2) usleep(100);
  }

 private:
  std::atomic<int> state_{0};
  std::thread thread_;
};

// Calls `at_sleep` each time before it sleeps.
bool can_hold(int& sleeps, const std::function<void()>& at_sleep) {
  const Answering answering([&](const Call& call) {
    if (call.number != SYS_nanosleep) return pass(call);
    ++sleeps;
    at_sleep();
    return pass(call);
  });
  return can_hold_writes();
}

TEST_F(WriteHoldCallsTest, AThreadThatBlocksFaultsForAMomentIsWaitedFor) {
  EXPECT_EQ(in_child([] {
              Blocking other;
              int sleeps = 0;
              if (!can_hold(sleeps, [&] { other.unblock(); })) return 1;
              return sleeps == 1 ? 0 : 2;
            }),
            0);
}

TEST_F(WriteHoldCallsTest, AThreadThatBlocksFaultsForLongIsWaitedForOnce) {
  EXPECT_EQ(in_child([] {
              Blocking other;
              int sleeps = 0;
              if (can_hold(sleeps, [] {}) || sleeps == 0) return 1;
              sleeps = 0;
              if (can_hold(sleeps, [] {}) || sleeps != 0) return 2;
              other.unblock();
              return can_hold(sleeps, [] {}) && sleeps == 0 ? 0 : 3;
            }),
            0);
}

TEST_F(WriteHoldCallsTest, APageThatCannotBeProtectedIsNotHeld) {
  EXPECT_EQ(alone(SIG_DFL, 0,
                  [] {
                    const Plain plain(1);
                    Writer writer(plain.at(0));
                    WriteHold hold;
                    const Answering answering([](const Call& call) {
                      return call.number == SYS_mprotect && call.int_at(2) == PROT_READ
                                 ? refuse(ENOMEM)
                                 : pass(call);
                    });
                    if (hold.take(plain.range())) return 1;
                    writer.store();
                    return comes([&] { return writer.has_stored(); }) ? 0 : 2;
                  }),
            0);
}

// Another process may copy into them.
TEST_F(WriteHoldCallsTest, PagesAreProtectedWhereThereIsNoOtherThread) {
  EXPECT_EQ(in_child([] {
              const Plain plain(1);
              WriteHold hold;
              if (!hold.take(plain.range())) return 1;
              if (is_private(plain.at(0))) return 2;  // rw-p
              hold.release();
              *plain.at(0) = 1;
              return 0;
            }),
            0);
}

TEST_F(WriteHoldCallsTest, PagesThatCannotBeProtectedMoveWhereThereIsNoOtherThread) {
  EXPECT_EQ(in_child([] {
              const Plain plain(1);
              WriteHold hold;
              const Answering answering([](const Call& call) {
                return call.number == SYS_mprotect && call.int_at(2) == PROT_READ ? refuse(ENOMEM)
                                                                                  : pass(call);
              });
              if (!hold.take(plain.range())) return 1;
              *plain.at(0) = 1;
              return 0;
            }),
            0);
}

}  // namespace
}  // namespace tombolo::host
