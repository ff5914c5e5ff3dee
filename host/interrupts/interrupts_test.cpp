// SPDX-License-Identifier: Apache-2.0
// Purpose: an interrupt is served once its thread may be interrupted, in that thread alone; all
// other signals go where they went before. Most cases are children, which are interrupted.
// Thread safety: -
#include "host/interrupts/interrupts.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <functional>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "host/stacks/alternate_stack.h"

namespace tombolo::host {
namespace {

class Counting : public InterruptGate {
 public:
  void serve(std::uint64_t instruction) override {
    served.push_back(instruction);
    thread = syscall(SYS_gettid);
    number = served.size();
    errno = ERANGE;
    if (during) std::exchange(during, nullptr)();
  }
  std::size_t count() const { return number; }

  std::vector<std::uint64_t> served;
  std::function<void()> during;
  volatile std::size_t number = 0;
  volatile long thread = 0;
};
using Served = std::vector<std::uint64_t>;

// ---- The gate -----------------------------------------------------------------------------------

TEST(InterruptGate, ServesAtOnceWhereItIsOpen) {
  Counting gate;
  gate.arrive(5);
  gate.arrive(6);
  EXPECT_EQ(gate.served, (Served{5, 6}));
}

TEST(InterruptGate, ServesAtTheEndOfTheOutermostClosedPart) {
  Counting gate;
  {
    const InterruptGate::Closed outer(gate);
    {
      const InterruptGate::Closed inner(gate);
      gate.arrive(5);
      gate.arrive(6);
    }
    EXPECT_EQ(gate.served, Served{});
  }
  EXPECT_EQ(gate.served, Served{0}) << "both as one";
  { const InterruptGate::Closed later(gate); }
  EXPECT_EQ(gate.served, Served{0}) << "once";
}

TEST(InterruptGate, ServesNoneWithinAnother) {
  Counting gate;
  gate.during = [&] {
    gate.arrive(6);
    EXPECT_EQ(gate.served, Served{5});
  };
  gate.arrive(5);
  EXPECT_EQ(gate.served, (Served{5, 0}));
  gate.during = [&] {
    { const InterruptGate::Closed inner(gate); }
    gate.arrive(8);
  };
  {
    const InterruptGate::Closed closed(gate);
    gate.arrive(7);
  }
  EXPECT_EQ(gate.served, (Served{5, 0, 0, 0}));
}

TEST(InterruptGate, IsOpenInASleep) {
  Counting gate;
  EXPECT_DEATH(
      {
        const InterruptGate::Closed closed(gate);
        gate.sleep(1);
      },
      "sleeps with its gate closed");
}

// HIG2: without an end by the interrupt the test would have none.
TEST(InterruptGate, IsServedInASleepAndEndsIt) {
  constexpr std::uint64_t a_day_ns = 86'400'000'000'000;
  // Allocates nothing: it may interrupt anything here.
  class : public InterruptGate {
   public:
    volatile bool served = false;

   private:
    void serve(std::uint64_t) override { served = true; }
  } gate;
  ASSERT_TRUE(catch_interrupts(gate).ok());
  std::atomic<bool> ended{false};
  std::thread other([&, self = process_named(getpid())] {
    PeerInterrupts peers({self});
    while (!ended) {
      peers.interrupt(0);
      std::this_thread::yield();
    }
  });
  gate.sleep(a_day_ns);
  ended = true;
  other.join();
  leave_interrupts();
  EXPECT_TRUE(gate.served);
}

// No gate is there at run time, and none is asked for.
TEST(NotInterrupted, NeedsNoMemory) {
  EXPECT_TRUE(std::is_empty_v<NotInterrupted>);
  EXPECT_TRUE(std::is_empty_v<NotInterrupted::Closed>);
  EXPECT_TRUE(std::is_trivially_destructible_v<NotInterrupted::Closed>);
}

// ---- Signals ------------------------------------------------------------------------------------

// A child, and the two ends of its talk with this process.
class Child {
 public:
  explicit Child(const std::function<int(Child&)>& body) {
    EXPECT_EQ(pipe(to_child_), 0);
    EXPECT_EQ(pipe(to_parent_), 0);
    process_ = fork();
    if (process_ == 0) {
      alarm(60);
      _exit(body(*this));
    }
  }
  ~Child() {
    for (const int end : {to_child_[0], to_child_[1], to_parent_[0], to_parent_[1]}) close(end);
  }
  ProcessName name() const { return process_named(process_); }
  void tell_child() const { EXPECT_EQ(write(to_child_[1], "x", 1), 1); }
  void hear_child() const {
    char byte = 0;
    EXPECT_EQ(read(to_parent_[0], &byte, 1), 1);
  }
  void tell_parent() const { (void)!write(to_parent_[1], "x", 1); }
  // The result of the system call.
  ssize_t hear_parent() const {
    char byte = 0;
    return read(to_child_[0], &byte, 1);
  }
  int status() const {
    int status = 0;
    EXPECT_EQ(waitpid(process_, &status, 0), process_);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + status;
  }

