// SPDX-License-Identifier: Apache-2.0
#include "mpi/windows/engines.h"

#include <utility>

#include "backends/coherent/coherent.h"
#include "backends/flushed/flushed.h"
#include "backends/stale/stale.h"
#include "mpi/windows/engine_on.h"
#include "windows/window.h"

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

std::size_t ledger_bytes(MachineChoice machine, const std::vector<machine::DataRegion>& regions) {
  if (machine.kind != MachineKind::stale) return 0;
  constexpr std::size_t bytes_per_line = 8;
  std::size_t lines = 0;
  for (const auto& region : regions)
    lines += (region.bytes + stale::Core::properties.line_bytes - 1) /
             stale::Core::properties.line_bytes;
  return lines * bytes_per_line;
}

bool is_coherent(MachineChoice machine) {
  return with_core(machine, []<class C>() { return C::properties.coherent; });
}

bool needs_images(MachineChoice machine) { return machine.kind == MachineKind::stale; }

Status available(MachineChoice machine) {
  return machine.kind == MachineKind::flushed ? host::flush::available() : Status{};
}

EnginePointer make_engine(MachineChoice machine, machine::Attachment attachment,
                          const windows::EngineOptions& options,
                          std::pmr::memory_resource& memory) {
  switch (machine.kind) {
    case MachineKind::stale:
      return engine_on_stale(std::move(attachment), options, memory);
    case MachineKind::flushed:
      return engine_on_flushed(machine.native_atomics, std::move(attachment), options, memory);
    case MachineKind::coherent:
      break;
  }
  return engine_on_coherent(std::move(attachment), options, memory);
}

}  // namespace tombolo::mpi
