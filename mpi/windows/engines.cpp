// SPDX-License-Identifier: Apache-2.0
#include "mpi/windows/engines.h"

#include "backends/coherent/coherent.h"
#include "windows/window.h"

namespace tombolo::mpi {
namespace {

// Calls use.template operator()<C>() with the core type of the machine.
template <class Use>
auto with_core(MachineChoice, Use&& use) {
  return use.template operator()<coherent::Core>();
}

}  // namespace

std::size_t sync_bytes(MachineChoice machine, machine::Home cores) {
  return with_core(machine, [&]<class C>() { return windows::Window<C>::sync_bytes(cores); });
}

std::size_t ledger_bytes(MachineChoice machine, const std::vector<machine::DataRegion>&) {
  return machine.kind == MachineKind::stale ? 8 : 0;
}

bool is_coherent(MachineChoice machine) {
  return with_core(machine, []<class C>() { return C::properties.coherent; });
}

bool needs_images(MachineChoice machine) { return machine.kind == MachineKind::stale; }

Status available(MachineChoice) { return {}; }

std::unique_ptr<windows::Engine> make_engine(MachineChoice machine,
                                             const machine::Attachment& attachment,
                                             const windows::EngineOptions& options) {
  return with_core(machine, [&]<class C>() -> std::unique_ptr<windows::Engine> {
    return std::make_unique<windows::Window<C>>(attachment, options);
  });
}

}  // namespace tombolo::mpi
