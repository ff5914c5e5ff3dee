// SPDX-License-Identifier: Apache-2.0
// Purpose: all tunings of the protocols but one, so that a test can show the gain of that one.
// Thread safety: plain values.
#pragma once

#include "dsm/protocol/tuning.h"

namespace tombolo::dsm::testing {

constexpr Tuning without(bool Tuning::*off) {
  Tuning tuning;
  tuning.*off = false;
  return tuning;
}

}  // namespace tombolo::dsm::testing
