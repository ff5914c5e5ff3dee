// SPDX-License-Identifier: Apache-2.0
// Purpose: threads of families that no worker runs, but a scheduler outside of this run-time, on
// one thread of the system: simulated cores of a chip run them so. Where such a thread blocks in a
// channel, passes a checkpoint or breaks its family, that scheduler is called.
//
//   class Cores final : public ExternalThreads { ... };
//   const ExternalThreads::Entered entered(cores);  // of this thread of the system, for the scope
//
// Invariants: SRR1 a thread of the system has entered one such scheduler at most, and is no worker.
// Thread safety: the thread of the system that has entered.
#pragma once

#include <cstdint>
#include <utility>

namespace tombolo::svp {

struct Blocked;

class ExternalThreads {
 public:
  // As long as this lives, this thread of the system is in them.
  class Entered {
   public:
    explicit Entered(ExternalThreads& threads)
        : before_(std::exchange(ExternalThreads::here_, &threads)) {}
    ~Entered() { ExternalThreads::here_ = before_; }
    Entered(const Entered&) = delete;
    Entered& operator=(const Entered&) = delete;

   private:
    ExternalThreads* before_;
  };

  // Blocks the running thread until the event has been delivered. False: its family was stopped
  // before.
  virtual bool block(const Blocked& blocked) = 0;
  // The running thread's family, or one above it, was stopped. Other threads may run meanwhile.
  virtual bool stopped() = 0;
  // Ends the running thread, by Stopped, and its family with this value.
  [[noreturn]] virtual void break_with(std::int64_t value) = 0;

  // Null: workers run this thread's families.
  static ExternalThreads* here() { return here_; }

 protected:
  ~ExternalThreads() = default;

 private:
  static inline thread_local ExternalThreads* here_ = nullptr;
};

}  // namespace tombolo::svp
