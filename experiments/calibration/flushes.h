// SPDX-License-Identifier: Apache-2.0
// Purpose: the time to flush a cache, by its content before (002 Tables 2.2 and 2.3).
//
//   second level   by loads of as many other bytes: of memory, always the same block (normal); of
//                  the own tile's buffer, which wraps around, the same addresses (mpb) or two
//                  ranges in turn (mpb2)
//   first level    WBINVD and INVD, with their system call
//
// Before: lines that were loaded (clean), lines that were stored to (dirty), or the same flush
// (flush).
//
// Thread safety: see experiment.h.
#pragma once

#include "experiments/common/experiment.h"

namespace tombolo::experiments {

std::vector<Point> flush_points(const Context& context);

}  // namespace tombolo::experiments
