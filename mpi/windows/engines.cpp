// SPDX-License-Identifier: Apache-2.0
#include "mpi/windows/engines.h"

#include <utility>

#include "backends/coherent/coherent.h"
#include "backends/flushed/flushed.h"
#include "backends/stale/stale.h"
#include "mpi/windows/engine_on.h"

namespace tombolo::mpi {
namespace {

// Calls use.template operator()<C>() with the core type of the machine.
template <class Use>
auto with_core(MachineChoice machine, Use&& use) {
  switch (machine.kind) {
    case MachineKind::stale:
      return use.template operator()<stale::Core>();
    case MachineKind::flushed:
      if (machine.native_atomics)
        return use.template operator()<flushed::Core<machine::Atomics::full>>();
      return use.template operator()<flushed::Core<machine::Atomics::none>>();
    case MachineKind::coherent:
      break;
  }
  return use.template operator()<coherent::Core>();
}

}  // namespace

std::size_t sync_bytes(MachineChoice machine, machine::Home cores) {
  return with_core(machine, [&]<class C>() { return windows::Window<C>::sync_bytes(cores); });
}

std::size_t shared_bytes(MachineChoice machine, std::span<const machine::DataRegion> regions) {
  return with_core(machine, [&]<class C>() -> std::size_t {
    if constexpr (machine::WantsSharedMemory<C>) return C::shared_bytes(regions);
    return 0;
  });
}

bool is_coherent(MachineChoice machine) {
  return with_core(machine, []<class C>() { return C::properties.coherent; });
}

bool keeps_views_apart(MachineChoice machine) {
  return with_core(machine, []<class C>() { return machine::KeepsViewsApart<C>; });
}

bool names_sites(MachineChoice machine) {
  return with_core(machine, []<class C>() { return machine::NamesSites<C>; });
}

Status available(MachineChoice machine) {
  return machine.kind == MachineKind::flushed ? host::flush::available() : Status{};
}

EnginePointer make_engine(MachineChoice machine, machine::Attachment attachment,
                          Particulars particulars, const windows::EngineOptions& options,
                          std::pmr::memory_resource& memory) {
  switch (machine.kind) {
    case MachineKind::stale:
      return engine_on_stale(std::move(attachment), particulars, options, memory);
    case MachineKind::flushed:
      return engine_on_flushed(machine.native_atomics, std::move(attachment), options, memory);
    case MachineKind::coherent:
      break;
  }
  return engine_on_coherent(std::move(attachment), std::move(particulars), options, memory);
}

}  // namespace tombolo::mpi
