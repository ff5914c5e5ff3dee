// SPDX-License-Identifier: Apache-2.0
// Purpose: private to this folder: a machine of backends/machines.h as ServedMachine. The build has
// a file for each machine that instantiates it, so that the code of one machine lies together.
// Thread safety: stateless.
#pragma once

#include <array>
#include <memory_resource>
#include <tuple>
#include <utility>

#include "base/type_list.h"
#include "runtime/engines/attachment.h"
#include "runtime/engines/engines.h"
#include "windows/window.h"

namespace tombolo::runtime {

template <class Machine, class C>
class Served final : public ServedMachine {
 public:
  Traits traits() const override {
    Traits traits{.coherent = C::properties.coherent,
                  .keeps_views_apart = machine::KeepsViewsApart<C>,
                  .maps_parts = machine::MapsParts<C>,
                  .names_sites = machine::NamesSites<C>,
                  .tells_losses = machine::TellsLosses<C>,
                  // Built atomics have one number for each process.
                  .serves_threads = C::properties.native_atomics == machine::Atomics::full};
    if constexpr (requires { Machine::takes_pools; }) traits.takes_pools = Machine::takes_pools;
    return traits;
  }

  Status available() const override {
    if constexpr (requires { Machine::available(); }) return Machine::available();
    return {};
  }

  std::size_t sync_bytes(machine::Home cores) const override {
    return windows::Window<C>::sync_bytes(cores);
  }

  std::size_t shared_bytes(std::span<const machine::DataRegion> regions) const override {
    if constexpr (machine::WantsSharedMemory<C>) return C::shared_bytes(regions);
    return 0;
  }

  EnginePointer engine(machine::Attachment attachment, Particulars particulars,
                       const windows::EngineOptions& options,
                       std::pmr::memory_resource& memory) const override {
    return EnginePointer(std::pmr::polymorphic_allocator<>(&memory).new_object<windows::Window<C>>(
        attachment_of<C>(std::move(attachment), std::move(particulars)), options));
  }
};

// The core types of a machine, as objects.
template <class Machine, class Cores>
struct ServedCores;
template <class Machine, class... Cores>
struct ServedCores<Machine, TypeList<Cores...>> {
  static const ServedMachine& choose(bool native_atomics) {
    static const std::tuple<Served<Machine, Cores>...> all;
    const std::array<const ServedMachine*, sizeof...(Cores)> by_type{
        &std::get<Served<Machine, Cores>>(all)...};
    constexpr std::array<machine::Atomics, sizeof...(Cores)> atomics{
        Cores::properties.native_atomics...};
    for (std::size_t i = 0; i < by_type.size(); ++i)
      if ((atomics[i] == machine::Atomics::full) == native_atomics) return *by_type[i];
    return *by_type[0];
  }
};

// Instantiated in a file of its own for each machine, and declared where it is used.
template <class Machine>
const ServedMachine& served_machine(bool native_atomics) {
  return ServedCores<Machine, typename Machine::Cores>::choose(native_atomics);
}

}  // namespace tombolo::runtime
