// SPDX-License-Identifier: Apache-2.0
// Purpose: the moment until which a timed call of Pthreads waits. Thread safety: plain values.
#pragma once

#include <time.h>

namespace tombolo::dsm {

struct Deadline {
  clockid_t clock = CLOCK_REALTIME;
  timespec at = {};

  bool valid() const {
    constexpr long second = 1'000'000'000;
    return at.tv_nsec >= 0 && at.tv_nsec < second;
  }
  bool passed() const {
    timespec now{};
    clock_gettime(clock, &now);
    return now.tv_sec != at.tv_sec ? now.tv_sec > at.tv_sec : now.tv_nsec >= at.tv_nsec;
  }
};

}  // namespace tombolo::dsm
