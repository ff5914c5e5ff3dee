// SPDX-License-Identifier: Apache-2.0
// Purpose: a machine that programs may run on, as a number that means the same in all processes of
// a job: its place in the list of backends/machines.h.
// Thread safety: plain values and constants.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace tombolo::runtime {

enum class MachineId : std::uint8_t {};

// The names of all machines, by index: the user's choices.
std::span<const std::string_view> machine_names();
std::string_view name(MachineId machine);
std::optional<MachineId> machine_named(std::string_view name);

}  // namespace tombolo::runtime
