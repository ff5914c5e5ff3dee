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
  TOMBOLO_CHECK(machine.index < Machines::names.size(), "machine {} of {}", machine.index,
                Machines::names.size());
  return Machines::names[machine.index];
}

std::optional<MachineId> machine_named(std::string_view name) {
  const auto found = std::find(Machines::names.begin(), Machines::names.end(), name);
  if (found == Machines::names.end()) return std::nullopt;
  return MachineId{static_cast<std::uint8_t>(found - Machines::names.begin())};
}

const ServedMachine& served(MachineChoice machine) {
  TOMBOLO_CHECK(machine.id.index < Machines::all.size(), "machine {} of {}", machine.id.index,
                Machines::all.size());
  return Machines::all[machine.id.index](machine.native_atomics);
}

}  // namespace tombolo::runtime
