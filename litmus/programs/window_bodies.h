// SPDX-License-Identifier: Apache-2.0
// Purpose: the bodies of the programs over the engine. Process 1 has the data, and the
// others reach for them; process 0 alone where one is enough.
// Thread safety: plain functions.
#pragma once

#include "litmus/programs/window_program.h"

namespace tombolo::litmus {

// lock, get, put, unlock by both: the engine's own reading and writing (EN4).
template <class C>
void locks_and_puts(WindowProcess<C>& p) {
  p.must(p.window().lock(Access::exclusive, 1, {}));
  p.count_up([&] { return p.get(1, datum); }, [&](auto v) { p.put(1, datum, v); });
  p.must(p.window().unlock(1));
}

// The same, where the owner loads and stores (EN5).
template <class C>
void locks_and_stores(WindowProcess<C>& p) {
  const bool owner = p.self() == 1;
  p.must(p.window().lock(Access::exclusive, 1, {}));
  p.count_up([&] { return owner ? p.load(1, datum) : p.get(1, datum); },
             [&](auto v) { owner ? p.store(1, datum, v) : p.put(1, datum, v); });
  p.must(p.window().unlock(1));
}

// A put and a store of the owner under lock_all, which both may hold at once. One of them has used
// it before: its first use takes many steps, which programs over the locks alone explore.
template <class C>
void lock_alls(WindowProcess<C>& p) {
  if (p.self() == 0) {
    p.must(p.window().lock_all({}));
    p.must(p.window().unlock_all());
  }
  p.must(p.window().barrier());
  p.must(p.window().lock_all({}));
  if (p.self() == 1) p.store(1, other_line, 9);
  if (p.self() == 0) p.put(1, datum, 7);
  p.must(p.window().unlock_all());
  p.must(p.window().barrier());
  p.must(p.window().lock(Access::shared, 1, {}));
  if (p.self() == 0) p.expect("the owner's store", p.get(1, other_line), 9);
  if (p.self() == 1) p.expect("the put", p.load(1, datum), 7);
  p.must(p.window().unlock(1));
}

// A put under lock_all, which the owner's lock finds done or not begun.
template <class C>
void lock_all_and_lock(WindowProcess<C>& p) {
  if (p.self() != 1) {
    p.must(p.window().lock_all({}));
    if (p.self() == 0) {
      p.put(1, datum, 1);
      p.complete();
    }
    p.must(p.window().unlock_all());
  } else {
    p.must(p.window().lock(Access::exclusive, 1, {}));
    p.expect("the number of puts", p.load(1, datum), p.completed());
    p.must(p.window().unlock(1));
  }
}

// A put and a store of the owner before a fence; both are seen after it.
template <class C>
void fences(WindowProcess<C>& p) {
  p.must(p.window().fence({.no_precede = true}));
  if (p.self() == 0) p.put(1, datum, 7);
  if (p.self() == 1) p.store(1, other_line, 9);
  p.must(p.window().fence({}));
  if (p.self() == 0) p.expect("the owner's store", p.get(1, other_line), 9);
  if (p.self() == 1) p.expect("the put", p.load(1, datum), 7);
  p.must(p.window().fence({.no_succeed = true}));
}

// Two epochs in which the others get the owner's store and put.
template <class C>
void posts(WindowProcess<C>& p) {
  const std::vector<Home> owner{1};
  for (const std::uint64_t epoch : {1u, 2u}) {
    if (p.self() == 1) {
      p.store(1, other_line, 10 + epoch);
      p.must(p.window().post(p.others(), {}));
      p.must(p.window().wait());
      p.expect("the put", p.load(1, datum), epoch);
    } else {
      p.must(p.window().start(owner, {}));
      p.expect("the owner's store", p.get(1, other_line), 10 + epoch);
      p.put(1, datum, epoch);
      p.must(p.window().complete());
    }
  }
}

// Each process draws a number from a counter of process 1, at once.
template <class C>
void accumulates(WindowProcess<C>& p) {
  p.must(p.window().lock(Access::shared, 1, {}));
  p.draw(p.fetch(1, datum, Op::sum, 1));
  p.must(p.window().unlock(1));
  p.must(p.window().barrier());
  p.must(p.window().lock(Access::shared, 1, {}));
  p.expect("the counter", p.self() == 1 ? p.load(1, datum) : p.get(1, datum), p.processes());
  p.must(p.window().unlock(1));
}

// The same in turn, since the owner has stored beside the counter just before it draws.
template <class C>
void accumulates_and_stores(WindowProcess<C>& p) {
  p.must(p.window().lock(Access::exclusive, 1, {}));
  if (p.self() == 1) p.store(1, beside_datum, 9);
  p.draw(p.fetch(1, datum, Op::sum, 1));
  p.must(p.window().unlock(1));
  p.must(p.window().barrier());
  p.must(p.window().lock(Access::shared, 1, {}));
  p.expect("the counter", p.get(1, datum), p.processes());
  p.expect("the store beside it", p.get(1, beside_datum), 9);
  p.must(p.window().unlock(1));
}

// Shared memory: both store to process 1's region by themselves, under its lock.
template <class C>
void shared_stores(WindowProcess<C>& p) {
  p.must(p.window().lock(Access::exclusive, 1, {}));
  p.count_up([&] { return p.load(1, datum); }, [&](auto v) { p.store(1, datum, v); });
  p.must(p.window().unlock(1));
}

// The promises of a fence speak of the own region only: a store to a peer's is published, and one
// of a peer's is seen.
template <class C>
void shared_promises(WindowProcess<C>& p) {
  p.must(p.window().fence({.no_put = true}));
  if (p.self() == 0) p.store(1, datum, 7);
  p.must(p.window().fence({.no_store = true, .no_put = true}));
  if (p.self() == 1) p.expect("the peer's store", p.load(1, datum), 7);
}

// A flag that is put after a flush: a process that sees it gets the first put, and loads it after
// sync.
template <class C>
void flush_and_flag(WindowProcess<C>& p) {
  p.must(p.window().lock(Access::shared, 1, {}));
  if (p.self() == 0) {
    p.put(1, datum, 7);
    p.must(p.window().flush(1));
    p.put(1, other_line, 1);
  } else {
    while (p.get(1, other_line) == 0) p.pause();
    p.expect("the flushed put by get", p.get(1, datum), 7);
    p.must(p.window().sync());
    p.expect("the flushed put by load", p.load(1, datum), 7);
  }
  p.must(p.window().unlock(1));
}

// Two flushed puts, the second of which finds the owner told, unless the owner has synchronized
// between them; and a flag as above. The owner loads the second one once it sees the flag.
template <class C>
void flushes_and_flag(WindowProcess<C>& p) {
  p.must(p.window().lock(Access::shared, 1, {}));
  if (p.self() == 0) {
    p.put(1, datum, 6);
    p.must(p.window().flush(1));
    p.put(1, datum, 7);
    p.must(p.window().flush(1));
    p.put(1, other_line, 1);
  } else {
    p.must(p.window().sync());
    while (p.get(1, other_line) == 0) p.pause();
    p.must(p.window().sync());
    p.expect("the second flushed put", p.load(1, datum), 7);
  }
  p.must(p.window().unlock(1));
}

// The flag is put in an epoch after that of the put; neither lock needs a check.
template <class C>
void unlock_and_flag(WindowProcess<C>& p) {
  if (p.self() == 0) {
    p.must(p.window().lock(Access::shared, 1, {.no_check = true}));
    p.put(1, datum, 7);
    p.must(p.window().unlock(1));
    p.must(p.window().lock(Access::shared, 1, {.no_check = true}));
    p.put(1, other_line, 1);
  } else {
    p.must(p.window().lock(Access::shared, 1, {}));
    while (p.get(1, other_line) == 0) p.pause();
    p.must(p.window().sync());
    p.expect("the put before", p.load(1, datum), 7);
  }
  p.must(p.window().unlock(1));
}

}  // namespace tombolo::litmus
