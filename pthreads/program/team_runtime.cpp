// SPDX-License-Identifier: Apache-2.0
#include "pthreads/program/team_runtime.h"

#include <signal.h>
#include <unistd.h>

#include <optional>

#include "dsm/allocator/private_heap.h"
#include "dsm/memory/off_stack_memory.h"
#include "host/faults/caught_calls.h"
#include "host/interrupts/wake_up.h"
#include "host/stacks/stack_call.h"
#include "pthreads/program/carried_signals.h"

namespace tombolo::dsm {
namespace {

class OfThisProcess final : public TeamRuntime {
 public:
  void* allocate(std::size_t bytes, std::size_t alignment) override {
    return PrivateHeap::allocate(bytes, alignment);
  }
  void free(void* block) override { PrivateHeap::free(block); }

  void wake_up() override { host::wake_up(getpid()); }
  bool will_be_woken() override { return host::will_be_woken(); }
  Status keep_carriers() override { return dsm::keep_carriers(); }
  void take_signal(int number, bool in_the_first) override {
    if (!in_the_first && is_withheld(number))
      carry_signal(getpid(), number);
    else
      kill(getpid(), number);
  }

 private:
  void call_apart(std::span<std::byte> stack, std::uint64_t* signals, void (*work)(void*),
                  void* object) override {
    std::optional<SignalsWait> of_the_program;
    if (signals != nullptr) of_the_program.emplace(*signals);
    host::call_on(stack, [work, object] {
      const host::CallsPass of_the_runtime;
      work(object);
    });
  }
};

}  // namespace

TeamRuntime& TeamRuntime::here() {
  static constinit OfThisProcess runtime;
  return runtime;
}

}  // namespace tombolo::dsm
