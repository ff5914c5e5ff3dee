// SPDX-License-Identifier: Apache-2.0
#include "runtime/engines/engines.h"

#include <algorithm>
#include <array>

#include "backends/machines.h"
#include "base/check.h"

namespace tombolo::runtime {

// Defined for each machine in a file that the build writes: engine_on.cpp.in.
template <class Machine>
const ServedMachine& served_machine(bool native_atomics);

namespace {

template <class List>
struct Registry;
template <class... Machines>
struct Registry<TypeList<Machines...>> {
  static constexpr std::array<std::string_view, sizeof...(Machines)> names{Machines::name...};
  static constexpr std::array<const ServedMachine& (*)(bool), sizeof...(Machines)> all{
      &served_machine<Machines>...};
};
using Machines = Registry<ServedMachines>;

}  // namespace

std::span<const std::string_view> machine_names() { return Machines::names; }

std::string_view name(MachineId machine) {
  const auto place = static_cast<std::size_t>(machine);
  TOMBOLO_CHECK(place < Machines::names.size(), "machine {} of {}", place, Machines::names.size());
  return Machines::names[place];
}

std::optional<MachineId> machine_named(std::string_view name) {
  const auto found = std::find(Machines::names.begin(), Machines::names.end(), name);
  if (found == Machines::names.end()) return std::nullopt;
  return static_cast<MachineId>(found - Machines::names.begin());
}

const ServedMachine& served(MachineChoice machine) {
  const auto place = static_cast<std::size_t>(machine.id);
  TOMBOLO_CHECK(place < Machines::all.size(), "machine {} of {}", place, Machines::all.size());
  return Machines::all[place](machine.native_atomics);
}

}  // namespace tombolo::runtime
