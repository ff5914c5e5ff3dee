// SPDX-License-Identifier: Apache-2.0
// Purpose: the attachment of a core of the machine `stale`, with more than every core is given.
// Thread safety: plain values.
#pragma once

#include "machine/place.h"

namespace tombolo::stale {

struct Attachment : machine::Attachment {
  // The program's memory of the own region, where a window is over memory that it has already;
  // null: the core makes an image of that region as of the others (machine::KeepsViewsApart).
  std::byte* own_view = nullptr;
  // The board of findings, and the ledger: 8 bytes for each line of each region, in the order of
  // `data`. All zero before the first core starts; null: findings do not say whose bytes were lost,
  // and are each core's own (machine::WantsSharedMemory).
  std::byte* shared = nullptr;
  std::uint64_t evictions = 0;  // one in so many opportunities; 0: never (machine::EvictsAtRandom)
};

}  // namespace tombolo::stale
