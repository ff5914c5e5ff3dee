// SPDX-License-Identifier: Apache-2.0
// Purpose: guarded memory by mprotect: a fault is a SIGSEGV.
//
// Invariants: HPM1 where the kernel has no mapping left to give (vm.max_map_count), the whole view
//                  is closed, which makes one mapping of it; its pages are opened again one by one
//                  as they are used. So their number has no limit.
// Thread safety: that of guarded_memory.h.
#pragma once

#include "host/faults/guarded_memory.h"

namespace tombolo::host {

class ProtectedMemory : public GuardedMemory {
 public:
  static Status create(std::uint64_t bytes, const Place& place,
                       std::unique_ptr<GuardedMemory>& out);
  FaultMechanism mechanism() const override { return FaultMechanism::protection; }
  Status change(const AddressRange& pages, Access from, Access to) override;
  Status close(std::span<const AddressRange> ranges) override;
  Status discard(const AddressRange& pages) override;

 private:
  Status protect(const AddressRange& pages, int access);
};

}  // namespace tombolo::host
