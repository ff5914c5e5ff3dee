// SPDX-License-Identifier: Apache-2.0
// Purpose: the start of a program in several processes, which goes on in all of them or in none:
// a step that fails anywhere ends all, after one message.
//
//   const Agreement all(job);            // null: this process alone
//   all.step(lay_out(layout));           // returns where the step went well in all processes
//   all.take_from_first(layout);
//
// Invariants: AGR1 of several causes the first process's that has one is told.
//             AGR2 no process leaves before the cause is told: the launcher ends all once one has.
//             AGR3 the job is finished: a host MPI that is not leaves its memory behind.
// Thread safety: one thread at a time.
#pragma once

#include <string>
#include <type_traits>

#include "base/status.h"
#include "dsm/transport/mpi/one_sided.h"

namespace tombolo::dsm {

class Agreement {
 public:
  explicit Agreement(OneSided* job) : job_(job) {}

  // By all processes, each for its own part.
  void step(const Status& mine) const;

  // The first process's value. By all.
  template <class T>
  void take_from_first(T& value) const {
    static_assert(std::is_trivially_copyable_v<T>);
    if (job_ != nullptr) step(job_->broadcast(&value, sizeof value, 0));
  }
  void take_from_first(std::string& text) const;

 private:
  [[noreturn]] void end_all(const Status& mine) const;

  OneSided* job_;
};

}  // namespace tombolo::dsm
