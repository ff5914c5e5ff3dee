// SPDX-License-Identifier: Apache-2.0
// Purpose: an exclusive place (002 chapter 3): one family at a time, in the order of their creates.
// The first family of the queue (turns.h) is offered to the workers as any other. A worker that has
// run one runs the next as well: so short families, of whichever creators, stay with one worker and
// its cache, and none of them waits until another worker has seen that it may run.
//
// A worker that alone creates families there, and runs them, gets the place biased to itself
// (biased_turns.h), until another thread creates one: `most_biases` times, each after sixteen times
// as many of its families in a row as the one before. So a place that several threads use pays for
// a few fences in its life.
//
// Invariants: VEX1 a family of the place runs only in its turn.
//             VEX2 a worker on whose stack a thread waits runs its own family alone there; it runs
//                 the next one on another of its stacks, before it goes on with that thread, or
//                 hands it to the other workers (WK2).
//             VEX3 it does the former only as long as the place's families are short: a thread is
//                 held up by `in_a_row` of them at most.
//             VEX4 a family that is stopped in the queue is synced without its turn: it waits for
//                 no family that may wait for its creator.
//             VEX5 all but the words of the queue is changed by the worker alone whose turn it is.
// Thread safety: yes.
#pragma once

#include <atomic>
#include <chrono>

#include "svp/places/biased_turns.h"
#include "svp/scheduler/pool.h"
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
  explicit QueuedTurn(Pool* of = nullptr) : pool(of) {}
  std::atomic<std::uint64_t> claim{0};
  Pool* pool;  // whose workers run it where none serves the queue; null: the default place's
};

class Exclusive {
 public:
  Exclusive() = default;
  ~Exclusive();
  Exclusive(const Exclusive&) = delete;
  Exclusive& operator=(const Exclusive&) = delete;

  // True: the turn is the first, and its task is to be offered to workers. False: others are there,
  // or may be.
  bool enter_if_empty(Turn& turn) { return Queue::enter_if_empty(core_, &last_, number_of(turn)); }
  // The same by a worker that offers the task to its own pool's.
  bool enter_if_empty(Turn& turn, Worker& worker) {
    const std::uint64_t seen = core_.load(&last_);
    const std::uint64_t bias = bias_to(worker, seen);
    if (bias < most_biases) [[likely]]
      return enter_by_bias(turn, seen, bias);
    return enter_if_empty(turn);
  }
  // Behind others, if they are there still: false. Else it is the first, as above, and cannot be
  // given up. `creator`: the scope of the creating thread, which must not be within a family of
  // this place.
  bool enter(QueuedTurn& turn, const Scope* creator);
  // Hands the first turn of the queue to the workers of its creator's choice.
  static void delegate(const QueuedTurn& turn);
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
    const std::uint64_t bias = bias_to(worker, core_.load(&last_));
    // Where the place is biased to this worker, the turn is there by that bias.
    Turn* const next = bias < most_biases ? leave_by_bias(first, bias) : leave_own(first, worker);
    if (next != nullptr) [[unlikely]]
      pass_on(*next, worker);
  }
  // For tests; the place may be biased, or not any more, when it returns.
  bool is_biased() const { return Queue::is_biased(last_.load(std::memory_order_relaxed)); }
  // So often a place is biased to a worker.
  static constexpr std::uint32_t most_biases = 4;
  // Families in a row, before the first time.
  static constexpr std::uint32_t first_row = 64;
  static constexpr std::uint32_t row_factor = 16;

 private:
  friend struct LateEnter;  // bias_test.cpp
  using Clock = std::chrono::steady_clock;
  using Queue = BiasedTurns<Worker::Core>;
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

  // The number of the bias to this worker that `last` says; else most_biases or more.
  static std::uint64_t bias_to(const Worker& worker, std::uint64_t last) {
    return (last - reinterpret_cast<std::uintptr_t>(&worker)) >> 1;
  }
  static std::uint64_t biased_to(const Worker& worker, std::uint64_t bias) {
    return reinterpret_cast<std::uintptr_t>(&worker) + 2 * bias + 1;
  }
  static_assert(alignof(Worker) >= 2 * std::uint64_t{most_biases});
  Queue::Bias words_of(std::uint64_t bias) { return {&inside_[bias], &meeting_[bias]}; }

  bool enter_by_bias(Turn& turn, std::uint64_t seen, std::uint64_t bias) {
    std::uint64_t next = 0;
    const bool entered =
        Queue::enter_by_bias(core_, &last_, words_of(bias), seen, number_of(turn), next, link_of,
                             claim_of, &Exclusive::await, &Exclusive::drop);
    if (next != 0) [[unlikely]]
      delegate(*queued_of(next));
    return entered;
  }
  Turn* leave_by_bias(Turn& turn, std::uint64_t bias) {
    return turn_of(Queue::leave_by_bias(core_, &last_, words_of(bias), number_of(turn), link_of,
                                        claim_of, &Exclusive::await, &Exclusive::drop));
  }
  // relaxed: the turn is there by this bias only if the worker that runs it knows so.
  bool is_inside(const Turn& turn) const {
    return inside_[newest_].load(std::memory_order_relaxed) == number_of(turn) + 1;
  }
  // The turn of a task that its creator has taken back.
  Turn* leave_own(Turn& turn, Worker& worker) {
    if (is_inside(turn)) [[unlikely]]
      return leave_by_bias(turn, newest_);  // BTU4
    std::uint64_t then = 0;
    if (&worker != alone_) [[unlikely]]
      begin_row(worker);
    else if (++in_row_ == next_row_) [[unlikely]]
      then = next_bias(worker);
    if (Queue::leave_alone(core_, &last_, number_of(turn), link_of, then)) [[likely]]
      return nullptr;
    if (then != 0) [[unlikely]]
      take_back_bias();
    return leave_to_next(turn);
  }
  Turn* leave(Turn& turn);
  Turn* leave_to_next(Turn& turn);
  void begin_row(const Worker& worker) {
    alone_ = &worker;
    in_row_ = 0;
  }
  std::uint64_t next_bias(const Worker& worker);
  void take_back_bias();
  static void drop(std::uint64_t given_up) { delete queued_of(given_up); }
  static void await(Worker::Core::Word link);
  void refuse_within_itself(const Scope* creator) const;
  void run(const Turn& turn, Worker& worker);
  void pass_on(const Turn& next, Worker& worker);

  Worker::Core core_{Worker::Core::Attachment{}};  // for its operations on words alone
  alignas(64) std::atomic<std::uint64_t> last_{0};
  // Of the worker whose turn it is; a creator that takes a bias away looks at them once.
  alignas(64) std::atomic<const Scope*> serving_{nullptr};
  std::atomic<std::uint64_t> inside_[most_biases]{};
  std::uint32_t newest_ = 0;  // bias
  std::uint32_t biases_ = 0;  // that the place has had; most_biases: it may have none
  // Families that `alone_` has created and run, without another one's between.
  std::uint32_t in_row_ = 0;
  std::uint32_t next_row_ = first_row;  // for the next bias
  const Worker* alone_ = nullptr;
  std::atomic<std::uint64_t> meeting_[most_biases]{};
  unsigned until_measured_ = 0;
  std::atomic<bool> are_short_{true};
};

}  // namespace tombolo::svp
