// SPDX-License-Identifier: Apache-2.0
// Purpose: the start of a program in several processes, which goes on in all of them or in none:
// a step that fails anywhere ends all, after one message. end_all() is that end for all kinds of
// programs.
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

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/status.h"
#include "dsm/transport/mpi/end_together.h"
#include "runtime/collective/exchange.h"

namespace tombolo::dsm {

// "tombolo: ", on standard error, without stdio: the program has not begun.
void tell_cause(std::string_view cause);

// All processes of the exchange call it after a step that has failed at some of them. `knows`: the
// process's own part has failed, by this cause. `job`: that of a host MPI; null: there is none.
template <runtime::Exchange X>
[[noreturn]] void end_all(X& exchange, OneSided* job, bool knows, std::string_view cause) {
  const char mine = knows ? 1 : 0;
  std::vector<char> all(static_cast<std::size_t>(exchange.size()), 0);
  const bool asked = exchange.gather(&mine, all.data(), sizeof mine).ok();
  const auto first = std::ranges::find(all, 1) - all.begin();
  if (!asked || first == exchange.rank()) tell_cause(cause);   // AGR1
  (void)exchange.gather(&mine, all.data(), sizeof mine).ok();  // AGR2
  if (job != nullptr) end_together(*job);                      // AGR3
  _exit(EXIT_FAILURE);
}

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
  [[noreturn]] void end(const Status& mine) const;

  OneSided* job_;
};

}  // namespace tombolo::dsm
