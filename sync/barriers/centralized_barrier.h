// SPDX-License-Identifier: Apache-2.0
// Purpose: the centralized counter barrier (Mellor-Crummey and Scott, TOCS 1991, algorithm 7), for
// comparison: all cores add to one word at home 0, the last one releases the others through
// another.
//
// Per core and barrier: one atomic and any number of polls, all at home 0: it stops scaling as the
// centralized window database does (000 section 3.4.5). Memory: two lines at home 0.
//
// Invariants: CE1 arrivals are never reset: barrier k is complete when n * k cores have arrived. No
//                 core arrives for barrier k + 1 before barrier k is complete, so the counts of two
//                 barriers do not mix.
//             CE2 the release word grows by one per barrier and is stored by its last core only, so
//                 a core that waits for k may also see k + 1.
// The polls are of another home's word, hence pause and not wait_until (R6).
// Thread safety: one call at a time per object.
#pragma once

#include "machine/contract.h"
#include "sync/locks/backoff.h"
#include "sync/lone_word.h"

namespace tombolo::sync {

template <machine::Core C>
class CentralizedBarrier {
 public:
  struct Layout {
    machine::Offset arrivals = 0;
    machine::Offset release = 0;
  };
  static Layout take(machine::SyncLayout& layout, machine::Home /*cores*/) {
    return {.arrivals = layout.take_lines(1), .release = layout.take_lines(1)};
  }

  CentralizedBarrier(C& core, Layout layout)
      : core_(core),
        arrivals_(core.word({0, layout.arrivals})),
        release_(core.word({0, layout.release})),
        backoff_(core, {.backoff_first_ns = 100, .backoff_max_ns = 50'000}) {}

  Status arrive_and_wait() {
    ++number_;
    if (core_.fetch_add(arrivals_, 1) + 1 == number_ * core_.cores()) {
      store_lone(core_, release_, number_);
      return {};
    }
    backoff_.reset();
    while (core_.load(release_) < number_) TOMBOLO_TRY(backoff_.pause());
    return {};
  }

 private:
  C& core_;
  typename C::Word arrivals_;
  typename C::Word release_;
  Backoff<C> backoff_;
  std::uint64_t number_ = 0;
};

}  // namespace tombolo::sync
