// SPDX-License-Identifier: Apache-2.0
// Purpose: the bodies of the programs on virtual shared memory. Where it is not said otherwise,
// thread 0 and thread 1 act, and others take part in barriers.
// Thread safety: plain functions.
#pragma once

#include "litmus/programs/memory_program.h"

namespace tombolo::litmus {

// Rule 2: a number under a lock, counted up by all threads.
template <class Thread>
void counted_under_a_lock(MemoryThread<Thread>& t, int times, bool recorded) {
  for (int i = 0; i < times; ++i) {
    t.begin(0);
    t.count_up(on_first, recorded);
    t.end(0);
  }
}

// The same, and a store to the other page in each span.
template <class Thread>
void two_pages_under_a_lock(MemoryThread<Thread>& t) {
  t.load(on_second);
  t.begin(0);
  t.expect("the other number", t.load(on_second), t.completed());
  t.store(on_second, t.completed() + 1);
  t.count_up(on_first, true);
  t.end(0);
}

// Rule 1: a store before a span is seen by spans that begin after it, here of the same lock, and
// nothing is lost of the reader's own store beside it.
template <class Thread>
void stored_before_a_span(MemoryThread<Thread>& t) {
  if (t.self() == 0) {
    t.store(on_first, 1);
    t.begin(0);
    t.store(on_second, 1);
    t.end(0);
  } else if (t.self() == 1) {
    t.store(beside_first, 2);
    t.begin(0);
    const std::uint64_t told = t.load(on_second);
    t.end(0);
    if (told == 1) t.expect("the store before the span", t.load(on_first), 1);
    t.expect("its own store", t.load(beside_first), 2);
  }
}

// Rule 1 twice: the page is stored to again after it has gone home.
template <class Thread>
void stored_before_two_spans(MemoryThread<Thread>& t) {
  if (t.self() == 0) {
    t.store(on_first, 1);
    t.begin(0);
    t.end(0);
    t.store(on_first, 2);
  }
  t.begin(0);
  if (t.self() == 0) t.store(on_second, 1);
  const std::uint64_t told = t.load(on_second);
  t.end(0);
  if (told == 1) t.expect("the later store", t.load(on_first), 2);
}

// Rule 1 with two locks: the span of thread 1 begins after the one of thread 0 has begun.
template <class Thread>
void stored_before_another_lock(MemoryThread<Thread>& t) {
  if (t.self() == 0) {
    t.store(on_first, 1);
    t.begin(0);
    t.reach(1);
    t.end(0);
  } else if (t.self() == 1) {
    t.load(on_first);
    t.store(beside_first, 2);
    t.await(0, 1);
    t.begin(1);
    t.expect("the store before the other span", t.load(on_first), 1);
    t.expect("its own store", t.load(beside_first), 2);
    t.end(1);
  }
}

// Spans that tell all: each thread changes one number of a page under a lock of its own, both at
// once; each sees both after that, whichever lock it takes.
template <class Thread>
void told_to_all(MemoryThread<Thread>& t) {
  const auto other = static_cast<dsm::Thread>(1 - t.self());
  const auto of = [](dsm::Thread thread) { return thread == 0 ? on_first : beside_first; };
  t.load(on_first);
  t.begin(t.self());
  t.store(of(t.self()), 1);
  t.end(t.self());
  t.reach(1);
  t.await(other, 1);
  t.begin(t.self());
  t.expect("its own number", t.load(of(t.self())), 1);
  t.expect("the other number", t.load(of(other)), 1);
  t.end(t.self());
}

// Likewise, a number that is changed before an inner span and between two of them.
template <class Thread>
void told_in_inner_spans(MemoryThread<Thread>& t) {
  t.load(on_first);
  if (t.self() == 0) {
    t.begin(0);
    for (const std::uint64_t value : {1, 2}) {
      t.store(on_first, value);
      t.begin(1);
      t.expect("its own number", t.load(on_first), value);
      t.end(1);
    }
    t.end(0);
    t.reach(1);
    return;
  }
  t.begin(2);
  t.store(beside_first, 3);
  t.end(2);
  t.await(0, 1);
  t.begin(2);
  t.expect("the other number", t.load(on_first), 2);
  t.expect("its own number", t.load(beside_first), 3);
  t.end(2);
}

// Rule 3 with a page that both change, then with pages that one changes alone, then read.
template <class Thread>
void changed_by_several(MemoryThread<Thread>& t) {
  if (t.self() == 0) t.store(on_first, 1);
  if (t.self() == 1) t.store(beside_first, 2);
  t.barrier();
  t.expect("the store of thread 0", t.load(on_first), 1);
  t.expect("the store of thread 1", t.load(beside_first), 2);
}

// Rule 3 for two of the threads: stores of both, in a span and outside of one.
template <class Thread>
void met_by_two(MemoryThread<Thread>& t) {
  t.load(on_first);
  t.load(on_second);
  if (t.self() == 0) {
    t.begin(0);
    t.store(on_first, 1);
    t.end(0);
    t.store(on_second, 2);
  } else {
    t.store(beside_second, 3);
  }
  t.meet(1 - t.self(), 1);
  t.expect("the store in a span", t.load(on_first), 1);
  t.expect("the store outside of spans", t.load(on_second), 2);
  t.expect("the store of thread 1", t.load(beside_second), 3);
}

// The same with a page that thread 0 keeps, and thread 1 has a copy of.
template <class Thread>
void kept_and_met(MemoryThread<Thread>& t) {
  if (t.self() == 0) t.store(on_first, 1);
  t.barrier();
  if (t.self() == 0)
    t.store(on_first, 2);
  else
    t.load(on_first);
  t.meet(1 - t.self(), 1);
  t.expect("the later store", t.load(on_first), 2);
}

// A page that thread 0 keeps over two barriers, while all others read after each.
template <class Thread>
void kept_by_one(MemoryThread<Thread>& t) {
  if (t.self() == 0) t.store(on_first, 1);
  t.barrier();
  if (t.self() == 0) {
    t.store(beside_first, 2);
    t.expect("its own store", t.load(on_first), 1);
  } else {
    t.expect("the store before the first barrier", t.load(on_first), 1);
  }
  t.barrier();
  t.expect("the store before the second barrier", t.load(beside_first), 2);
}

// A page that thread 0 keeps while both store to it, and then meet.
template <class Thread>
void kept_and_changed(MemoryThread<Thread>& t) {
  if (t.self() == 0) t.store(on_first, 1);
  t.barrier();
  if (t.self() == 0) t.store(on_first, 2);
  if (t.self() == 1) t.store(beside_first, 3);
  t.barrier();
  t.expect("the later store of thread 0", t.load(on_first), 2);
  t.expect("the store of thread 1", t.load(beside_first), 3);
}

// A page that thread 0 keeps and changes, when it begins a span.
template <class Thread>
void kept_and_sent(MemoryThread<Thread>& t) {
  if (t.self() == 0) t.store(on_first, 1);
  t.barrier();
  if (t.self() == 0) {
    t.store(beside_first, 2);
    t.begin(0);
    t.count_up(on_second, true);
    t.end(0);
  } else if (t.self() == 1) {
    t.expect("the store before the barrier", t.load(on_first), 1);
    t.begin(0);
    const std::uint64_t before = t.completed();
    t.count_up(on_second, true);
    t.end(0);
    if (before == 1) t.expect("the store before the span", t.load(beside_first), 2);
  }
}

// A page that thread 0 keeps, and that thread 1 changes alone, then thread 0 again.
template <class Thread>
void kept_and_taken_over(MemoryThread<Thread>& t) {
  if (t.self() == 0) t.store(on_first, 1);
  t.barrier();
  if (t.self() == 1) t.store(beside_first, 2);
  t.barrier();
  t.expect("the store of thread 0", t.load(on_first), 1);
  if (t.self() == 0) t.store(on_first, 3);
  t.barrier();
  t.in_turn(1, [&] {
    t.expect("the store of thread 1", t.load(beside_first), 2);
    t.expect("the later store of thread 0", t.load(on_first), 3);
  });
}

// Rule 1 with two locks, and a page that thread 0 keeps: thread 1 may get it before the store.
template <class Thread>
void kept_before_another_lock(MemoryThread<Thread>& t) {
  if (t.self() == 0) t.store(on_first, 1);
  t.barrier();
  if (t.self() == 0) {
    t.store(beside_first, 2);
    t.begin(0);
    t.reach(1);
    t.end(0);
  } else if (t.self() == 1) {
    t.expect("the store before the barrier", t.load(on_first), 1);
    t.await(0, 1);
    t.begin(1);
    t.expect("the store before the other span", t.load(beside_first), 2);
    t.end(1);
  }
}

// A page that thread 0 changes twice outside of spans, and keeps from then on; thread 1 may get it
// before, between and after, and sees the last store when it has heard of it.
template <class Thread>
void kept_by_its_stores(MemoryThread<Thread>& t) {
  if (t.self() == 0) {
    for (const std::uint64_t value : {1, 2}) {
      t.store(on_first, value);
      t.memory().tell();
    }
    t.store(beside_first, 3);
    t.memory().tell();
    t.reach(1);
  } else {
    t.load(on_first);
    t.await(0, 1);
    t.memory().learn();
    t.expect("the store before thread 0 keeps the page", t.load(on_first), 2);
    t.expect("the store after that", t.load(beside_first), 3);
  }
}

// Both change a page twice, and each would keep it.
template <class Thread>
void kept_by_stores_of_two(MemoryThread<Thread>& t) {
  const Variable own = t.self() == 0 ? on_first : beside_first;
  for (const std::uint64_t value : {1, 2}) {
    t.store(own, value);
    t.memory().tell();
  }
  t.meet(1 - t.self(), 1);
  t.expect("the stores of thread 0", t.load(on_first), 2);
  t.expect("the stores of thread 1", t.load(beside_first), 2);
}

// Both change a page, each more than a notice holds, and go on when the other one has handed over
// the same lock behind its stores.
template <class Thread>
void handed_over(MemoryThread<Thread>& t) {
  constexpr Variable last_on_first = 6;
  const Variable own = t.self() == 0 ? Variable{on_first} : last_on_first - 2;
  t.store(own, 1);
  t.store(own + 2, 2);
  t.memory().hand_over(0);
  t.reach(1);
  t.await(1 - t.self(), 1);
  t.memory().hand_over(0);
  t.expect("the first store of thread 0", t.load(on_first), 1);
  t.expect("the second store of thread 0", t.load(beside_first), 2);
  t.expect("the first store of thread 1", t.load(last_on_first - 2), 1);
  t.expect("the second store of thread 1", t.load(last_on_first), 2);
}

// Thread 0 clears its part of a page while thread 1 begins to keep the page.
template <class Thread>
void kept_once_cleared(MemoryThread<Thread>& t) {
  if (t.self() == 0) {
    t.store(beside_first, 0);
    t.memory().tell();
  } else {
    for (const std::uint64_t value : {1, 2, 3}) {
      t.store(on_first, value);
      t.memory().tell();
    }
  }
  t.meet(1 - t.self(), 1);
  t.expect("the stores of thread 1", t.load(on_first), 3);
  t.expect("the part that is cleared", t.load(beside_first), 0);
}

// The same while a third thread gets the page, which may be before, between and after; it sees all
// stores when it has heard of them.
template <class Thread>
void kept_once_cleared_and_got(MemoryThread<Thread>& t) {
  if (t.self() == 2) {
    t.load(on_first);
    t.await(0, 1);
    t.await(1, 1);
    t.memory().learn();
    t.expect("the stores of thread 1", t.load(on_first), 2);
    t.expect("the part that is cleared", t.load(beside_first), 0);
    return;
  }
  if (t.self() == 0) {
    t.store(beside_first, 0);
    t.memory().tell();
  } else {
    for (const std::uint64_t value : {1, 2}) {
      t.store(on_first, value);
      t.memory().tell();
    }
  }
  t.reach(1);
}

// The same while a third thread gets the page: its home may be differences instead (DPF4).
template <class Thread>
void kept_by_stores_and_got(MemoryThread<Thread>& t) {
  if (t.self() == 1) {
    t.store(beside_first, 1);
    t.memory().tell();
    t.reach(1);
    t.await(0, 1);
    t.store(beside_first, 5);
    t.memory().tell();
  } else if (t.self() == 0) {
    t.await(1, 1);
    for (const std::uint64_t value : {1, 2}) {
      t.store(on_first, value);
      t.memory().tell();
    }
    t.reach(1);
  } else {
    t.await(1, 1);
    const std::uint64_t seen = t.load(beside_first);
    if (seen != 5) t.expect("the first store of thread 1", seen, 1);
  }
}

// Three pages are stored to in order, the last of which thread 0 keeps before it stores to it;
// thread 1 sends a store beside home, before a span, and both meet.
inline constexpr Variable last_in_order = 2;
inline constexpr Variable beside_last = 5;
template <class Thread>
void stored_in_order(MemoryThread<Thread>& t) {
  if (t.self() == 0) {
    for (const Variable v : {0, 1, 2}) t.store(v, 7);
  } else {
    t.store(beside_last, 8);
    t.begin(0);
    t.end(0);
  }
  t.barrier();
  t.in_turn(1, [&] {
    t.expect("the store of thread 0", t.load(last_in_order), 7);
    t.expect("the store of thread 1", t.load(beside_last), 8);
  });
}

// The same before spans of both.
template <class Thread>
void stored_in_order_before_a_span(MemoryThread<Thread>& t) {
  if (t.self() == 0) {
    for (const Variable v : {0, 1, 2}) t.store(v, 7);
    t.begin(0);
    t.reach(1);
    t.end(0);
  } else {
    t.store(beside_last, 8);
    t.await(0, 1);
    t.begin(0);
    t.expect("the store before the other span", t.load(last_in_order), 7);
    t.expect("its own store", t.load(beside_last), 8);
    t.end(0);
  }
}

// A page that thread 0 keeps, and gives up while the others read it.
template <class Thread>
void kept_and_given_back(MemoryThread<Thread>& t) {
  if (t.self() == 0) t.store(on_first, 1);
  t.barrier();
  if (t.self() == 0) {
    t.store(beside_first, 2);
    t.memory().evict(0);
  } else {
    t.expect("the store before the first barrier", t.load(on_first), 1);
  }
  t.barrier();
  t.expect("the store before the first barrier", t.load(on_first), 1);
  t.expect("the store before the second barrier", t.load(beside_first), 2);
}

// A page that thread 0 keeps, and that both change in spans; thread 1 may have a copy from before.
template <class Thread>
void kept_and_stored_in_a_span(MemoryThread<Thread>& t) {
  if (t.self() == 0) t.store(beside_first, 1);
  t.barrier();
  if (t.self() == 1) t.expect("the store before the barrier", t.load(beside_first), 1);
  t.begin(0);
  t.count_up(on_first, t.self() == 0);
  t.end(0);
  t.barrier();
  t.in_turn(1, [&] {
    t.expect("the number of sections", t.load(on_first), 2);
    t.expect("the store before the first barrier", t.load(beside_first), 1);
  });
}

// Stores in spans are seen after a barrier by a thread that never held the lock.
template <class Thread>
void span_then_barrier(MemoryThread<Thread>& t, bool recorded) {
  t.load(on_first);
  if (t.self() == 0) {
    t.begin(0);
    t.memory().store(on_first, 1, recorded);
    t.end(0);
  }
  t.barrier();
  t.expect("the store of the span", t.load(on_first), 1);
}

// A store in two nested spans belongs to both locks.
template <class Thread>
void nested_spans(MemoryThread<Thread>& t) {
  if (t.self() == 0) {
    t.begin(0);
    t.store(on_first, 1);
    t.begin(1);
    t.store(beside_first, 2);
    t.end(1);
    t.end(0);
  } else if (t.self() == 1) {
    t.load(on_first);
    t.begin(1);
    const std::uint64_t inner = t.load(beside_first);
    t.end(1);
    t.begin(0);
    const std::uint64_t outer = t.load(on_first);
    if (inner == 2 || outer == 1) {
      t.expect("the store of the outer span", outer, 1);
      t.expect("the store of both spans", t.load(beside_first), 2);
    }
    t.end(0);
  }
}

// A reduction orders nothing but its numbers.
template <class Thread>
void reduced(MemoryThread<Thread>& t) {
  const std::uint64_t n = t.memory().shape().threads;
  t.expect("the sum", t.memory().sum(t.self() + 1), n * (n + 1) / 2);
  t.expect("the next sum", t.memory().sum(1), n);
}

// Sequential consistency: each thread stores to one page and loads from the other.
template <class Thread>
void store_buffering(MemoryThread<Thread>& t) {
  if (t.self() < 2) {
    const Variable own = t.self() == 0 ? on_first : on_second;
    const Variable other = t.self() == 0 ? on_second : on_first;
    t.load(other);
    t.store(own, 1);
    t.saw(t.load(other));
  }
  t.memory().close();
}

// Sequential consistency: a flag and a datum by plain stores and loads.
template <class Thread>
void message_passing(MemoryThread<Thread>& t) {
  if (t.self() == 0) {
    t.store(on_first, 7);
    t.store(on_second, 1);
  } else if (t.self() == 1) {
    t.load(on_first);
    if (t.load(on_second) == 1) t.expect("the datum behind the flag", t.load(on_first), 7);
  }
  t.memory().close();
}

// Sequential consistency: instructions that store to both pages at once, and miss them in opposite
// orders.
template <class Thread>
void stored_to_both(MemoryThread<Thread>& t) {
  const Variable one = t.self() == 0 ? on_first : on_second;
  const Variable other = t.self() == 0 ? on_second : on_first;
  if (!t.memory().store_both(one, other, t.self() + 1))
    t.fail("a page is gone before the instruction that needs both");
  t.memory().close();
}

// Sequential consistency: the same beside stores to one page after the other.
template <class Thread>
void stored_to_both_and_each(MemoryThread<Thread>& t) {
  if (t.self() == 0) {
    if (!t.memory().store_both(on_first, on_second, 1))
      t.fail("a page is gone before the instruction that needs both");
    t.await(1, 1);
  } else {
    t.store(on_second, 2);
    t.store(on_first, 2);
    t.reach(1);
  }
  t.memory().close();
}

// Sequential consistency: a thread whose page another has read stores to it again.
template <class Thread>
void written_after_a_read(MemoryThread<Thread>& t) {
  if (t.self() == 0) {
    t.store(on_first, 1);
    t.await(1, 1);
    t.store(on_first, 2);
    t.reach(2);
  } else if (t.self() == 1) {
    t.load(on_first);
    t.reach(1);
    t.await(0, 2);
    t.expect("the second store", t.load(on_first), 2);
  }
  t.memory().close();
}

}  // namespace tombolo::litmus
