// SPDX-License-Identifier: Apache-2.0
// Purpose: post/start/complete/wait by a match vector and a completion counter, trigger-only: the
// start is bookkeeping of the caller, an origin waits for a target's post when it first
// communicates with it or, at the latest, at complete (000 sections 3.4.3 to 3.4.9, figure 3.14).
//
//   target   post(origins) ................................. wait() or test()
//   origin              await_post(target) put ... complete(targets)
//
// For one origin and one target, a cycle is two atomics on remote words and two waits on own words.
//
// Invariants: AC1 an origin signals completion only to a target whose post it has seen, so that the
//                 target's counter expects it.
//             AC2 every target that has posted is told as soon as complete is called, whatever the
//                 order of `targets`: a late target delays no other.
// With `matched` false (MPI_MODE_NOCHECK on both sides: the program itself ensures that the post
// came first) the match vector is left alone; both sides of an epoch must agree.
// Memory: a line and n bits at each home; 3n bits and the largest group private.
// Data: the caller publishes before post and drains before complete, and refreshes after await_post
// and wait; see the two parts for why nothing more is needed.
// Thread safety: one call at a time per object.
#pragma once

#include <span>
#include <vector>

#include "machine/contract.h"
#include "sync/epochs/completion_counter.h"
#include "sync/epochs/match_vector.h"

namespace tombolo::sync {

template <machine::Core C>
class ActiveTarget {
 public:
  using Home = machine::Home;
  struct Layout {
    typename MatchVector<C>::Layout match;
    typename CompletionCounter<C>::Layout counter;
  };
  static Layout take(machine::SyncLayout& layout, Home cores) {
    return {.match = MatchVector<C>::take(layout, cores),
            .counter = CompletionCounter<C>::take(layout, cores)};
  }

  ActiveTarget(C& core, Layout layout)
      : match_(core, layout.match), counter_(core, layout.counter) {}

  // Target: opens an exposure epoch for `origins` (each once).
  void post(std::span<const Home> origins, bool matched = true) {
    counter_.expect(origins.size());
    if (!matched) return;
    for (const Home origin : origins) match_.post(origin);
  }
  // Target: true if every origin of the last post has completed.
  bool test() { return counter_.reached(); }
  Status wait() { return counter_.wait(); }

  // Origin: true if `target` has posted.
  bool posted(Home target) { return match_.posted(target); }
  Status await_post(Home target) { return match_.await(target); }

  // Origin: ends the access epoch with `targets` (each once). After an error some were told.
  Status complete(std::span<const Home> targets, bool matched = true) {
    late_.clear();
    for (const Home target : targets) {
      if (!matched)
        counter_.complete(target);
      else if (match_.posted(target))
        finish(target);
      else
        late_.push_back(target);
    }
    for (const Home target : late_) {
      TOMBOLO_TRY(match_.await(target));
      finish(target);
    }
    return {};
  }

 private:
  void finish(Home target) {
    match_.consume(target);
    counter_.complete(target);
  }

  MatchVector<C> match_;
  CompletionCounter<C> counter_;
  std::vector<Home> late_;  // kept for its capacity
};

}  // namespace tombolo::sync
