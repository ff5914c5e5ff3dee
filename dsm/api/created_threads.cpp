// SPDX-License-Identifier: Apache-2.0
#include "dsm/api/created_threads.h"

#include <cstdio>

#include "base/check.h"
#include "runtime/findings/call_sites.h"

namespace tombolo::dsm {
namespace {

Task task_of(std::uint64_t place, void* argument, bool detached) {
  return {.function = reinterpret_cast<CreatedThreads::Function>(place),
          .argument = argument,
          .detached = detached};
}

// The other processes are there already.
int start_none(Thread) { return 0; }

CreatedThreads::Function function_of(const Task& task) {
  const void* const function = runtime::address_of(reinterpret_cast<std::uint64_t>(task.function));
  TOMBOLO_CHECK(function != nullptr,
                "tombolo_dsm_thread_create: this process does not have the library of the "
                "function, or has it from another path");
  return reinterpret_cast<CreatedThreads::Function>(const_cast<void*>(function));
}

}  // namespace

int CreatedThreads::create(Function function, void* argument, ThreadHandle& out) {
  const std::uint64_t place = runtime::code_place(reinterpret_cast<const void*>(function));
  TOMBOLO_CHECK(place != 0,
                "tombolo_dsm_thread_create: {} is no function of the program or of its libraries",
                reinterpret_cast<const void*>(function));
  return table_.create(task_of(place, argument, false), start_none, out);
}

int CreatedThreads::join(ThreadHandle thread, void*& value) {
  std::uint64_t result = 0;
  const int error = table_.join(self_, thread, result);
  value = reinterpret_cast<void*>(result);
  return error;
}

void CreatedThreads::serve(const int& spans) {
  for (;;) {
    Task task;
    self_ = table_.take(task);
    if (task.function == nullptr) return;  // CTH2
    void* const value = function_of(task)(task.argument);
    keys_.destroy_values();
    TOMBOLO_CHECK(spans == 0, "a thread has ended, and holds {} mutexes", spans);  // CTH1
    std::fflush(stdout);
    table_.finish(self_, reinterpret_cast<std::uint64_t>(value));
  }
}

void CreatedThreads::end() {
  table_.wait_for_all();
  for (Thread other = 1; other < memory_.threads(); ++other) {
    ThreadHandle thread = 0;
    const int error = table_.create(task_of(0, nullptr, true), start_none, thread);
    TOMBOLO_CHECK(error == 0, "tombolo_dsm_finalize: a process is busy without a thread");
  }
}

}  // namespace tombolo::dsm
