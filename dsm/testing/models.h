// SPDX-License-Identifier: Apache-2.0
// Purpose: models of consistency by their rules alone, as lazy as these allow: which stores have to
// be performed with respect to a thread by now. They know no pages, no protocol and no caches, and
// judge those that do.
//
//   Knowledge known(Model::regional, threads, variables, locks);
//   known.store(0, x); known.acquire(0, lock); known.acquire(1, other);
//   known.performed(1, x);    // 1: the first store to x, so an older value may not be loaded
//
//   sequential     each store at once
//   release        at a release, the stores of its thread before it, to all (RC, eager)
//   lazy_release   at an acquire, all that the last releaser of the lock knew then (LRC)
//   scope          at an acquire, the stores of earlier spans of the lock (ScC)
//   regional       that, and at an acquire the stores that any thread made outside of spans before
//                  a span that began earlier (003 section 3.2, rules 1 and 2)
//
// A barrier performs all earlier stores, in every model.
//
// Invariants: DMO1 events are told in the order in which they happened: a span begins when its lock
//                  is taken, and is told of as release when that is given back.
//             DMO2 the stores to one variable are ordered by synchronization of the program: their
//                  number is their order. A judge of racing stores would have to know more.
// Thread safety: plain values.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <string_view>
#include <vector>

#include "dsm/protocol/shape.h"

namespace tombolo::dsm::testing {

enum class Model : std::uint8_t { sequential, regional, release, lazy_release, scope };
inline constexpr std::array models{Model::sequential, Model::regional, Model::release,
                                   Model::lazy_release, Model::scope};

constexpr std::string_view name_of(Model model) {
  constexpr std::array<std::string_view, models.size()> names{"SC", "RegC", "RC", "LRC", "ScC"};
  return names[static_cast<std::size_t>(model)];
}

class Knowledge {
 public:
  // Of each variable: how many of its stores.
  using Counts = std::vector<std::uint64_t>;

  Knowledge(Model model, Thread threads, std::uint64_t variables, Lock locks)
      : model_(model),
        stored_(variables, 0),
        outside_(variables, 0),
        performed_(threads, Counts(variables, 0)),
        own_(threads, Counts(variables, 0)),
        own_outside_(threads, Counts(variables, 0)),
        of_lock_(locks, Counts(variables, 0)),
        in_span_(locks, Counts(variables, 0)),
        held_(threads) {}

  void store(Thread thread, std::uint64_t variable) {
    const std::uint64_t number = ++stored_[variable];
    performed_[thread][variable] = number;
    own_[thread][variable] = number;
    if (held_[thread].empty()) own_outside_[thread][variable] = number;
    for (const Lock lock : held_[thread]) in_span_[lock][variable] = number;
    if (model_ == Model::sequential)
      for (Counts& counts : performed_) counts[variable] = number;
  }

  void acquire(Thread thread, Lock lock) {
    if (model_ == Model::regional) {
      join(outside_, own_outside_[thread]);
      join(performed_[thread], outside_);
    }
    if (model_ != Model::release && model_ != Model::sequential)
      join(performed_[thread], of_lock_[lock]);
    held_[thread].insert(lock);
  }

  void release(Thread thread, Lock lock) {
    held_[thread].erase(lock);
    if (model_ == Model::release)
      for (Counts& counts : performed_) join(counts, own_[thread]);
    join(of_lock_[lock], model_ == Model::lazy_release ? performed_[thread] : in_span_[lock]);
  }

  // `before`: of each variable, the stores before the barrier. Told of each thread that leaves it:
  // others may have stored since.
  void leave_barrier(Thread thread, const Counts& before) { join(performed_[thread], before); }
  const Counts& stored() const { return stored_; }

  // The number of the store to `variable` that this thread has to see, or a later one.
  std::uint64_t performed(Thread thread, std::uint64_t variable) const {
    return performed_[thread][variable];
  }

 private:
  static void join(Counts& counts, const Counts& more) {
    std::ranges::transform(counts, more, counts.begin(),
                           [](auto a, auto b) { return std::max(a, b); });
  }

  Model model_;
  Counts stored_;
  Counts outside_;  // of spans, before some span
  std::vector<Counts> performed_;
  std::vector<Counts> own_;
  std::vector<Counts> own_outside_;
  std::vector<Counts> of_lock_;  // of the ended spans of each
  std::vector<Counts> in_span_;
  std::vector<std::set<Lock>> held_;
};

}  // namespace tombolo::dsm::testing
