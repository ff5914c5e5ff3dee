// SPDX-License-Identifier: Apache-2.0
// Purpose: brings page faults of this process to the object that is responsible for the address,
// in the thread that has made the access.
//
//   struct Pages : FaultTarget { bool on_fault(const Fault&) override { ... } };
//   TOMBOLO_TRY(catch_faults(range, pages));      // ... leave_faults(range)
//
// While a target is called, the signals of the program wait; only those of faults and of abort() do
// not. The thread may hold any lock of the program and of stdio. It runs on its alternate stack, if
// it has one (alternate_stack.h).
//
// Invariants: HFR1 a fault that no target wants goes to the handler that the program had for it,
//                  with the signals held back that the program would have them held back. Where
//                  there is none, one line on stderr names the address, and the process ends by
//                  that signal.
//             HFR2 a fault at a closed page is a SIGBUS for some mechanisms. One that its target
//                  does not want is a SIGSEGV to the program, as of memory that is not there.
//             HFR3 a forked child has no ranges.
//             HFR4 in the handler nothing is allocated and no lock is taken.
// Thread safety: yes; a range is left when no thread can fault there any more.
#pragma once

#include <signal.h>

#include <cstdint>

#include "base/status.h"
#include "host/faults/fault_kind.h"
#include "host/memory/address_space.h"

namespace tombolo::host {

struct Fault {
  void* address = nullptr;
  FaultKind kind = FaultKind::unknown;
  std::uint64_t instruction = 0;  // its address; 0: not known
};

class FaultTarget {
 public:
  virtual ~FaultTarget() = default;
  // True: the access is tried again. False: it is a mistake of the program.
  virtual bool on_fault(const Fault& fault) = 0;
};

// Errors: unsupported (the kernel), no_memory (512 ranges are caught already).
Status catch_faults(const AddressRange& range, FaultTarget& target);
void leave_faults(const AddressRange& range);

// From now on, a fault that no target wants is told on stderr as HFR1 says, in a process without
// ranges, too. `explain`: the rest of that line for the address; it is called in the handler.
// Errors: as above.
Status tell_faults(const char* (*explain)(const void* address));

// The fault for which a target of this thread is being called; null at other times.
const Fault* fault_here();

// For a wrapper around the program's own sigaction() of SIGSEGV and SIGBUS, once faults are caught:
// the action behind ours. Either pointer may be null.
void set_earlier_action(int signal, const struct sigaction* action, struct sigaction* old);

}  // namespace tombolo::host
