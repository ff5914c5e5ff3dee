// SPDX-License-Identifier: Apache-2.0
// Purpose: threads of families that no worker runs, in surroundings that have threads of their own
// on one thread of the system, as the simulated cores of a chip have. A thread that blocks in a
// channel, passes a checkpoint or breaks its family does so as they say.
//
//   class Cores final : public Surroundings { ... };
//   const Surroundings::Entered entered(cores);  // of this thread of the system, for the scope
//
// Invariants: SRR1 a thread of the system is in one of them at most, and is no worker.
// Thread safety: the thread of the system that has entered.
#pragma once

#include <cstdint>
#include <utility>

namespace tombolo::svp {

struct Blocked;

class Surroundings {
 public:
  // As long as this lives, this thread of the system is in them.
  class Entered {
   public:
    explicit Entered(Surroundings& surroundings)
        : before_(std::exchange(Surroundings::here_, &surroundings)) {}
    ~Entered() { Surroundings::here_ = before_; }
    Entered(const Entered&) = delete;
    Entered& operator=(const Entered&) = delete;

   private:
    Surroundings* before_;
  };

  // Blocks the running thread until the event has been delivered. False: its family was stopped
  // before.
  virtual bool block(const Blocked& blocked) = 0;
  // The running thread's family, or one above it, was stopped. Other threads may run meanwhile.
  virtual bool stopped() = 0;
  // Ends the running thread, by Stopped, and its family with this value.
  [[noreturn]] virtual void break_with(std::int64_t value) = 0;

  // Null: workers run this thread's families.
  static Surroundings* here() { return here_; }

 protected:
  ~Surroundings() = default;

 private:
  static inline thread_local Surroundings* here_ = nullptr;
};

}  // namespace tombolo::svp
