// SPDX-License-Identifier: Apache-2.0
// Purpose: a task, as the workers see it: work that its creator offers to whichever worker is free,
// and waits for. It lies in the creator's frame and is not copied.
//
// Invariants: TK1 `run` ends with the worker's finish(), after which the task may be gone.
//             TK2 `state` is the word of handover.h.
//             TK3 a task without a creator whose slot is `reports` has no thread that waits for it:
//                 finish() calls `ended`.
// Thread safety: the creator's, but for `state`.
#pragma once

#include <atomic>
#include <cstdint>

#include "svp/scheduler/scope.h"

namespace tombolo::svp {

class Worker;

struct Task {
  using Run = void (*)(Task&, Worker&);
  static constexpr std::uint32_t reports = ~std::uint32_t{0};

  Task(Run body, const Scope& of, Worker* by) : run(body), scope(of), creator(by) {}
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;

  Run run;
  const Scope& scope;  // the family whose threads it runs
  Worker* creator;     // null: a thread that is no worker
  std::uint32_t slot = ~std::uint32_t{1};
  std::uint32_t queued = 0;  // 1: behind others, at an exclusive place
  std::atomic<std::uint64_t> state{0};
  // In a queue of a place, or in a worker's list; without a value elsewhere.
  Task* next;
  union {
    Task* previous;
    void (*ended)(Task&);  // TK3
  };
};

}  // namespace tombolo::svp
