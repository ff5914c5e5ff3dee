// SPDX-License-Identifier: Apache-2.0
// Purpose: a machine that publishes as a processor stores to memory that is coherent: published
// lines wait in a buffer, and are in memory before the core's next store of a word, atomic or
// fence, but not before its next load. For pages in place, whose stores are the program's own.
// Thread safety: that of C.
#pragma once

#include <utility>
#include <vector>

#include "machine/testing/forwarding.h"

namespace tombolo::litmus {

template <machine::Core C>
class Buffered : public machine::testing::Forwarding<C> {
 public:
  using Base = machine::testing::Forwarding<C>;
  using Word = typename Base::Word;
  using Base::Base;

  void publish(machine::DataPlace place, std::size_t bytes) { waiting_.emplace_back(place, bytes); }
  void store(Word word, std::uint64_t v) {
    empty();
    Base::store(word, v);
  }
  std::uint64_t fetch_add(Word word, std::uint64_t v) {
    empty();
    return Base::fetch_add(word, v);
  }
  std::uint64_t exchange(Word word, std::uint64_t v) {
    empty();
    return Base::exchange(word, v);
  }
  std::uint64_t compare_exchange(Word word, std::uint64_t expected, std::uint64_t desired) {
    empty();
    return Base::compare_exchange(word, expected, desired);
  }
  void fence() {
    empty();
    Base::fence();
  }
  // No buffer lasts for ever.
  template <class Predicate>
  Status wait_until(Word word, Predicate&& predicate) {
    empty();
    return Base::wait_until(word, predicate);
  }
  Status pause(std::uint64_t ns) {
    empty();
    return Base::pause(ns);
  }

 private:
  void empty() {
    for (const auto& [place, bytes] : std::exchange(waiting_, {})) Base::publish(place, bytes);
  }
  std::vector<std::pair<machine::DataPlace, std::size_t>> waiting_;
};

}  // namespace tombolo::litmus
