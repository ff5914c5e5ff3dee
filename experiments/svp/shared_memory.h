// SPDX-License-Identifier: Apache-2.0
// Purpose: arrays that stay in the memory of one core, for another that copies them out: remapping
// through the lookup table (002 section 5.2.4), and copy cores (002 section 4.7, chapter 9). Memory
// is consistent at create and sync, where caches are not, by:
//
//   publish   the kernel's flush of the second level, so that the array is in memory
//   refresh   remapping reads pages with the MPBT bit, which the first level alone keeps, and drops
//             such lines before (CL1INVMB). Where copy cores write into the receiver's array, it
//             flushes its second level first: no line of the array is left, clean or dirty
//
// Invariants: SMC1 an entry of the lookup table leads elsewhere only when no line that came
//                 through it is in a cache: MPBT lines are dropped before the first use of a
//                 mapping.
//             SMC2 no other thread of the core runs while a mapping is in use.
// Thread safety: as Cpu.
#pragma once

#include <vector>

#include "experiments/common/copy_core.h"
#include "experiments/svp/linux.h"

namespace tombolo::experiments {

class SharedMemory {
 public:
  // The operations for consistency; tests leave one out.
  struct Care {
    bool publish = true;
    bool refresh = true;
  };

  SharedMemory(scc::Chip& chip, Linux& system, std::vector<simulator::CoreId> copy_cores, Care care)
      : chip_(chip), system_(system), copy_cores_(std::move(copy_cores)), care_(care) {}

  // At the owner; after it the array may be reached at the address.
  std::uint64_t publish(scc::View array);
  // At the other core: the array of `owner` at `address` into its own.
  void copy(simulator::CoreId owner, std::uint64_t address, scc::View to, std::uint64_t bytes);
  // Time of flushes so far, and of entries of the lookup table for memory of other cores.
  simulator::Duration flushing() const { return flushing_; }
  simulator::Duration mapping() const { return mapping_; }
  // Lets copy cores end.
  void stop_copy_cores();

 private:
  void flush();
  scc::View map(simulator::CoreId owner, simulator::Address at);
  void copy_mapped(simulator::CoreId owner, simulator::Address from, scc::View to,
                   std::uint64_t bytes);
  void copy_by_cores(simulator::CoreId owner, simulator::Address from, scc::View to,
                     std::uint64_t bytes);

  scc::Chip& chip_;
  Linux& system_;
  std::vector<simulator::CoreId> copy_cores_;
  Care care_;
  simulator::Duration flushing_;
  simulator::Duration mapping_;
};

}  // namespace tombolo::experiments
