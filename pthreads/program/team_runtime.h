// SPDX-License-Identifier: Apache-2.0
// Purpose: the parts of the runtime that a launched team calls. A process has one of each, in the
// library that is preloaded: the heap of the runtime, the calls that are caught, the signals that
// the program's thread is to have. The library that makes such teams (pthreads/hosts/) has none of
// its own.
//
//   runtime.apart(stack, &signals, [&] { job.post(to, message); });
//
// Thread safety: as each part's.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "base/status.h"

namespace tombolo::dsm {

class TeamRuntime {
 public:
  // The one of this process.
  static TeamRuntime& here();

  // The runtime's own heap: null if it has no memory left.
  virtual void* allocate(std::size_t bytes, std::size_t alignment) = 0;
  virtual void free(void* block) = 0;

  // `work` runs on that stack, and its calls go to the kernel. `signals`: a place for the program's
  // mask, whose handlers wait meanwhile (off_stack_memory.h); null: they do not wait.
  template <class F>
  void apart(std::span<std::byte> stack, std::uint64_t* signals, F&& work) {
    call_apart(
        stack, signals, [](void* object) { (*static_cast<std::remove_reference_t<F>*>(object))(); },
        &work);
  }

  // The thread of this process that is served wakes up (host/interrupts/wake_up.h).
  virtual void wake_up() = 0;
  virtual bool will_be_woken() = 0;
  // A signal comes to this process (carried_signals.h): in the first one as ever.
  virtual Status keep_carriers() = 0;
  virtual void take_signal(int number, bool in_the_first) = 0;

 protected:
  ~TeamRuntime() = default;

 private:
  virtual void call_apart(std::span<std::byte> stack, std::uint64_t* signals, void (*work)(void*),
                          void* object) = 0;
};

}  // namespace tombolo::dsm
