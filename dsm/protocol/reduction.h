// SPDX-License-Identifier: Apache-2.0
// Purpose: a reduction: all threads give a value, and all get the combination of all, in the order
// of threads (003 section 6.2.6: it replaces a counter under a lock).
//
// Two waits for all, a remote store and load for each thread, n loads by thread 0. Memory: n + 1
// words at home 0.
//
// Invariants: DRD1 a thread stores its next value after the second wait, and thread 0 combines only
//                  between the two: the values of two reductions do not mix.
//             DRD2 thread 0 stores the next result after the first wait of the next reduction,
//                  which no thread enters before it has loaded this one.
// It moves words alone: loads and stores of pages are ordered by it no more than without it.
// Thread safety: one thread for each object.
#pragma once

#include <bit>
#include <type_traits>

#include "dsm/protocol/shape.h"
#include "machine/contract.h"

namespace tombolo::dsm {

template <machine::Core C>
class Reduction {
 public:
  struct Layout {
    machine::Offset values = 0;
    machine::Offset result = 0;
  };
  static Layout take(machine::SyncLayout& layout, const Shape& shape) {
    return {.values = layout.take_lines(shape.threads), .result = layout.take_lines(1)};
  }

  Reduction(C& core, Layout layout, const Shape& shape)
      : core_(core), layout_(layout), threads_(shape.threads) {}

  // `wait_for_all()` returns a Status when all threads have called it as often as this one.
  template <class V, class Combine, class Wait>
  requires(std::is_trivially_copyable_v<V> && sizeof(V) == sizeof(std::uint64_t)) Status
      reduce(V& value, Combine&& combine, Wait&& wait_for_all) {
    core_.store(value_of(core_.self()), std::bit_cast<std::uint64_t>(value));
    TOMBOLO_TRY(wait_for_all());
    if (core_.self() == 0) {
      V all = std::bit_cast<V>(core_.load(value_of(0)));
      for (Thread thread = 1; thread < threads_; ++thread)
        all = combine(all, std::bit_cast<V>(core_.load(value_of(thread))));
      core_.store(result(), std::bit_cast<std::uint64_t>(all));
    }
    TOMBOLO_TRY(wait_for_all());
    value = std::bit_cast<V>(core_.load(result()));
    return {};
  }

 private:
  typename C::Word value_of(Thread thread) { return core_.word({0, layout_.values + thread * 8u}); }
  typename C::Word result() { return core_.word({0, layout_.result}); }

  C& core_;
  Layout layout_;
  Thread threads_;
};

}  // namespace tombolo::dsm
