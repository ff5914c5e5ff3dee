// SPDX-License-Identifier: Apache-2.0
// Purpose: items that any core hands to one core, which takes all of them at once (the stack of
// Treiber, IBM RJ 5118, whose only pop empties it: so no item can come back unseen).
//
// Invariants: INB1 an item is in the inbox once, from put() until take() has it; its word is the
//                 inbox's meanwhile.
// Memory: a sync word for the inbox, 0 at first, and one for each item.
// Data: a core publishes before put() (R4), the taker refreshes after take() (R5).
// Thread safety: plain functions; take() by one core.
#pragma once

#include "machine/contract.h"

namespace tombolo::svp {

// `link`: the word of an item, by its number.
template <machine::Core C>
struct Inbox {
  using Word = typename C::Word;
  using Number = std::uint64_t;  // 0: none

  // The taker may sleep: the caller wakes it.
  static void put(C& core, Word inbox, Number item, Word link) {
    for (Number first = core.load(inbox);;) {
      core.store(link, first);
      const Number before = core.compare_exchange(inbox, first, item);
      if (before == first) return;
      first = before;
    }
  }
  // All items, linked in the order in which they came: the first one; 0: there is none.
  template <class Link>
  static Number take(C& core, Word inbox, Link&& link) {
    if (core.load(inbox) == 0) return 0;  // an exchange for each look costs
    Number first = 0;
    for (Number last = core.exchange(inbox, 0); last != 0;) {
      const Number before = core.load(link(last));
      core.store(link(last), first);
      first = last;
      last = before;
    }
    return first;
  }
};

}  // namespace tombolo::svp
