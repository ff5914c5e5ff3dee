// SPDX-License-Identifier: Apache-2.0
// Purpose: the records that a thread keeps of its pages and waits; null where a record is not
// wanted: then nothing is counted, and no clock is read.
// Thread safety: the thread of the records.
#pragma once

#include "dsm/records/page_heat.h"
#include "dsm/records/trace.h"

namespace tombolo::dsm {

struct Observer {
  bool timed = false;  // the time that threads wait is counted
  PageHeat* heat = nullptr;
  Trace* trace = nullptr;

  // `action()`, and an event around it.
  template <class Action>
  auto traced(Trace::Event event, std::uint64_t page, Action&& action) const {
    if (trace == nullptr) return action();
    const std::uint64_t start = Trace::now();
    auto result = action();
    trace->add(event, page, start);
    return result;
  }
};

}  // namespace tombolo::dsm
