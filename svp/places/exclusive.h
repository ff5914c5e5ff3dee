// SPDX-License-Identifier: Apache-2.0
// Purpose: an exclusive place (002 chapter 3): one family at a time, in the order of their creates.
// The families form a queue; the first of them is offered to the workers as any other, and the
// worker that ran one goes on to the next.
//
// Invariants: VEX1 `last_` is null, or the newest family of the queue; each but the first is
//                 linked behind the one before it. Only the first runs.
//             VEX2 a worker on whose stack a thread waits runs its own family alone and hands the
//                 next one to a worker with a stack of its own (WK2).
//             VEX3 a family sees the memory of those before it: enter()'s exchange and the link
//                 order them.
// Thread safety: yes.
#pragma once

#include <atomic>

#include "svp/scheduler/scope.h"
#include "svp/scheduler/worker.h"

namespace tombolo::svp {

// A family's place in the queue.
struct Turn {
  Task* task = nullptr;
  const Scope* scope = nullptr;
  void (*body)(Task&, Worker&) = nullptr;  // runs the threads, and does not finish the task
  std::atomic<Turn*> next{nullptr};
};

class Exclusive {
 public:
  Exclusive() = default;
  ~Exclusive();
  Exclusive(const Exclusive&) = delete;
  Exclusive& operator=(const Exclusive&) = delete;

  // True: the turn is the first, and its task is to be offered to workers. `creator`: the scope of
  // the creating thread, which must not be within a family of this place.
  bool enter(Turn& turn, const Scope* creator);
  // The task of the first turn has come to a worker.
  void serve(Turn& first, Worker& worker);
  // Its creator has taken it back, and waits for nothing.
  void serve_own(Turn& first, Worker& worker);

 private:
  // So many families are run in a row before the worker looks at other work.
  static constexpr unsigned in_a_row = 64;

  void run(Turn& turn, Worker& worker);
  Turn* leave(Turn& turn);

  std::atomic<Turn*> last_{nullptr};
  std::atomic<const Scope*> serving_{nullptr};
};

}  // namespace tombolo::svp
