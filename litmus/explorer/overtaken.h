// SPDX-License-Identifier: Apache-2.0
// Purpose: a machine whose loads overtake its earlier drains and publishes, as R3 allows it: these
// are carried out before the next operation that they hold back, and not when they are called. On
// x86 that is so (SFENCE orders no load), and on the explored machine itself it is not.
//
//   Overtaken<Explored>   explored with it, a program needs each fence between a drain or publish
//                         and a load of a word, or a read of refreshed data
//
// Invariants: OV1 nothing is allowed that the contract forbids: stores, atomics and fences come
//                 after all that was drained and published before (R3, R4), write-throughs after
//                 earlier drains, and a refresh after publishes of its lines. A core that waits
//                 has none left.
//             OV2 not all is shown that the contract allows: a publish is carried out at once by an
//                 eviction only, and a load behind a store overtakes nothing from before it.
// Thread safety: that of C.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "machine/testing/forwarding.h"

namespace tombolo::litmus {

template <machine::Core C>
class Overtaken : public machine::testing::Forwarding<C> {
 public:
  using Base = machine::testing::Forwarding<C>;
  using Word = typename Base::Word;
  using Base::Base;

  void publish(machine::DataPlace place, std::size_t bytes) { owed_.push_back({place, bytes}); }
  void drain() { owes_drain_ = true; }

  void store(Word word, std::uint64_t v) {
    pay();
    Base::store(word, v);
  }
  std::uint64_t fetch_add(Word word, std::uint64_t v) {
    pay();
    return Base::fetch_add(word, v);
  }
  std::uint64_t exchange(Word word, std::uint64_t v) {
    pay();
    return Base::exchange(word, v);
  }
  std::uint64_t compare_exchange(Word word, std::uint64_t expected, std::uint64_t desired) {
    pay();
    return Base::compare_exchange(word, expected, desired);
  }
  void fence() {
    pay();
    Base::fence();
  }
  // A fence_heavy() of another core does not carry these out, so none may be owed here.
  void fence_light() requires machine::FencesAsymmetrically<C> {
    pay();
    Base::fence_light();
  }
  void fence_heavy() requires machine::FencesAsymmetrically<C> {
    pay();
    Base::fence_heavy();
  }
  template <class Predicate>
  Status wait_until(Word word, Predicate&& predicate) {
    pay();
    return Base::wait_until(word, predicate);
  }
  Status pause(std::uint64_t ns) {
    pay();
    return Base::pause(ns);
  }
  Status write_through(machine::DataPlace place, const void* in, std::size_t bytes) {
    if (owes_drain_) pay();
    return Base::write_through(place, in, bytes);
  }
  void refresh(machine::DataPlace place, std::size_t bytes) {
    const auto shares_a_line = [&](const Range& owed) { return owed.shares_a_line(place, bytes); };
    if (std::any_of(owed_.begin(), owed_.end(), shares_a_line)) pay();
    Base::refresh(place, bytes);
  }

 private:
  struct Range {
    machine::DataPlace place;
    std::size_t bytes;
    bool shares_a_line(machine::DataPlace other, std::size_t other_bytes) const {
      constexpr std::size_t line = Base::properties.line_bytes;
      return other.home == place.home && bytes > 0 && other_bytes > 0 &&
             other.offset / line <= (place.offset + bytes - 1) / line &&
             place.offset / line <= (other.offset + other_bytes - 1) / line;
    }
  };
  void pay() {
    if (std::exchange(owes_drain_, false)) Base::drain();
    for (const Range& owed : std::exchange(owed_, {})) Base::publish(owed.place, owed.bytes);
  }
  bool owes_drain_ = false;
  std::vector<Range> owed_;
};

}  // namespace tombolo::litmus
