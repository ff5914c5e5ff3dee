// SPDX-License-Identifier: Apache-2.0
// Purpose: the core type for the threads of one process, for interfaces with a template over a core
// whose cores are such threads. Their memory is coherent by the language's rules, whatever machine
// the user chose for memory between processes.
// Thread safety: that of coherent::Core.
#pragma once

#include <atomic>

#include "backends/coherent/coherent.h"
#include "host/processes/thread_fence.h"
#include "machine/optional.h"

namespace tombolo::runtime {

class ThreadCore : public coherent::Core {
 public:
  using coherent::Core::Core;

  static bool fences_asymmetrically() { return host::can_fence_threads(); }
  void fence_light() { std::atomic_signal_fence(std::memory_order_seq_cst); }
  void fence_heavy() { host::fence_threads(); }
};
static_assert(ThreadCore::properties.coherent);
static_assert(machine::Core<ThreadCore>);
static_assert(machine::extras_of<ThreadCore> == machine::Extras{.serves_pieces = true,
                                                                .views_ranges = true,
                                                                .maps_parts = true,
                                                                .fences_asymmetrically = true,
                                                                .sleeps_on_words = true});

}  // namespace tombolo::runtime
