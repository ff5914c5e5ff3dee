// SPDX-License-Identifier: Apache-2.0
// Purpose: the one table of all options that libraries, programs and the `tombolo` command read
// from the environment and from info keys. docs/settings.md is written from it (tombolo-settings).
//
// Invariants: TA1 every variable that any part of Tombolo reads for its users has one row here.
// Thread safety: constants.
#pragma once

#include <span>
#include <string>
#include <variant>

#include "base/options.h"
#include "runtime/options/options.h"

namespace tombolo::runtime {

// Which part reads an option.
enum class Reader : std::uint8_t { library, chip, command };

struct OptionRow {
  Option option;
  Reader reader = Reader::library;
  // Where read_environment() puts the value; none if another layer reads the option itself.
  using Field = std::variant<std::monostate, bool Options::*, std::uint64_t Options::*,
                             std::string Options::*, MachineId Options::*,
                             sync::LockKind Options::*, Statistics Options::*>;
  Field field{};
  // The switch says the opposite of the field.
  bool negated = false;
  // Set if the user has set the option.
  bool Options::*asked = nullptr;
};

std::span<const OptionRow> option_table();

// All of docs/settings.md.
std::string options_as_markdown();
// For programs: {"options": [{"variable": ..., "choices": [...], ...}],
// "machines": ["coherent", ...],
// "lock_families": [{"name": ..., "order": ..., "reader_bias": ...}]}.
std::string options_as_json();

}  // namespace tombolo::runtime
