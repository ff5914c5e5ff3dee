// SPDX-License-Identifier: Apache-2.0
// Purpose: the images of all mapped regions of one core: the memory that its reads and writes
// touch, and the program's own loads and stores.
//
// Invariants: IM1 regions that follow each other in memory do so in the images, since programs step
//                 from one to the next (MPI_Win_allocate_shared). Of larger gaps between regions
//                 only the part above whole pages takes room here.
// Memory: address space of the regions' size; pages only where they are touched.
// Thread safety: constant once constructed.
#pragma once

#include <vector>

#include "backends/stale/attachment.h"
#include "host/memory/zero_memory.h"

namespace tombolo::stale {

class Images {
 public:
  // Throws std::bad_alloc where there is no such address space.
  explicit Images(const Attachment& at);

  // Where the image of the region begins; null for a region without mapping.
  std::byte* of(machine::Home home) const { return by_home_[home]; }

 private:
  host::ZeroMemory memory_;
  std::vector<std::byte*> by_home_;
};

}  // namespace tombolo::stale
