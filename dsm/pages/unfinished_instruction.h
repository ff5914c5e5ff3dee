// SPDX-License-Identifier: Apache-2.0
// Purpose: the instruction of the program that has missed last, with the pages that it has missed:
// it runs when all of them are there at once. Other threads may want them before that.
//
//   miss()            another thread has taken one of several pages meanwhile: bring all together
//   may_run_next()    all are there perhaps, and it has not run yet: nothing is to be taken
//
// An instruction in a loop, which runs again and again, cannot be told from one that has not run.
// So may_run_next() is true for some time alone, long enough to go on from a signal handler.
//
// Invariants: DUI1 accesses() are to different pages, in the order of their last misses: those of
//                  an instruction and, where it has run meanwhile, of its run before.
// Thread safety: one thread, and its signal handlers, which do not interrupt miss() and brought().
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <span>

#include "dsm/protocol/consistency.h"

namespace tombolo::dsm {

class UnfinishedInstruction {
 public:
  using Clock = std::chrono::steady_clock;
  // A load and a store over two pages each.
  static constexpr std::size_t most_pages = 4;
  static constexpr std::chrono::microseconds time_to_run{50};

  // The instruction at this address misses the page. True if it has missed several, and this one
  // before.
  bool miss(std::uint64_t instruction, const Access& access) {
    if (instruction != instruction_) count_ = 0;
    instruction_ = instruction;
    Access* const end = accesses_.data() + count_;
    Access* const known =
        std::find_if(accesses_.data(), end, [&](const Access& a) { return a.page == access.page; });
    if (known != end) {
      known->write = known->write || access.write;
      std::rotate(known, known + 1, end);
      return count_ > 1;
    }
    if (count_ == most_pages)
      std::rotate(accesses_.begin(), accesses_.begin() + 1, accesses_.end());
    else
      ++count_;
    accesses_[count_ - 1] = access;
    return false;
  }
  std::span<const Access> accesses() const { return std::span(accesses_).first(count_); }

  // The page of the last miss is there.
  void brought(Clock::time_point now) { brought_ = now; }
  bool may_run_next(std::uint64_t instruction, Clock::time_point now) const {
    return instruction == instruction_ && count_ != 0 && now - brought_ < time_to_run;
  }

 private:
  std::uint64_t instruction_ = 0;
  std::array<Access, most_pages> accesses_{};
  std::size_t count_ = 0;
  Clock::time_point brought_{};
};

}  // namespace tombolo::dsm
