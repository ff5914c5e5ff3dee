// SPDX-License-Identifier: Apache-2.0
#include "host/faults/mechanism.h"

#include "host/faults/guarded_memory.h"
#include "host/memory/page.h"

namespace tombolo::host {
namespace {

Status tried(FaultMechanism mechanism) {
  std::unique_ptr<GuardedMemory> memory;
  TOMBOLO_TRY(GuardedMemory::create(mechanism, page_bytes(), {}, memory));
  const AddressRange page = memory->view();
  *memory->alias(page.low) = std::byte{1};
  TOMBOLO_TRY(memory->change(page, Access::closed, Access::readable));
  TOMBOLO_TRY(memory->change(page, Access::readable, Access::writable));
  TOMBOLO_TRY(memory->close({&page, 1}));
  return memory->discard(page);
}

// A kernel that has all calls may still refuse one of them for such memory.
Status as_unsupported(const Status& status) {
  return status.ok() ? status : Status::unsupported(status.message());
}

}  // namespace

Status available(FaultMechanism mechanism) {
  static const Status userfault = as_unsupported(tried(FaultMechanism::userfault));
  static const Status protection = as_unsupported(tried(FaultMechanism::protection));
  switch (mechanism) {
    case FaultMechanism::userfault:
      return userfault;
    case FaultMechanism::protection:
      return protection;
    default:
      return userfault.ok() ? userfault : protection;
  }
}

FaultMechanism chosen(FaultMechanism mechanism) {
  if (mechanism != FaultMechanism::automatic) return mechanism;
  return available(FaultMechanism::userfault).ok() ? FaultMechanism::userfault
                                                   : FaultMechanism::protection;
}

}  // namespace tombolo::host
