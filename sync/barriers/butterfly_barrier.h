// SPDX-License-Identifier: Apache-2.0
// Purpose: the butterfly barrier (Brooks, IJPP 1986): in round r cores i and i xor 2^r signal each
// other. For 2^k cores; others wait in a dissemination barrier, of which this is a variant.
//
// Where cores that are numbered one after the other share a host, 2^j of them on each, the first j
// rounds stay within hosts, and the others alone cost messages between them: as many as a barrier
// of the hosts. In a dissemination barrier some core has a peer on another host in each round.
//
// Per core and barrier, and memory: as the dissemination barrier.
//
// Invariants: BB1 as DI1: a flag has one writer, the partner of its round, which cannot be ahead by
//                 two.
//             BB2 as DI2: after round r a core has heard of all 2^(r + 1) cores of its group.
// Thread safety: one call at a time per object.
#pragma once

#include <bit>

#include "machine/contract.h"
#include "sync/barriers/dissemination_barrier.h"
#include "sync/lone_word.h"

namespace tombolo::sync {

template <machine::Core C>
class ButterflyBarrier {
 public:
  using Layout = typename DisseminationBarrier<C>::Layout;
  static Layout take(machine::SyncLayout& layout, machine::Home cores) {
    return DisseminationBarrier<C>::take(layout, cores);
  }

  ButterflyBarrier(C& core, Layout layout) : ButterflyBarrier(core, layout, core.cores()) {}
  // Of the first `members` cores.
  ButterflyBarrier(C& core, Layout layout, machine::Home members)
      : core_(core), layout_(layout), members_(members), others_(core, layout, members) {}

  Status arrive_and_wait() {
    if (!std::has_single_bit(members_)) return others_.arrive_and_wait();
    ++number_;
    machine::Offset at = layout_.flags;
    for (machine::Home step = 1; step < members_; step *= 2, at += line_bytes) {
      const machine::Home partner = core_.self() ^ step;
      store_lone(core_, core_.word({partner, at}), number_);
      core_.notify(partner);
      TOMBOLO_TRY(core_.wait_until(core_.word({core_.self(), at}),
                                   [want = number_](std::uint64_t v) { return v >= want; }));
    }
    return {};
  }

 private:
  static constexpr machine::Offset line_bytes = 64;

  C& core_;
  Layout layout_;
  machine::Home members_;
  DisseminationBarrier<C> others_;
  std::uint64_t number_ = 0;
};

}  // namespace tombolo::sync
