// SPDX-License-Identifier: Apache-2.0
// Purpose: WRONG on purpose, for the explorer only: SplitDeque whose owner takes its newest entry
// without a look at the split.
//
// The error: a shared entry may be another core's by then; both run it.
// Thread safety: as SplitDeque.
#pragma once

#include "svp/scheduler/split_deque.h"

namespace tombolo::svp::broken {

template <machine::Core C>
class HastyDeque : public SplitDeque<C> {
 public:
  using Base = SplitDeque<C>;
  using Base::Base;

  bool claim_last(typename Base::Slot slot) {
    if (slot + 1 != this->head_) return false;
    --this->head_;
    return true;
  }
};

}  // namespace tombolo::svp::broken
