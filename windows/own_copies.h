// SPDX-License-Identifier: Apache-2.0
// Purpose: keeps what the program itself sees by plain loads and stores (its private copy of a
// window, in MPI's words) in step with memory (the public copy), at the synchronization calls.
//
// Invariants: O1 publish_all() before refresh_all(): a refresh alone would lose the program's
// stores. Thread safety: that of the core's data operations.
#pragma once

#include "machine/contract.h"

namespace tombolo::windows {

template <machine::Core C>
class OwnCopies {
 public:
  // `peers_too`: the program loads and stores the peers' regions as well (shared memory windows).
  OwnCopies(C& core, bool peers_too) : core_(core), peers_too_(peers_too) {}

  // What the program stored is in memory when it returns.
  void publish_all() {
    if constexpr (C::properties.coherent) return;  // stores are in memory by themselves
    each([this](machine::DataPlace start, std::uint64_t bytes) { core_.publish(start, bytes); });
  }

  // What the program loads from now on is no older than memory at the call. Publishes first (O1).
  void update_all() {
    if constexpr (C::properties.coherent) return;  // loads see memory by themselves
    each([this](machine::DataPlace start, std::uint64_t bytes) {
      core_.publish(start, bytes);
      core_.refresh(start, bytes);
    });
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
    return core_.data_bytes(home) > 0 && core_.view({home, 0}) != nullptr;
  }

  C& core_;
  bool peers_too_;
};

}  // namespace tombolo::windows
