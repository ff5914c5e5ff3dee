// SPDX-License-Identifier: Apache-2.0
// Purpose: what a core of the machine `coherent` is given beyond what every core is.
// Thread safety: plain values.
#pragma once

#include "machine/place.h"

namespace tombolo::coherent {

struct Attachment : machine::Attachment {
  // By home, of other processes' regions; empty: there is none (machine::MapsParts).
  std::pmr::vector<machine::RegionPart> parts = {};
};

}  // namespace tombolo::coherent
