// SPDX-License-Identifier: Apache-2.0
// Purpose: how an idle worker goes on until it has work: how often it asks the others for tasks,
// how long it polls and gives its processor away, when it sleeps, and when it naps. How a sleeper
// is woken is the matter of sleep_handshake.h.
//
// To be asked costs a worker as much as several short families, and to wake a sleeper as much as a
// hundred. So a worker that gets nothing for its asks, or tasks that are over at once, asks ever
// more rarely.
//
// Between its looks it waits as machine::Waiter does, but for a worker that waits for other
// processes of its host. These wake it at once, which takes some microseconds. So where other
// programs want the processors, and keep one that is given away for a time slice, it polls for
// about as long as a wake-up takes, and sleeps: the kernel gives a thread that wakes up a processor
// sooner than one that has given it away.
//
//   while (!found(idle_policy.look())) {
//     if (!idle_policy.waits()) idle_policy.begin_wait(IdlePolicy::For::processes);
//     idle_policy.wants_sleep() ? sleep() : idle_policy.step();
//   }
//   idle_policy.end_wait();
//
// Invariants: IDP1 after `n` looks in vain the next ask comes within n / 16 + 1 looks, and within
//                 `longest`.
//             IDP2 a nap, for which no other worker that has tasks stays attentive, comes after
//                 `sleeps_in_vain` sleeps at least that others have ended, and never after another
//                 nap.
//             IDP3 for processes: while giving a processor away costs much, it wants to sleep after
//                 `waiting.polls / brief` polls, or once the cost has risen as soon as that.
// Thread safety: one thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

#include "machine/waiting.h"

namespace tombolo::svp {

class IdlePolicy {
 public:
  using Cost = machine::YieldCost;
  using Duration = std::chrono::nanoseconds;
  // A worker waits for work of the workers of this process, or of other hosts, which wake none; or
  // of processes of this host.
  enum class For : std::uint8_t { workers, processes };
  // Costs are compared after an eighth of the polls: usually 250, some ten microseconds.
  static constexpr std::uint32_t brief = 8;
  // Looks that follow each other at once.
  static constexpr std::uint32_t quick = 16;
  // Steps of the wait between two looks behind the quick ones: these come a few times in a
  // microsecond.
  static constexpr std::uint32_t steps_between_looks = 24;
  // So many looks at most pass without an ask.
  static constexpr std::uint32_t longest = 64;
  static constexpr std::uint32_t sleeps_in_vain = 4;
  static constexpr std::chrono::microseconds nap{1000};
  // To hand over a task takes about as long as a shorter one.
  static constexpr std::chrono::microseconds short_task{2};

  explicit IdlePolicy(const machine::WaitPolicy& waiting, Cost& cost = Cost::here())
      : waiting_(waiting), cost_(cost), between_costs_(std::max(1u, waiting.polls / brief)) {}

  // ---- Looks and asks ---------------------------------------------------------------------------

  // The worker looks, and has found nothing of its own. True: it asks.
  bool look() {
    const bool asks = until_ask_ == 0;
    until_ask_ = asks ? looks_ / 16 : until_ask_ - 1;
    looks_ = std::min(looks_ + 1, 16 * longest - 1);
    return asks;
  }
  bool is_quick() const { return looks_ <= quick; }

  // ---- The wait between looks -------------------------------------------------------------------

  bool waits() const { return waiter_.has_value(); }
  void begin_wait(For others) {
    waiter_.emplace(waiting_, nullptr, cost_);
    others_ = others;
    costs_much_ = false;
    steps_ = 0;
  }
  // The worker has found something.
  void end_wait() { waiter_.reset(); }

  // So many steps come before the next look, as long as they are polls.
  std::uint32_t steps_to_look() const { return is_quick() ? 1 : steps_between_looks; }
  void step() {
    (void)waiter_->step().ok();  // there is no idle hook that could fail
    // Seldom, since it asks a clock.
    if (others_ == For::processes && (++steps_ % between_costs_ == 0 || !waiter_->polls()))
      costs_much_ = cost_.is_high(Cost::Clock::now());
  }
  // The next step is a poll.
  bool polls() const { return waiter_->polls() && !costs_much_; }
  bool wants_sleep() const { return waiter_->wants_sleep() || costs_much_; }

  // ---- Sleep ------------------------------------------------------------------------------------

  // It goes to sleep, until its signals are not `signals` any more. True: for a nap.
  bool sleeps(std::uint64_t signals) {
    signals_ = signals;
    napped_ = sleeps_ >= sleeps_in_vain && !napped_;
    return napped_;
  }
  // It is up: its next look asks. The signals say whether another worker has woken it, as it may
  // have slept for a time only.
  void wakes(std::uint64_t signals) {
    until_ask_ = 0;
    if (signals != signals_) sleeps_ = std::min(sleeps_ + 1, sleeps_in_vain);
  }

  // ---- Tasks ------------------------------------------------------------------------------------

  // It has a task. True: it measures how long that takes.
  bool measures() {
    if (!is_quick()) return true;
    begin_anew();
    return false;
  }
  // That has ended.
  void worked(Duration took) {
    if (took >= short_task) begin_anew();
  }

 private:
  void begin_anew() {
    looks_ = until_ask_ = 0;
    sleeps_ = 0;
    napped_ = false;
  }

  const machine::WaitPolicy& waiting_;
  Cost& cost_;
  // Looks and sleeps that were in vain, as far as they count.
  std::uint32_t looks_ = 0;
  std::uint32_t sleeps_ = 0;
  std::uint32_t until_ask_ = 0;  // looks
  std::uint64_t signals_ = 0;    // before the last sleep
  bool napped_ = false;          // that was a nap

  // These are of one wait.
  std::optional<machine::Waiter> waiter_;
  For others_ = For::workers;
  bool costs_much_ = false;
  std::uint32_t steps_ = 0;
  std::uint32_t between_costs_;  // steps between two looks at the cost
};

}  // namespace tombolo::svp
