// SPDX-License-Identifier: Apache-2.0
// Purpose: fetch_add, exchange and compare_exchange for a machine that lacks them, built from its
// loads and stores inside a lock, one lock for the words of each home.
//
//   class Core : public LockedAtomics<Base, Lock> ...   // see atomics_by_bakery.h
//
// Base: a core of contract.h without the three operations, with a copyable Word.
// Lock: Lock(base, first_byte, waiting, idle), acquire(home), release(home), error(),
//       static bytes(cores): its share of the sync block, behind Base's own.
//
// Invariants: LK1 every store takes the lock of the word's home too. A store that came between the
//                 load and the store of an emulated operation would be lost; algorithms do mix them
//                 on one word. Loads need no lock: a word always holds the value before or after.
//             LK2 an operation is in memory when the lock is released, and the lock is released
//                 when the operation returns: program order (R3) and R4 hold as for Base's stores.
//             LK3 an error met inside a lock is returned by the next wait_until or pause.
// Cost: a store costs as much as an atomic operation. A word that never sees an atomic operation
// need not pay: store_alone().
// Thread safety: as Base.
#pragma once

#include <cstdint>
#include <utility>

#include "base/rounding.h"
#include "base/status.h"
#include "machine/contract.h"
#include "machine/place.h"

namespace tombolo::machine {

template <class Base, template <class> class Lock>
class LockedAtomics : public Base {
 public:
  struct Word {
    typename Base::Word inner;
    Home home;  // whose lock covers it
  };

  static std::size_t reserved_sync_bytes(Home cores) {
    return lock_offset(cores) + round_up(Lock<Base>::bytes(cores), line);
  }

  explicit LockedAtomics(const AttachmentOf<Base>& attachment)
      : Base(attachment),
        waiting_(attachment.waiting),
        lock_(*this, lock_offset(attachment.cores), waiting_, attachment.idle) {}
  // The lock refers to this object.
  LockedAtomics(const LockedAtomics&) = delete;
  LockedAtomics& operator=(const LockedAtomics&) = delete;

  Word word(SyncPlace place) { return {Base::word(place), place.home}; }
  std::uint64_t load(Word word) { return Base::load(word.inner); }
  void store(Word word, std::uint64_t v) {
    lock_.acquire(word.home);  // LK1
    Base::store(word.inner, v);
    lock_.release(word.home);
  }
  // A store to a word that no core ever changes by an atomic operation. One that does is lost.
  void store_alone(Word word, std::uint64_t v) { Base::store(word.inner, v); }

  std::uint64_t fetch_add(Word word, std::uint64_t v) {
    return change(word, [&](std::uint64_t old) { return old + v; });
  }
  std::uint64_t exchange(Word word, std::uint64_t v) {
    return change(word, [&](std::uint64_t) { return v; });
  }
  std::uint64_t compare_exchange(Word word, std::uint64_t expected, std::uint64_t desired) {
    return change(word, [&](std::uint64_t old) { return old == expected ? desired : old; });
  }

  template <class Predicate>
  Status wait_until(Word word, Predicate&& predicate) {
    TOMBOLO_TRY(lock_.error());  // LK3
    return Base::wait_until(word.inner, std::forward<Predicate>(predicate));
  }
  Status pause(std::uint64_t ns) {
    TOMBOLO_TRY(lock_.error());  // LK3
    return Base::pause(ns);
  }

 private:
  static constexpr std::size_t line = 64;
  static Offset lock_offset(Home cores) { return round_up(Base::reserved_sync_bytes(cores), line); }

  template <class Operation>
  std::uint64_t change(Word word, Operation&& operation) {
    lock_.acquire(word.home);
    const std::uint64_t old = Base::load(word.inner);
    Base::store(word.inner, operation(old));
    lock_.release(word.home);
    Base::fence();  // an atomic operation keeps later loads from overtaking it (R3)
    return old;
  }

  WaitPolicy waiting_;
  Lock<Base> lock_;
};

}  // namespace tombolo::machine