 private:
  int to_child_[2] = {-1, -1};
  int to_parent_[2] = {-1, -1};
  pid_t process_ = -1;
};

TEST(Interrupts, ReachAThreadThatComputes) {
  Child child([](Child& me) {
    Counting gate;
    if (!ensure_alternate_stack().ok() || !catch_interrupts(gate).ok()) return 1;
    me.tell_parent();
    while (gate.count() == 0) {
    }
    const bool here = gate.served[0] != 0 && gate.thread == getpid();
    leave_interrupts();
    return here ? 0 : 2;
  });
  child.hear_child();
  PeerInterrupts peers({child.name()});
  peers.interrupt(0);
  EXPECT_EQ(child.status(), 0);
}

// read() is restarted, and errno as it was.
TEST(Interrupts, LetSystemCallsGoOn) {
  Child child([](Child& me) {
    Counting gate;
    if (!catch_interrupts(gate).ok()) return 1;
    errno = EDOM;
    me.tell_parent();
    if (me.hear_parent() != 1) return 2;
    if (errno != EDOM) return 3;
    return gate.count() == 0 ? 4 : 0;
  });
  child.hear_child();
  PeerInterrupts peers({process_named(getpid()), child.name()});
  for (int i = 0; i < 100; ++i) peers.interrupt(1);
  child.tell_child();
  EXPECT_EQ(child.status(), 0);
}

TEST(Interrupts, ComeToTheThreadThatCatchesThem) {
  Child child([](Child& me) {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    Counting gate;
    if (!catch_interrupts(gate).ok()) return 1;
    // The other thread gets the signal first.
    pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread other([&] {
      pthread_sigmask(SIG_SETMASK, &before, nullptr);
      me.tell_parent();
      while (gate.count() == 0) {
      }
    });
    me.hear_parent();
    if (gate.count() != 0) return 2;
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    other.join();
    return gate.thread == getpid() ? 0 : 3;
  });
  child.hear_child();
  PeerInterrupts peers({child.name()});
  peers.interrupt(0);
  child.tell_child();
  EXPECT_EQ(child.status(), 0);
}

int signals = 0;
TEST(Interrupts, LeaveTheSignalsOfOthersToTheProgram) {
  Child child([](Child& me) {
    struct sigaction action {};
    action.sa_handler = [](int) { ++signals; };
    sigaction(SIGURG, &action, nullptr);
    Counting gate;
    if (!catch_interrupts(gate).ok()) return 1;
    raise(SIGURG);
    if (gate.count() != 0 || signals != 1) return 2;
    me.tell_parent();
    while (gate.count() == 0) {
    }
    return signals == 1 ? 0 : 3;
  });
  child.hear_child();
  PeerInterrupts peers({child.name()});
  peers.interrupt(0);
  EXPECT_EQ(child.status(), 0);
}

TEST(Interrupts, AreIgnoredBeforeAndAfter) {
  Child child([](Child& me) {
    me.tell_parent();
    me.hear_parent();
    Counting gate;
    for (int i = 0; i < 2; ++i)
      if (!catch_interrupts(gate).ok()) return 1;
    leave_interrupts();
    raise(SIGURG);
    me.tell_parent();
    me.hear_parent();
    return static_cast<int>(gate.count());
  });
  PeerInterrupts peers({child.name()});
  for (int i = 0; i < 2; ++i) {
    child.hear_child();
    peers.interrupt(0);
    child.tell_child();
  }
  EXPECT_EQ(child.status(), 0);
}

TEST(Interrupts, AreNotForAForkedChild) {
  Counting gate;
  ASSERT_TRUE(catch_interrupts(gate).ok());
  Child child([&](Child& me) {
    me.tell_parent();
    me.hear_parent();
    return static_cast<int>(gate.count());
  });
  PeerInterrupts peers({child.name()});
  child.hear_child();
  peers.interrupt(0);
  child.tell_child();
  EXPECT_EQ(child.status(), 0);
  leave_interrupts();
  EXPECT_EQ(gate.served, Served{});
}

TEST(Interrupts, PassOverThoseThatHaveEnded) {
  Child child([](Child&) { return 0; });
  PeerInterrupts peers({child.name(), {}, {.pid = getpid(), .started = 1}});
  EXPECT_EQ(child.status(), 0);
  Counting gate;
  ASSERT_TRUE(catch_interrupts(gate).ok());
  for (int i = 0; i < 2; ++i)
    for (const std::size_t rank : {0, 1, 2}) peers.interrupt(rank);
  leave_interrupts();
  EXPECT_EQ(gate.served, Served{}) << "by the number of another process";
}

}  // namespace
}  // namespace tombolo::host
