// SPDX-License-Identifier: Apache-2.0
// Purpose: WRONG on purpose: a machine whose drain and publish come one sync operation too late, so
// that everything is announced before it is in memory: a lock is free, a peer told, a barrier
// entered.
// Thread safety: that of C.
#pragma once

#include <utility>
#include <vector>

#include "machine/testing/forwarding.h"

namespace tombolo::litmus {

template <machine::Core C>
class Late : public machine::testing::Forwarding<C> {
 public:
  using Base = machine::testing::Forwarding<C>;
  using Word = typename Base::Word;
  using Base::Base;

  void publish(machine::DataPlace place, std::size_t bytes) { owed_.emplace_back(place, bytes); }
  void drain() { owes_drain_ = true; }

  void store(Word word, std::uint64_t v) {
    Base::store(word, v);
    pay();
  }
  std::uint64_t fetch_add(Word word, std::uint64_t v) {
    const std::uint64_t old = Base::fetch_add(word, v);
    pay();
    return old;
  }
  std::uint64_t exchange(Word word, std::uint64_t v) {
    const std::uint64_t old = Base::exchange(word, v);
    pay();
    return old;
  }
  std::uint64_t compare_exchange(Word word, std::uint64_t expected, std::uint64_t desired) {
    const std::uint64_t old = Base::compare_exchange(word, expected, desired);
    pay();
    return old;
  }

 private:
  void pay() {
    if (std::exchange(owes_drain_, false)) Base::drain();
    for (const auto& [place, bytes] : std::exchange(owed_, {})) Base::publish(place, bytes);
  }
  bool owes_drain_ = false;
  std::vector<std::pair<machine::DataPlace, std::size_t>> owed_;
};

}  // namespace tombolo::litmus
