// SPDX-License-Identifier: Apache-2.0
// Purpose: a reduction of some of the threads, over words of the program (003 table 5.2: a variable
// of a reduction, to which each of its threads gives a value, and all get the combination).
//
// Per reduction: three atomics, and loads of the words of all that take part.
//
// Invariants: DPR1 the values are combined in the order of their threads, whatever the order in
//                  which they came.
//             DPR2 a place is stored to again when all of the round before have left: those that
//                  are late still find their round's values.
// Thread safety: one thread for each object; the words are all threads'.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "dsm/threads/program_memory.h"

namespace tombolo::dsm {

class PartialReduction {
 public:
  static constexpr WordIndex words_needed(Thread threads) { return 3 + 2 * WordIndex{threads}; }

  // Words from `first` on are the reduction's, zero at first; `threads`: as many, of whichever
  // number, take part in each round.
  PartialReduction(ProgramMemory& memory, WordIndex first, Thread threads)
      : memory_(memory), first_(first), threads_(threads) {}

  // combine(...combine(v0, v1)..., vn).
  template <class Combine>
  Status reduce(std::uint64_t& value, Combine&& combine) {
    const std::uint64_t arrival = memory_.fetch_add(arrived(), 1);
    const std::uint64_t round = arrival / threads_;
    TOMBOLO_TRY(wait_for(left(), round * threads_));  // DPR2
    const WordIndex place = place_of(arrival % threads_);
    memory_.store(place, memory_.self());
    memory_.store(place + 1, value);
    memory_.fetch_add(given(), 1);
    TOMBOLO_TRY(wait_for(given(), (round + 1) * threads_));
    value = combined(combine);
    memory_.fetch_add(left(), 1);
    return {};
  }

 private:
  WordIndex arrived() const { return first_; }
  WordIndex given() const { return first_ + 1; }
  WordIndex left() const { return first_ + 2; }
  WordIndex place_of(std::uint64_t i) const { return first_ + 3 + 2 * i; }

  Status wait_for(WordIndex count, std::uint64_t least) {
    while (memory_.load(count) < least) TOMBOLO_TRY(memory_.pause());
    memory_.paused_enough();
    return {};
  }

  template <class Combine>
  std::uint64_t combined(Combine&& combine) {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> all;
    for (Thread i = 0; i < threads_; ++i)
      all.emplace_back(memory_.load(place_of(i)), memory_.load(place_of(i) + 1));
    std::ranges::sort(all);  // DPR1
    std::uint64_t value = all.front().second;
    for (Thread i = 1; i < threads_; ++i) value = combine(value, all[i].second);
    return value;
  }

  ProgramMemory& memory_;
  WordIndex first_;
  Thread threads_;
};

}  // namespace tombolo::dsm
