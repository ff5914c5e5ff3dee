// SPDX-License-Identifier: Apache-2.0
// Purpose: lets readers announce themselves at their own home instead of counting themselves at the
// target, as long as no core writes: Dice and Kogan, "BRAVO: Biased Locking for Reader-Writer
// Locks", USENIX ATC 2019. Around a family (`Locks`) in which no core waits in a queue, that is
// BestEffortLocks.
//
//   bias of each target          none; set: announced readers count; ending: they do, but no new
//                                one
//   announcements of each core   at its own home; each 0 or a target + 1
//
//   shared       if the bias is set, announce the target and look at the bias again: still set,
//                done. Otherwise withdraw, and lock the target itself
//   exclusive    lock the target; no bias: done. Otherwise let it end and look at all
//                announcements: none names the target: no bias, done. Otherwise give the lock back,
//                wait until none does, and try again
//   lock-all     the family's
//   back again   a core sets the bias while it holds the target's shared lock, after `bias_after`
//                times the number of cores such locks: ending it looks at each core once, so a
//                reader pays for 1 / `bias_after` of a look
//
// Two readers of a target no longer take its line from each other: a lock costs one atomic on a
// line that stays in the reader's cache.
//
// Invariants: RB1 the bias changes from none to set only by a holder of the shared lock, and
//                 otherwise only by a holder of the exclusive lock: never both at once.
//             RB2 a reader announces, then looks at the bias; a writer ends it, then looks at the
//                 announcements. Both first steps are atomics, which keep the looks from overtaking
//                 them (R3), so one of the two sees the other.
//             RB3 where there is no bias, only a core that will withdraw announces the target.
//             RB4 a reader that finds the bias set comes after the one that set it, and this one
//                 after the last writer, so its refresh is as new (R5); a withdrawn announcement
//                 comes after its reader's drains (R4).
//             RB5 a writer waits for announced readers without the lock: they may wait for other
//                 targets, and readers that hold those for this one.
// Memory: 2 lines per home and that of the family. After an error as usable as the family.
// Thread safety: as LockOptions::threads says: announcements are claimed by an atomic.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <string_view>

#include "machine/contract.h"
#include "sync/locks/backoff.h"
#include "sync/locks/lock_kind.h"

namespace tombolo::sync {

template <machine::Core C, class Locks>
class ReaderBias {
 public:
  using Word = typename C::Word;
  using Home = machine::Home;

  struct Layout {
    typename Locks::Layout locks;
    machine::Offset bias = 0;
    machine::Offset announcements = 0;
  };
  static Layout take(machine::SyncLayout& layout, Home cores) {
    return {.locks = Locks::take(layout, cores),
            .bias = layout.take_lines(1),
            .announcements = layout.take_lines(1)};
  }

  ReaderBias(C& core, Layout layout, const LockOptions& options)
      : options_(options),
        core_(core),
        layout_(layout),
        reads_until_bias_(options.bias_after * core.cores()),
        locks_(core, layout.locks, options) {}

  [[gnu::hot]] Status lock(Access access, Home target) {
    if (access == Access::shared) {
      if (announce(target)) [[likely]]
        return {};
      TOMBOLO_TRY(locks_.lock(Access::shared, target));
      count_read(target);
      return {};
    }
    TOMBOLO_TRY(locks_.lock(Access::exclusive, target));
    if (core_.load(bias(target)) == none || end_bias(target)) [[likely]]
      return {};
    return wait_for_announced(target);
  }

  [[gnu::hot]] void unlock(Access access, Home target) {
    if (access == Access::shared && options_.bias_after != 0)
      for (unsigned i = 0; i < announced_at_once; ++i)
        if (core_.load(announcement(core_.self(), i)) == target + std::uint64_t{1})
          return core_.store(announcement(core_.self(), i), 0);
    locks_.unlock(access, target);
  }

  Status lock_all() { return locks_.lock_all(); }
  void unlock_all() { locks_.unlock_all(); }

 protected:
  enum Bias : std::uint64_t { none, set, ending };

  // Shared locks of one core that can be announced at a time; further ones go to the target.
  static constexpr unsigned announced_at_once = 4;

  Word bias(Home target) { return core_.word({target, layout_.bias}); }
  Word announcement(Home core, unsigned i) {
    return core_.word({core, layout_.announcements + i * sizeof(std::uint64_t)});
  }

 private:
  bool announce(Home target) {
    const Word biased = bias(target);
    if (core_.load(biased) != set) return false;
    for (unsigned i = 0; i < announced_at_once; ++i) {
      const Word mine = announcement(core_.self(), i);
      if (core_.compare_exchange(mine, 0, target + std::uint64_t{1}) != 0) continue;
      if (core_.load(biased) == set) [[likely]]  // RB2
        return true;
      core_.store(mine, 0);
      return false;
    }
    return false;
  }

  // The target's shared lock is held (RB1). relaxed: the count is of this core alone, and a read
  // that another of its threads counts at the same time may be missed.
  void count_read(Home target) {
    if (options_.bias_after == 0) return;
    const std::uint64_t left = reads_until_bias_.load(std::memory_order_relaxed);
    if (left > 1) {
      reads_until_bias_.store(left - 1, std::memory_order_relaxed);
      return;
    }
    reads_until_bias_.store(options_.bias_after * core_.cores(), std::memory_order_relaxed);
    if (core_.load(bias(target)) == none) core_.store(bias(target), set);
  }

  // The target's exclusive lock is held (RB1). True if there is no bias any more.
  bool end_bias(Home target) {
    core_.exchange(bias(target), ending);  // RB2
    if (announced(target)) return false;
    core_.store(bias(target), none);
    return true;
  }

  bool announced(Home target) {
    for (Home core = 0; core < core_.cores(); ++core)
      for (unsigned i = 0; i < announced_at_once; ++i)
        if (core_.load(announcement(core, i)) == target + std::uint64_t{1}) return true;
    return false;
  }

  // The target's exclusive lock is held; given back while waiting (RB5).
  Status wait_for_announced(Home target) {
    Backoff<C> backoff(core_, options_);
    do {
      locks_.unlock(Access::exclusive, target);
      backoff.reset();
      do TOMBOLO_TRY(backoff.pause());
      while (announced(target));
      TOMBOLO_TRY(locks_.lock(Access::exclusive, target));
    } while (core_.load(bias(target)) != none && !end_bias(target));
    return {};
  }

 private:
  LockOptions options_;  // first: the members of a free lock follow in one piece

 protected:
  C& core_;

 private:
  Layout layout_;
  std::atomic<std::uint64_t> reads_until_bias_;
  Locks locks_;
};

// A family with the bias around it, as a family of its own: for code that names it, never by a
// setting, since windows put the bias around where it applies.
template <class Family>
struct BiasedFamily {
  template <machine::Core C>
  using Locks = ReaderBias<C, typename Family::template Locks<C>>;

 private:
  static constexpr std::string_view prefix = "biased-";
  static constexpr auto name = [] {
    std::array<char, prefix.size() + Family::traits.name.size()> text{};
    std::ranges::copy(Family::traits.name, std::ranges::copy(prefix, text.begin()).out);
    return text;
  }();
  static constexpr LockFamilyTraits biased() {
    LockFamilyTraits changed = Family::traits;
    changed.name = {name.data(), name.size()};
    changed.in_windows = false;
    changed.reader_bias = false;
    return changed;
  }

 public:
  static constexpr LockFamilyTraits traits = biased();
};

}  // namespace tombolo::sync
