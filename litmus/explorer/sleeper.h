// SPDX-License-Identifier: Apache-2.0
// Purpose: the explored machine with sleeps on words (machine::SleepsOnWords). A sleep has no
// bound here, so that a wake-up which is missed, and on a host costs the bound, is a deadlock.
//
// Invariants: EXS1 a word's sleepers are bits of it, one for each core, above those that programs
//                  use: the look at a word and the beginning of the sleep are one step, and so is a
//                  wake-up.
//             EXS2 words that cores sleep on are changed by atomics alone, as the concept asks: a
//                  store would take the sleepers along.
// Limits: a wake-up of some sleepers is for those of the lowest numbers. The first `early` sleeps
// of each core end by themselves, and no others.
// Thread safety: as Explored.
#pragma once

#include "litmus/explorer/explored.h"

namespace tombolo::litmus {

template <unsigned early = 0>
class ExploredSleeper : public Explored {
 public:
  using Explored::Explored;

  std::uint64_t load(Word word) { return Explored::load(word) & values; }
  std::uint64_t fetch_add(Word word, std::uint64_t v) {
    return change(word, [v](std::uint64_t old) { return old + v; });
  }
  std::uint64_t exchange(Word word, std::uint64_t v) {
    return change(word, [v](std::uint64_t) { return v; });
  }
  std::uint64_t compare_exchange(Word word, std::uint64_t expected, std::uint64_t desired) {
    return change(word, [=](std::uint64_t old) { return old == expected ? desired : old; });
  }
  template <class Predicate>
  Status wait_until(Word word, Predicate&& predicate) {
    return Explored::wait_until(word, [&](std::uint64_t v) { return predicate(v & values); });
  }

  Status sleep_on(Word word, std::uint64_t seen) {
    const auto holds_seen = [seen](std::uint64_t v) {
      return static_cast<std::uint32_t>(v) == static_cast<std::uint32_t>(seen);
    };
    const std::uint64_t own = bit_of(self());
    const std::uint64_t before =
        atomic(word, [&](std::uint64_t old) { return holds_seen(old) ? old | own : old; });
    if (!holds_seen(before)) return {};
    if (sleeps_++ < early) {
      atomic(word, [own](std::uint64_t old) { return old & ~own; });
      return {};
    }
    auto awake = [own](std::uint64_t v) { return (v & own) == 0; };
    run_.sleep(self(), word, awake);
    return {};
  }
  void wake_sleepers(Word word, std::uint32_t most) {
    atomic(word, [this, most](std::uint64_t old) {
      std::uint32_t woken = 0;
      for (Home core = 0; core < cores() && woken < most; ++core) {
        if ((old & bit_of(core)) == 0) continue;
        old &= ~bit_of(core);
        ++woken;
      }
      return old;
    });
  }

 private:
  static constexpr unsigned value_bits = 48;
  static constexpr std::uint64_t values = (std::uint64_t{1} << value_bits) - 1;
  static std::uint64_t bit_of(Home core) { return std::uint64_t{1} << (value_bits + core); }

  // The whole word, sleepers and all.
  template <class Change>
  std::uint64_t atomic(Word word, Change&& now) {
    return run_.atomic(self(), {.kind = Operation::Kind::atomic, .word = word}, now);
  }
  template <class Change>
  std::uint64_t change(Word word, Change&& now) {
    return values & atomic(word, [&now](std::uint64_t old) {
             return (old & ~values) | (now(old & values) & values);
           });
  }

  unsigned sleeps_ = 0;
};
static_assert(machine::Core<ExploredSleeper<>>);
static_assert(machine::extras_of<ExploredSleeper<>> ==
              machine::Extras{
                  .has_no_views = true, .fences_asymmetrically = true, .sleeps_on_words = true});

}  // namespace tombolo::litmus
