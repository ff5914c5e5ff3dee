// SPDX-License-Identifier: Apache-2.0
// Purpose: handlers of signals that come while the runtime works for the program run behind that
// work: on the program's stack, with its calls served; they may call the runtime, and leave by a
// jump.
// Thread safety: -
#include "dsm/memory/off_stack_memory.h"

#include <gtest/gtest.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <thread>

#include "dsm/allocator/testing/plain_memory.h"
#include "host/faults/fault_router.h"
#include "host/stacks/alternate_stack.h"

#if defined(__x86_64__)

namespace tombolo::dsm {
namespace {

// Sends a signal to its thread in each look at word 1. Lock 0 is free at the third try.
class Signals final : public testing::PlainMemory {
 public:
  explicit Signals(testing::PlainProgram& program) : PlainMemory(program, 0) {}

  std::uint64_t load(WordIndex word) override {
    const std::uint64_t value = PlainMemory::load(word);
    if (word != 1) return value;
    raise(SIGUSR1);
    handled_within = handled;
    return value;
  }
  Status try_acquire(Lock, bool& taken) override {
    taken = ++tries == 3;
    held += taken ? 1 : 0;
    return {};
  }
  Status release(Lock) override {
    --held;
    return {};
  }

  static inline volatile int handled = 0;
  int handled_within = -1;
  int tries = 0;
  int held = 0;
};

// Answers getppid with 77: a call that is caught.
struct Answers final : host::CallTarget {
  bool before(host::SystemCall& call) override {
    call.result = 77;
    return call.number != SYS_getppid;
  }
};

// Found by the handler of the signal.
OffStackMemory* the_memory = nullptr;
pid_t parent = 0;
std::uint64_t of_the_handler = 0;
std::uint64_t stack_pointer = 0;
std::span<std::byte> runtime_stack;
bool jumps = false;
sigjmp_buf back;

bool is_on_runtimes_stack() {
  const auto* const at = reinterpret_cast<const std::byte*>(stack_pointer);
  return at >= runtime_stack.data() && at <= runtime_stack.data() + runtime_stack.size();
}

void on_signal(int, siginfo_t*, void* context) {
  Signals::handled = Signals::handled + 1;
  stack_pointer =
      static_cast<std::uint64_t>(static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RSP]);
  parent = getppid();
  if (is_on_runtimes_stack()) return;  // a call would destroy the one that it has interrupted
  of_the_handler = the_memory->load(2);
  if (jumps) siglongjmp(back, 1);
}

int begun = 0;

// In a thread of its own, whose calls are caught.
class HandlersOffTheStack : public ::testing::Test {
 protected:
  template <class Body>
  void run(Body&& body) {
    if (!host::can_catch_calls().ok()) GTEST_SKIP() << host::can_catch_calls().message();
    std::thread([&] {
      ASSERT_TRUE(host::ensure_alternate_stack().ok());
      ASSERT_TRUE(host::tell_faults([](const void*) { return ""; }).ok());
      struct sigaction action {};
      action.sa_sigaction = &on_signal;
      action.sa_flags = SA_SIGINFO | SA_ONSTACK;
      sigaction(SIGUSR1, &action, nullptr);
      runtime_hooks.has_signal_handlers = true;
      runtime_hooks.runtime_begins = [] { ++begun; };
      runtime_hooks.runtime_ends = [] { --begun; };
      Answers answers;
      ASSERT_TRUE(host::catch_calls(answers).ok());
      body();
      host::leave_calls();
      runtime_hooks = {};
    }).join();
  }

  HandlersOffTheStack() {
    Signals::handled = 0;
    jumps = false;
    parent = 0;
    auto memory = std::make_unique<Signals>(program_);
    beneath = memory.get();
    OffStackMemory::Stack stack;
    runtime_stack = stack.memory();
    memory_ = std::make_unique<OffStackMemory>(std::move(memory), std::move(stack), Observer{});
    the_memory = memory_.get();
    memory_->store(1, 11);
    memory_->store(2, 22);
  }
  OffStackMemory& memory() { return *memory_; }
  Signals* beneath = nullptr;

 private:
  testing::PlainProgram program_{testing::ProgramShape{}};
  std::unique_ptr<OffStackMemory> memory_;
};

// OSM4
TEST_F(HandlersOffTheStack, RunBehindTheCallOnTheProgramsSide) {
  std::uint64_t value = 0;
  run([&] { value = memory().load(1); });
  if (IsSkipped()) return;
  EXPECT_EQ(value, 11u);
  EXPECT_EQ(beneath->handled_within, 0);
  EXPECT_EQ(Signals::handled, 1);
  EXPECT_EQ(parent, 77) << "its calls are served";
  EXPECT_FALSE(is_on_runtimes_stack());
  EXPECT_EQ(of_the_handler, 22u);
}

TEST_F(HandlersOffTheStack, MayLeaveByAJump) {
  std::uint64_t value = 0;
  int within = -1;
  jumps = true;
  run([&] {
    if (sigsetjmp(back, 1) == 0) value = memory().load(1);
    within = begun;
    jumps = false;
    value = memory().load(1);
  });
  if (IsSkipped()) return;
  EXPECT_EQ(within, 0) << "calls of the runtime that have begun";
  EXPECT_EQ(value, 11u);
  EXPECT_EQ(Signals::handled, 2);
}

TEST_F(HandlersOffTheStack, ALockIsHandedOverInOneCall) {
  int looks = 0;
  bool held_in_a_look = false;
  static std::function<void()> look;
  look = [&] {
    ++looks;
    held_in_a_look = held_in_a_look || beneath->held != 0;
  };
  runtime_hooks.between_looks = [] { look(); };
  runtime_hooks.runtime_begins = [] { look(); };
  EXPECT_TRUE(memory().hand_over(0).ok());
  runtime_hooks = {};
  EXPECT_EQ(beneath->tries, 3);
  EXPECT_EQ(beneath->held, 0);
  EXPECT_GT(looks, 2);
  EXPECT_FALSE(held_in_a_look);
}

TEST_F(HandlersOffTheStack, TheSpansOfTheThreadAreToldAsTheyBeginAndEnd) {
  static std::vector<int> told;
  told.clear();
  runtime_hooks.spans_have_changed = [](int spans) { told.push_back(spans); };
  EXPECT_TRUE(memory().acquire(0).ok());
  EXPECT_TRUE(memory().release(0).ok());
  runtime_hooks = {};
  EXPECT_EQ(told, (std::vector{1, 0}));
}

}  // namespace
}  // namespace tombolo::dsm

#endif
