// SPDX-License-Identifier: Apache-2.0
// Purpose: best-effort readers-writer locks with lock-all, after Gerstenberger, Besta and Hoefler
// (GBH): 001 section 4.2, figure 3; SC'13, section 2.3.
//
//   global word, at home 0   exclusive holders and attempts (cores) | lock-alls | two flags
//   word of each target      bit 63: exclusive; below: shared holders and attempts
//
//   shared       add 1 to the target; if bit 63 was set, subtract it and try later
//   exclusive    add 1 to the exclusive half of the global word; if there are lock-alls, subtract
//                it and try later; change the target from 0 to bit 63; if it was not 0, undo all
//                and try later. A core that holds an exclusive lock is registered already.
//   lock-all     add 1 to the lock-all half of the global word; if there are exclusive locks,
//                subtract it and try later
//
// Accesses without contention: shared 1 + 1, exclusive 2 + 1 (of which one a load) until the first
// lock-all of the window and 2 + 2 after it (sync/locks/first_lock_all.h), lock-all 1 + 1. Not
// fair: every core may be overtaken without bound. Memory: 2 lines per home.
//
// Invariants: BT1 the exclusive bit is set only by a compare_exchange from 0: no shared lock is
//                 held then, and a shared attempt that comes later sees the bit and withdraws.
//             BT2 attempts are in the counts as well, so a count may be too high for a moment,
//                 never too low; unlock therefore subtracts. (The paper's "sets the local counter
//                 to zero" would lose the attempts.)
//             BT3 a lock-all is held only if the exclusive half was 0 when it registered, and an
//                 exclusive lock only if the lock-all half was 0 when it did, or by FA1 of
//                 first_lock_all.h: one of the two atomics on the global word comes first, and the
//                 other sees it.
//             BT4 a core that waits holds nothing that it did not hold before the call, so lock-all
//                 adds no deadlock, and an error leaves nothing behind.
//             BT5 the object's counts and flags change together with the words, under `state_`, and
//                 never across a pause. So threads of one core need nothing else (callers.h).
// Thread safety: as LockOptions::threads says.
#pragma once

#include <atomic>
#include <mutex>

#include "machine/contract.h"
#include "sync/locks/backoff.h"
#include "sync/locks/callers.h"
#include "sync/locks/first_lock_all.h"
#include "sync/locks/lock_kind.h"

namespace tombolo::sync {

template <machine::Core C>
class BestEffortLocks {
 public:
  using Word = typename C::Word;
  using Home = machine::Home;

  struct Layout {
    machine::Offset global = 0;  // used at home 0 only
    machine::Offset target = 0;
  };
  static Layout take(machine::SyncLayout& layout, Home /*cores*/) {
    return {.global = layout.take_lines(1), .target = layout.take_lines(1)};
  }

  BestEffortLocks(C& core, Layout layout, const LockOptions& options)
      : core_(core),
        layout_(layout),
        global_(core.word({0, layout.global})),
        state_(options.threads),
        options_(options) {}

  [[gnu::hot]] Status lock(Access access, Home target) {
    const Word word = target_word(target);
    if (access == Access::exclusive) return lock_exclusive(word);
    if ((core_.fetch_add(word, 1) & exclusive_bit) == 0) [[likely]]
      return {};
    return retry_shared(word);
  }

  [[gnu::hot]] void unlock(Access access, Home target) {
    const Word word = target_word(target);
    if (access == Access::shared) {
      core_.fetch_add(word, minus(1));
      return;
    }
    core_.fetch_add(word, minus(exclusive_bit));
    const std::lock_guard guard(state_);
    --exclusive_held_;
    deregister();
  }

  [[gnu::hot]] Status lock_all() {
    constexpr std::uint64_t in_the_way = exclusives | lock_all_settled;
    if ((core_.fetch_add(global_, one_lock_all) & in_the_way) == lock_all_settled) [[likely]]
      return {};
    core_.fetch_add(global_, minus(one_lock_all));
    Backoff<C> backoff = new_wait();
    TOMBOLO_TRY(settle_lock_all(core_, global_, backoff, [&](Home home) {
      return (core_.load(target_word(home)) & exclusive_bit) != 0;
    }));
    backoff.reset();
    while ((core_.fetch_add(global_, one_lock_all) & exclusives) != 0) {
      core_.fetch_add(global_, minus(one_lock_all));
      TOMBOLO_TRY(backoff.pause());
    }
    return {};
  }
  [[gnu::hot]] void unlock_all() { core_.fetch_add(global_, minus(one_lock_all)); }

 private:
  static constexpr std::uint64_t exclusive_bit = std::uint64_t{1} << 63;
  static constexpr std::uint64_t exclusives = 0x7fffffff;  // bits 0 to 30: registered cores
  static constexpr std::uint64_t one_lock_all = std::uint64_t{1} << 31;
  static constexpr std::uint64_t lock_alls = exclusives << 31;  // bits 31 to 61
  static constexpr std::uint64_t minus(std::uint64_t v) { return ~v + 1; }

  Word target_word(Home target) { return core_.word({target, layout_.target}); }

  // relaxed: only the numbers matter, which keep the waits of one core apart.
  Backoff<C> new_wait() {
    return {core_, options_, waits_.fetch_add(1, std::memory_order_relaxed)};
  }

  Status retry_shared(Word word) {
    Backoff<C> backoff = new_wait();
    do {
      core_.fetch_add(word, minus(1));
      TOMBOLO_TRY(backoff.pause());
    } while ((core_.fetch_add(word, 1) & exclusive_bit) != 0);
    return {};
  }

  Status lock_exclusive(Word word) {
    if (enter_exclusive(word)) [[likely]]
      return {};
    Backoff<C> backoff = new_wait();
    do TOMBOLO_TRY(backoff.pause());
    while (!enter_exclusive(word));
    return {};
  }

  bool enter_exclusive(Word word) {
    const std::lock_guard guard(state_);
    if (!try_exclusive(word)) return false;
    ++exclusive_held_;
    return true;
  }

  // On failure everything is as before the call (BT4).
  bool try_exclusive(Word word) {
    if (register_first_ && !register_exclusive()) return false;
    if (core_.compare_exchange(word, 0, exclusive_bit) != 0) {
      deregister();
      return false;
    }
    if (register_first_ || (core_.load(global_) & lock_all_used) == 0) [[likely]]
      return true;
    register_first_ = true;
    core_.fetch_add(word, minus(exclusive_bit));
    return try_exclusive(word);
  }

  bool register_exclusive() {
    if (registered_) return true;
    if ((core_.fetch_add(global_, 1) & lock_alls) != 0) {
      core_.fetch_add(global_, minus(1));
      return false;
    }
    registered_ = true;
    return true;
  }

  void deregister() {
    if (!registered_ || exclusive_held_ != 0) return;
    core_.fetch_add(global_, minus(1));
    registered_ = false;
  }

  // The members that a free lock takes come first, on few lines of the cache.
  C& core_;
  Layout layout_;
  Word global_;
  std::uint32_t exclusive_held_ = 0;
  bool registered_ = false;      // this core is counted in the exclusive half
  bool register_first_ = false;  // this core knows that the window uses lock-all
  StateMutex state_;
  std::atomic<std::uint64_t> waits_{0};
  LockOptions options_;
};

struct BestEffortFamily {
  template <machine::Core C>
  using Locks = BestEffortLocks<C>;
  static constexpr LockFamilyTraits traits{.name = "best-effort", .reader_bias = true};
};

}  // namespace tombolo::sync
