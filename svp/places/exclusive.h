// SPDX-License-Identifier: Apache-2.0
// Purpose: an exclusive place (002 chapter 3): one family at a time, in the order of their creates.
// The first family of the queue (turns.h) is offered to the workers as any other. A worker that has
// run one runs the next as well: so short families, of whichever creators, stay with one worker and
// its cache, and none of them waits until another worker has seen that it may run.
//
// Invariants: VEX1 a family of the place runs only in its turn.
//             VEX2 a worker on whose stack a thread waits runs its own family alone there; it runs
//                 the next one on another of its stacks, before it goes on with that thread, or
//                 hands it to the other workers (WK2).
//             VEX3 it does the former only as long as the place's families are short: a thread is
//                 held up by `in_a_row` of them at most.
//             VEX4 a family that is stopped in the queue is synced without its turn: it waits for
//                 no family that may wait for its creator.
// Thread safety: yes.
#pragma once

#include <atomic>
#include <chrono>

#include "svp/places/turns.h"
#include "svp/scheduler/scope.h"
#include "svp/scheduler/worker.h"

namespace tombolo::svp {

// A family's place in the queue. Its number is its address.
struct Turn {
  Task* task;  // where the turn was the first at once: from when its task comes to a worker
  std::atomic<std::uint64_t> next{0};
};
// One behind others: memory of its own, which is left in the queue where it is given up.
struct QueuedTurn : Turn {
  std::atomic<std::uint64_t> claim{0};
};

class Exclusive {
 public:
  Exclusive() = default;
  ~Exclusive();
  Exclusive(const Exclusive&) = delete;
  Exclusive& operator=(const Exclusive&) = delete;

  // True: the turn is the first, and its task is to be offered to workers. False: others are there.
  bool enter_if_empty(Turn& turn) { return Queue::enter_if_empty(core_, &last_, number_of(turn)); }
  // Behind others, if they are there still: false. Else it is the first, as above, and cannot be
  // given up. `creator`: the scope of the creating thread, which must not be within a family of
  // this place.
  bool enter(QueuedTurn& turn, const Scope* creator);
  // The creator of a turn that has entered by enter(), and of a family that was stopped. True:
  // it will not be run, and is deleted once it is the first.
  bool give_up(QueuedTurn& turn) { return Queue::give_up(core_, &turn.claim); }
  // The task of the first turn has come to a worker. Runs this one and others, whose tasks find
  // that they are served: their `run` does not finish them.
  void serve(Turn& first, Worker& worker);
  // relaxed: true only for the worker that has stored it.
  bool serves(const Task& task) const {
    return serving_.load(std::memory_order_relaxed) == &task.scope;
  }
  // Its creator has taken it back, waits for nothing, and runs it.
  void begin_own(const Scope& scope) {
    serving_.store(&scope, std::memory_order_relaxed);  // see refuse_within_itself()
  }
  void end_own(Turn& first, Worker& worker) {
    serving_.store(nullptr, std::memory_order_relaxed);  // likewise
    if (Turn* const next = leave(first)) [[unlikely]]
      pass_on(*next, worker);
  }

 private:
  using Clock = std::chrono::steady_clock;
  using Queue = Turns<Worker::Core>;
  // So many families are run in a row before the worker looks at other work.
  static constexpr unsigned in_a_row = 64;
  // To hand a family to another worker takes about as long as such a family.
  static constexpr std::chrono::microseconds short_family{1};
  // A clock is read for one in so many.
  static constexpr unsigned rarely = 16;

  static std::uint64_t number_of(const Turn& turn) {
    return reinterpret_cast<std::uintptr_t>(&turn);
  }
  static Turn* turn_of(std::uint64_t number) { return reinterpret_cast<Turn*>(number); }
  static Worker::Core::Word link_of(std::uint64_t number) { return &turn_of(number)->next; }
  static Worker::Core::Word claim_of(std::uint64_t number) { return &queued_of(number)->claim; }
  static QueuedTurn* queued_of(std::uint64_t number) {
    return static_cast<QueuedTurn*>(turn_of(number));
  }

  Turn* leave(Turn& turn) {
    return turn_of(Queue::leave(core_, &last_, number_of(turn), link_of, claim_of,
                                &Exclusive::await, &Exclusive::drop));
  }
  static void drop(std::uint64_t given_up) { delete queued_of(given_up); }
  static void await(Worker::Core::Word link);
  void refuse_within_itself(const Scope* creator) const;
  void run(const Turn& turn, Worker& worker);
  void pass_on(const Turn& next, Worker& worker);

  Worker::Core core_{Worker::Core::Attachment{}};  // for its operations on words alone
  alignas(64) std::atomic<std::uint64_t> last_{0};
  // Of the worker whose turn it is; in a line of its own, which creators leave alone.
  alignas(64) std::atomic<const Scope*> serving_{nullptr};
  unsigned until_measured_ = 0;
  std::atomic<bool> are_short_{true};
};

}  // namespace tombolo::svp
