// SPDX-License-Identifier: Apache-2.0
// Purpose: the completion counter (000 sections 3.4.4, 3.4.9): a word at the home of the target by
// which origins say that their access epochs have ended.
//
// Where the thesis sets the counter to the number of origins and lets them count down to zero, ours
// counts up for ever and the target remembers (in private memory) the sum to wait for. That saves
// the target a write to a line that an origin's cache holds as well, and a reset that would have to
// be ordered before the post.
//
// Invariants: CR1 the word is the number of completions since the start; `expected_` the number of
//                 origins of all posts. An origin completes only the epochs that the target posted
//                 to it, so the word never exceeds `expected_` and equality means that all have
//                 completed.
// Memory: one line at each home.
// Data: complete is an atomic, ordered after the origin's drain or publish (R4); a refresh by the
// target after it saw the sum is as new (R5). Hence no drain, publish or fence here.
// Thread safety: one call at a time per object.
#pragma once

#include "machine/contract.h"

namespace tombolo::sync {

template <machine::Core C>
class CompletionCounter {
 public:
  using Home = machine::Home;
  struct Layout {
    machine::Offset word = 0;
  };
  static Layout take(machine::SyncLayout& layout, Home /*cores*/) {
    return {.word = layout.take_lines(1)};
  }

  CompletionCounter(C& core, Layout layout)
      : core_(core), layout_(layout), own_(core.word({core.self(), layout.word})) {}

  // At the target: `origins` more completions will come.
  void expect(std::uint64_t origins) { expected_ += origins; }
  // At the origin: tells `target` that the epoch has ended.
  void complete(Home target) {
    core_.fetch_add(core_.word({target, layout_.word}), 1);
    core_.notify(target);
  }
  // At the target: true if all completions have come.
  bool reached() { return core_.load(own_) == expected_; }
  Status wait() {
    return core_.wait_until(own_, [want = expected_](std::uint64_t v) { return v == want; });
  }

 private:
  C& core_;
  Layout layout_;
  typename C::Word own_;
  std::uint64_t expected_ = 0;
};

}  // namespace tombolo::sync
