// SPDX-License-Identifier: Apache-2.0
// Purpose: lets a test act in the middle of a call: a machine on which a thread stops at the start
// of an operation and runs the test's function just then.
//
//   run<Interruptible<stale::Core>>({.options = {.threads = true}}, [](Process& p) {
//     const Interruption interruption(Operation::refresh, [&] { ... other threads go on ... });
//     p.sync();
//   });
//
// Invariants: IN1 the core is untouched while it is interrupted: no operation has begun on it, and
//                 other threads may use it.
// Thread safety: an Interruption concerns the thread that made it, and no other.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <utility>

#include "machine/testing/forwarding.h"

namespace tombolo::windows::testing {

using machine::DataPlace;

enum class Operation { write_through, refresh };

// Runs `act` at the first such operation of this thread; the test fails if there is none in the
// scope of the interruption.
class Interruption {
 public:
  Interruption(Operation operation, std::function<void()> act)
      : operation_(operation), act_(std::move(act)) {
    current_ = this;
  }
  ~Interruption() {
    current_ = nullptr;
    EXPECT_FALSE(act_) << "the operation to be interrupted was not called";
  }
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  static void reached(Operation operation) {
    if (current_ == nullptr || current_->operation_ != operation || !current_->act_) return;
    std::exchange(current_->act_, nullptr)();
  }

 private:
  static inline thread_local Interruption* current_ = nullptr;

  Operation operation_;
  std::function<void()> act_;
};

// C: one of MachinesThatLose.
template <machine::Core C>
class Interruptible : public machine::testing::Forwarding<C> {
  using Base = machine::testing::Forwarding<C>;

 public:
  using Base::Base;

  Status write_through(DataPlace place, const void* in, std::size_t bytes) {
    Interruption::reached(Operation::write_through);
    return Base::write_through(place, in, bytes);
  }
  void refresh(DataPlace place, std::size_t bytes) {
    Interruption::reached(Operation::refresh);
    Base::refresh(place, bytes);
  }
};

}  // namespace tombolo::windows::testing
