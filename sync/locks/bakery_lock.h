// SPDX-License-Identifier: Apache-2.0
// Purpose: locks for machines without atomics, upon Lamport's bakery (machine/emulation/bakery.h,
// CACM 17:8, 1974): only loads, stores and fences of sync words.
//
//   BakeryMutexes   mutual exclusion, one for each home, first come first served
//   BakeryLocks     readers-writer locks with lock-all: the counters of best_effort_lock.h, changed
//                   inside a bakery and thus by loads and stores
//
// A machine without atomics also runs every other lock, since it builds its atomics from a bakery;
// these are for code that must not pay for emulation where it is not needed, and to compare.
//
// Accesses without contention, n cores: mutex 3 stores + 3n loads, 1 store; shared one mutex pair
// on the target; exclusive two (on home 0 and on the target). Memory: 2n words at each home and
// lock. That is the price: mutual exclusion of n cores by loads and stores needs n words (Burns and
// Lynch, 1993).
//
// Invariants: BL1 the counts are changed and compared only inside the bakery of their home, so they
//                 are exact: there are no attempts to withdraw.
//             BL2 an exclusive lock and a lock-all exclude each other by the counts at home 0, as
//                 in best_effort_lock.h: both look and count in one critical section.
//             BL3 a core that waits holds nothing that it did not hold before the call, and backs
//                 off. Not fair, therefore, although the bakery is: the lock is not the critical
//                 section.
// No fences here: the bakery has them. Its counts are read after its number was seen (R3).
// Thread safety: one call at a time per object.
#pragma once

#include "machine/contract.h"
#include "machine/emulation/bakery.h"
#include "sync/locks/backoff.h"
#include "sync/locks/lock_kind.h"
#include "sync/lone_word.h"

namespace tombolo::sync {

template <machine::Core C>
class BakeryMutexes {
 public:
  using Home = machine::Home;
  struct Layout {
    machine::Offset words = 0;
  };
  static Layout take(machine::SyncLayout& layout, Home cores) {
    return {.words = layout.take_lines(machine::Bakery<Words>::bytes(cores) / 8)};
  }

  BakeryMutexes(C& core, Layout layout)
      : words_(core), idle_(core), bakery_(words_, layout.words, waiting_, &idle_) {}
  // The bakery refers to the other members.
  BakeryMutexes(const BakeryMutexes&) = delete;
  BakeryMutexes& operator=(const BakeryMutexes&) = delete;

  // After an error the lock is not held, and every further acquire fails in the same way.
  Status acquire(Home target) {
    bakery_.acquire(target);
    if (bakery_.error().ok()) [[likely]]
      return {};
    bakery_.release(target);
    return bakery_.error();
  }
  void release(Home target) { bakery_.release(target); }

 private:
  // The operations that the bakery needs of a core; its words see no atomics.
  class Words {
   public:
    explicit Words(C& core) : core_(core) {}
    Home self() const { return core_.self(); }
    Home cores() const { return core_.cores(); }
    typename C::Word word(machine::SyncPlace place) { return core_.word(place); }
    std::uint64_t load(typename C::Word word) { return core_.load(word); }
    void store(typename C::Word word, std::uint64_t v) { store_lone(core_, word, v); }
    void fence() { core_.fence(); }

   private:
    C& core_;
  };
  // Lets the machine's own idle hook run while the bakery waits.
  class Idle : public machine::IdleHook {
   public:
    explicit Idle(C& core) : core_(core) {}
    Status idle() override { return core_.pause(pause_ns); }

   private:
    static constexpr std::uint64_t pause_ns = 5000;
    C& core_;
  };

  machine::WaitPolicy waiting_{.polls = 20};
  Words words_;
  Idle idle_;
  machine::Bakery<Words> bakery_;
};

template <machine::Core C>
class BakeryLocks {
 public:
  using Word = typename C::Word;
  using Home = machine::Home;
  struct Layout {
    typename BakeryMutexes<C>::Layout mutexes;
    machine::Offset counts =
        0;  // exclusive cores and lock-alls (home 0), then holders of the target
  };
  static Layout take(machine::SyncLayout& layout, Home cores) {
    return {.mutexes = BakeryMutexes<C>::take(layout, cores), .counts = layout.take_lines(3)};
  }

  BakeryLocks(C& core, Layout layout, const LockOptions& options)
      : core_(core), layout_(layout), mutexes_(core, layout.mutexes), backoff_(core, options) {}

  Status lock(Access access, Home target) {
    backoff_.reset();
    for (bool entered = false;;) {
      TOMBOLO_TRY(access == Access::shared ? try_shared(target, entered)
                                           : try_exclusive(target, entered));
      if (entered) return {};
      TOMBOLO_TRY(backoff_.pause());
    }
  }

  void unlock(Access access, Home target) {
    const bool exclusive = access == Access::exclusive;
    change(target, holders(target), exclusive ? ~exclusive_lock + 1 : ~std::uint64_t{0});
    if (exclusive && --exclusive_held_ == 0) change(0, exclusives(), ~std::uint64_t{0});
  }

  Status lock_all() {
    backoff_.reset();
    for (bool entered = false;;) {
      TOMBOLO_TRY(count_if(0, exclusives(), 0, lock_alls(), 1, entered));
      if (entered) return {};
      TOMBOLO_TRY(backoff_.pause());
    }
  }
  void unlock_all() { change(0, lock_alls(), ~std::uint64_t{0}); }

 private:
  static constexpr std::uint64_t exclusive_lock = std::uint64_t{1} << 32;

  Word exclusives() { return core_.word({0, layout_.counts}); }
  Word lock_alls() { return core_.word({0, layout_.counts + 8}); }
  Word holders(Home target) { return core_.word({target, layout_.counts + 16}); }

  Status try_shared(Home target, bool& entered) {
    return count_if(target, holders(target), exclusive_lock - 1, holders(target), 1, entered);
  }

  Status try_exclusive(Home target, bool& entered) {
    const bool first = exclusive_held_ == 0;
    if (first) {
      TOMBOLO_TRY(count_if(0, lock_alls(), 0, exclusives(), 1, entered));
      if (!entered) return {};
    }
    Status status = count_if(target, holders(target), 0, holders(target), exclusive_lock, entered);
    if (entered) ++exclusive_held_;
    if (!entered && first && status.ok()) change(0, exclusives(), ~std::uint64_t{0});
    return status;
  }

  // Adds `v` to `word` if `guard` is at most `limit`, in the bakery of `home`.
  Status count_if(Home home, Word guard, std::uint64_t limit, Word word, std::uint64_t v,
                  bool& entered) {
    entered = false;
    TOMBOLO_TRY(mutexes_.acquire(home));
    if (core_.load(guard) <= limit) {
      store_lone(core_, word, core_.load(word) + v);
      entered = true;
    }
    mutexes_.release(home);
    return {};
  }

  // An error here means that the window's cores are lost; the next lock reports it.
  void change(Home home, Word word, std::uint64_t v) {
    if (!mutexes_.acquire(home).ok()) return;
    store_lone(core_, word, core_.load(word) + v);
    mutexes_.release(home);
  }

  C& core_;
  Layout layout_;
  BakeryMutexes<C> mutexes_;
  Backoff<C> backoff_;
  std::uint32_t exclusive_held_ = 0;
};

struct BakeryFamily {
  template <machine::Core C>
  using Locks = BakeryLocks<C>;
  static constexpr LockFamilyTraits traits{
      .name = "bakery", .in_windows = false, .threads = false, .atomics = false};
};

}  // namespace tombolo::sync
