// SPDX-License-Identifier: Apache-2.0
// Purpose: the protocol of a write-once channel with blocking reads (002 chapter 3), without its
// value: the core that ends it, the readers that wait for that, and a listener told of both.
//
// Invariants: WON1 the state is claimed by one core, which then ends it: with a value, or without.
//             WON2 a reader is listed before the end, which then delivers to it, or finds the end:
//                 both are under one lock.
//             WON3 a listed reader leaves the list once: the core that ends the channel takes it
//                 out and delivers to it, or the reader, stopped, takes itself out. No other core
//                 accesses the words of a reader that has left; one that has not taken itself
//                 out stays until it has its delivery.
//             WON4 the listener is told under the same lock: not any more after ignore().
// Memory: a sync word each for the state, the newest reader that waits, and the listener; one for
// each reader. 0 at first.
// Data: the core that has claimed writes the value and publishes it before end() (R4); a reader
// refreshes after has_value() or settled() is true (R5).
// Thread safety: plain functions. `deliver` and `changed` are called under the lock: they use no
// channel.
#pragma once

#include "machine/contract.h"

namespace tombolo::svp {

// `link`: the word of a reader, by its number. `await`: until a word may have another value.
// `changed`: tells the listener of this number, if it is not 0.
template <machine::Core C>
struct WriteOnce {
  using Word = typename C::Word;
  using Number = std::uint64_t;  // of a reader or listener; 0: none
  static constexpr std::uint64_t claimed = 1;
  static constexpr std::uint64_t has = 2;
  static constexpr std::uint64_t closed = 4;
  static constexpr std::uint64_t locked = 8;

  struct Words {
    Word state;
    Word waiting;
    Word listener;
  };

  static bool has_value(C& core, const Words& at) { return (core.load(at.state) & has) != 0; }
  // There is a value, or none will come.
  static bool settled(C& core, const Words& at) {
    return (core.load(at.state) & (has | closed)) != 0;
  }

  // The caller is to end the channel. False: another one is, or has. WON1.
  static bool claim(C& core, const Words& at) {
    for (std::uint64_t state = core.load(at.state); (state & claimed) == 0;) {
      const std::uint64_t before = core.compare_exchange(at.state, state, state | claimed);
      if (before == state) return true;
      state = before;
    }
    return false;
  }
  // By the core that has claimed; `how`: has or closed.
  template <class Link, class Await, class Deliver, class Changed>
  static void end(C& core, const Words& at, std::uint64_t how, Link&& link, Await&& await,
                  Deliver&& deliver, Changed&& changed) {
    lock(core, at, await);
    end_locked(core, at, how, link, deliver, changed);
    unlock(core, at);
  }

  // No value will come, unless one has been claimed.
  template <class Link, class Await, class Deliver, class Changed>
  static void close(C& core, const Words& at, Link&& link, Await&& await, Deliver&& deliver,
                    Changed&& changed) {
    if (claim(core, at)) end(core, at, closed, link, await, deliver, changed);
  }

  // False: the channel has ended, there is nothing to wait for.
  template <class Link, class Await, class Changed>
  static bool list(C& core, const Words& at, Number reader, Link&& link, Await&& await,
                   Changed&& changed) {
    lock(core, at, await);
    const bool open = !settled(core, at);
    if (open) {
      core.store(link(reader), core.load(at.waiting));
      core.store(at.waiting, reader);
      changed(core.load(at.listener));
    }
    unlock(core, at);
    return open;
  }
  // By a listed reader that was stopped. False: it has its delivery, or is about to have it.
  template <class Link, class Await>
  static bool unlist(C& core, const Words& at, Number reader, Link&& link, Await&& await) {
    lock(core, at, await);
    const bool found = take_out(core, at, reader, link);
    unlock(core, at);
    return found;
  }

  // False: there is a listener.
  template <class Await>
  static bool listen(C& core, const Words& at, Number listener, Await&& await) {
    lock(core, at, await);
    const bool first = core.load(at.listener) == 0;
    if (first) core.store(at.listener, listener);
    unlock(core, at);
    return first;
  }
  template <class Await>
  static void ignore(C& core, const Words& at, Await&& await) {
    lock(core, at, await);
    core.store(at.listener, 0);
    unlock(core, at);
  }
  // A reader waits.
  static bool awaited(C& core, const Words& at) { return core.load(at.waiting) != 0; }

 protected:  // for broken twins
  template <class Await>
  static void lock(C& core, const Words& at, Await& await) {
    for (std::uint64_t state = core.load(at.state);;) {
      if ((state & locked) != 0) {
        await(at.state);
        state = core.load(at.state);
        continue;
      }
      const std::uint64_t before = core.compare_exchange(at.state, state, state | locked);
      if (before == state) return;
      state = before;
    }
  }
  static void unlock(C& core, const Words& at) { core.fetch_add(at.state, ~locked + 1); }

  template <class Link, class Deliver, class Changed>
  static void end_locked(C& core, const Words& at, std::uint64_t how, Link& link, Deliver& deliver,
                         Changed& changed) {
    Number reader = core.load(at.waiting);
    core.store(at.waiting, 0);
    core.fetch_add(at.state, how);
    while (reader != 0) {
      const Number next = core.load(link(reader));
      deliver(reader);  // WON3: its word is another's now
      reader = next;
    }
    changed(core.load(at.listener));
  }
  template <class Link>
  static bool take_out(C& core, const Words& at, Number reader, Link& link) {
    Word before = at.waiting;
    Number listed = core.load(before);
    while (listed != 0 && listed != reader) {
      before = link(listed);
      listed = core.load(before);
    }
    if (listed == 0) return false;
    core.store(before, core.load(link(reader)));
    return true;
  }
};

}  // namespace tombolo::svp
