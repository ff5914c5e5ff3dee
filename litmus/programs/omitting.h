// SPDX-License-Identifier: Apache-2.0
// Purpose: WRONG on purpose: machines that leave something out, so that any algorithm on them is a
// broken twin of itself.
//
//   Omitting<C, Omit::publish>      every publish does nothing; likewise refresh, drain, ...
//   Omitting<C, Omit::fence, 2, 1>  the second of every two fences does nothing
//   Divided<C>                      atomics are a load and a store
//
// Thread safety: that of C.
#pragma once

#include "machine/testing/forwarding.h"

namespace tombolo::litmus {

enum class Omit : std::uint8_t {
  publish,
  refresh,
  drain,
  fence,
  fence_heavy,
  wait,
  notify,
  wake_sleepers
};

template <machine::Core C, Omit What, unsigned Every = 1, unsigned Which = 0>
class Omitting : public machine::testing::Forwarding<C> {
 public:
  using Base = machine::testing::Forwarding<C>;
  using Base::Base;

  void publish(machine::DataPlace place, std::size_t bytes) {
    if (!omits(Omit::publish)) Base::publish(place, bytes);
  }
  void refresh(machine::DataPlace place, std::size_t bytes) {
    if (!omits(Omit::refresh)) Base::refresh(place, bytes);
  }
  void drain() {
    if (!omits(Omit::drain)) Base::drain();
  }
  void fence() {
    if (!omits(Omit::fence)) Base::fence();
  }
  void fence_heavy() requires machine::FencesAsymmetrically<C> {
    if (!omits(Omit::fence_heavy)) Base::fence_heavy();
  }
  template <class Predicate>
  Status wait_until(typename Base::Word word, Predicate&& predicate) {
    if (omits(Omit::wait)) return {};
    return Base::wait_until(word, predicate);
  }
  void notify(machine::Home home) {
    if (!omits(Omit::notify)) Base::notify(home);
  }
  void wake_sleepers(typename Base::Word word,
                     std::uint32_t most) requires machine::SleepsOnWords<C> {
    if (!omits(Omit::wake_sleepers)) Base::wake_sleepers(word, most);
  }

 private:
  bool omits(Omit operation) { return operation == What && count_++ % Every == Which; }
  unsigned count_ = 0;
};

template <machine::Core C>
class Divided : public machine::testing::Forwarding<C> {
 public:
  using Base = machine::testing::Forwarding<C>;
  using Word = typename Base::Word;
  using Base::Base;

  std::uint64_t fetch_add(Word word, std::uint64_t v) {
    return change(word, [v](std::uint64_t old) { return old + v; });
  }
  std::uint64_t exchange(Word word, std::uint64_t v) {
    return change(word, [v](std::uint64_t) { return v; });
  }
  std::uint64_t compare_exchange(Word word, std::uint64_t expected, std::uint64_t desired) {
    return change(word, [=](std::uint64_t old) { return old == expected ? desired : old; });
  }

 private:
  template <class Change>
  std::uint64_t change(Word word, Change&& change) {
    const std::uint64_t old = Base::load(word);
    if (change(old) != old) Base::store(word, change(old));
    Base::fence();
    return old;
  }
};

}  // namespace tombolo::litmus
