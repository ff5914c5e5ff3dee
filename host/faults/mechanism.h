// SPDX-License-Identifier: Apache-2.0
// Purpose: the ways by which this kernel lets a process catch its own accesses to closed pages, in
// the thread that makes them.
//
//   userfault    userfaultfd in its mode of signals (SIGBUS): pages are opened and closed in the
//                page table alone. Linux 5.19; a container may forbid it.
//   protection   mprotect and SIGSEGV: any kernel. Each change of a single page splits or joins
//                mappings, of which a process has 65,530 at most.
//
// Thread safety: yes.
#pragma once

#include <cstdint>

#include "base/status.h"

namespace tombolo::host {

enum class FaultMechanism : std::uint8_t { automatic, userfault, protection };

constexpr const char* name_of(FaultMechanism mechanism) {
  switch (mechanism) {
    case FaultMechanism::userfault:
      return "userfault";
    case FaultMechanism::protection:
      return "protection";
    default:
      return "automatic";
  }
}

// Ok, or unsupported: the call that the kernel lacks, and since when it has it. Tries the mechanism
// on memory of its own at the first call.
Status available(FaultMechanism mechanism);

// `automatic` becomes userfault where that is available, and else protection.
FaultMechanism chosen(FaultMechanism mechanism);

}  // namespace tombolo::host
