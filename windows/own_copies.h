// SPDX-License-Identifier: Apache-2.0
// Purpose: keeps the program's own view by plain loads and stores (its private copy of a window, in
// MPI's words) in step with memory (the public copy), at the synchronization calls.
//
// A refresh of a large region costs far more than a lock, so a region is refreshed only after a
// put: each home has a flag that origins set when their puts are in memory, and that the owner
// takes down before it refreshes.
//
// Invariants: OC1 a refresh comes after a publish: alone it would lose the program's stores.
//                 Whether the publish covers everything or only the written pages
//                 (machine::PublishesWritten) makes no difference: both bring all stores from
//                 before the call to memory, and both miss the stores of another thread between
//                 them and the refresh, which no call orders.
//             OC2 an origin that finds the flag up need not set it: its bytes are in memory
//                 already, and the owner has yet to take the flag down and will refresh after that.
//                 A fence keeps the origin's look from overtaking its drain, and the owner takes
//                 the flag down by an atomic, which its later refresh cannot overtake (R3).
//             OC3 where the program itself stores into peers' regions no flag is set, so everything
//                 is refreshed each time.
//             OC4 the flag is up if it is not 0: then it is one more than the fences that the
//                 origin had been through when it put. All processes go through the same fences.
// Memory: one word for each home.
// Thread safety: note_put() and announce_puts() under the owner's lock; the rest as the core's data
// operations.
#pragma once

#include <algorithm>
#include <mutex>
#include <vector>

#include "machine/optional.h"
#include "sync/locks/callers.h"

namespace tombolo::windows {

template <machine::Core C>
class OwnCopies {
 public:
  struct Layout {
    machine::Offset flag = 0;
  };
  static Layout take(machine::SyncLayout& layout) { return {layout.take_lines(1)}; }

  // `peers_too`: the program loads and stores the peers' regions as well (shared memory windows).
  // `threads`: several threads of this process may call at once.
  OwnCopies(C& core, Layout layout, bool peers_too, bool threads)
      : core_(core), layout_(layout), peers_too_(peers_too), refreshing_(threads) {}

  // This process has put to `target` since the last announce_puts(). To be called after the put:
  // its drain may be another thread's, on the way to announcing.
  void note_put(machine::Home target) {
    if constexpr (C::properties.coherent) return;
    if (target == core_.self() || keeps_no_word()) return;
    if (std::find(put_to_.begin(), put_to_.end(), target) == put_to_.end())
      put_to_.push_back(target);
  }
  // Tells the targets; the puts are drained. `at_once`: the news is in memory when it returns; else
  // it comes before later stores and atomics, but later puts may overtake it (R3).
  void announce_puts(bool at_once = false) {
    if constexpr (C::properties.coherent) return;
    if (put_to_.empty()) return;
    core_.fence();  // OC2
    bool told = false;
    for (const machine::Home target : put_to_)
      if (core_.load(flag(target)) == 0) {
        core_.store(flag(target), fences_ + 1);
        told = true;
      }
    put_to_.clear();
    if (told && at_once) core_.fence();
  }

  // The program had promised that no peer would put here until now. If one did, the machine is
  // told, where it tells such things. To be called before fence_ended(): a peer that has left this
  // fence may put for the next epoch, and its announcement has a higher number (OC4).
  void check_no_put() {
    if constexpr (machine::TellsLosses<C>) {
      const std::uint64_t announced = core_.load(flag(core_.self()));
      if (announced != 0 && announced <= fences_ + 1) core_.check_promise(machine::Promise::no_put);
    }
  }
  // The program has promised that it did not store to its region.
  void check_no_store() {
    if constexpr (machine::TellsLosses<C>) core_.check_promise(machine::Promise::no_store);
  }

  // This process has been through one more fence of the window.
  void fence_ended() {
    if constexpr (machine::TellsLosses<C>) ++fences_;
  }

  // Whether the program may have stored to the region of `home` by itself.
  bool stored_to(machine::Home home) const { return peers_too_ || home == core_.self(); }

  // The program's stores are in memory when it returns.
  void publish_all() {
    if constexpr (C::properties.coherent) return;  // stores are in memory by themselves
    each([this](machine::DataPlace start, std::uint64_t bytes) {
      if constexpr (machine::PublishesWritten<C>) {
        core_.publish_written(start.home);
      } else {
        core_.publish(start, bytes);
      }
    });
  }

  // The program's loads from now on are no older than memory at the call. Publishes first if there
  // is something to refresh (OC1): everything, since a load that misses a peer's store must not
  // also come before this program's own store is in memory.
  void refresh_all() {
    if constexpr (C::properties.coherent) return;  // loads see memory by themselves
    // A thread that finds the flag down must not go on before the one that took it down is done.
    const std::lock_guard guard(refreshing_);
    if (!keeps_no_word()) {
      const auto mine = flag(core_.self());
      if (core_.load(mine) == 0) return;
      core_.exchange(mine, 0);  // OC2
    }
    publish_all();
    each([this](machine::DataPlace start, std::uint64_t bytes) { core_.refresh(start, bytes); });
  }

 private:
  template <class Visit>
  void each(Visit&& visit) {
    if (!peers_too_) {
      if (reachable(core_.self())) visit({core_.self(), 0}, core_.data_bytes(core_.self()));
      return;
    }
    for (machine::Home home = 0; home < core_.cores(); ++home)
      if (reachable(home)) visit({home, 0}, core_.data_bytes(home));
  }
  // A region of no bytes, or one without an own copy, has nothing to keep in step.
  bool reachable(machine::Home home) {
    if (core_.data_bytes(home) == 0) return false;
    if constexpr (machine::HasNoViews<C>) return true;
    return core_.view({home, 0}) != nullptr;
  }

  // No flag is set, and the owner refreshes each time: where a refresh costs no more than the look
  // at the flag, and where the program stores into peers' regions (OC3).
  bool keeps_no_word() const {
    if constexpr (machine::RefreshesAtOnce<C>)
      if (core_.refreshes_at_once()) return true;
    return peers_too_;
  }

  typename C::Word flag(machine::Home home) { return core_.word({home, layout_.flag}); }

  C& core_;
  Layout layout_;
  bool peers_too_;
  sync::StateMutex refreshing_;
  std::vector<machine::Home> put_to_;
  std::uint64_t fences_ = 0;  // counted where the machine tells losses
};

}  // namespace tombolo::windows
