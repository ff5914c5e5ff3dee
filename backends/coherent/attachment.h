// SPDX-License-Identifier: Apache-2.0
// Purpose: the attachment of a core of the machine `coherent`, with more than every core is given.
// Thread safety: plain values.
#pragma once

#include "machine/place.h"

namespace tombolo::coherent {

struct Attachment : machine::Attachment {
  // By home, of other processes' regions; empty: there is none (machine::MapsParts).
  std::pmr::vector<machine::RegionPart> parts = {};
};

}  // namespace tombolo::coherent
