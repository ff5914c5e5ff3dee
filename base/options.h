// SPDX-License-Identifier: Apache-2.0
// Purpose: the settings of a user: one Option for each environment variable, declared by the layer
// that understands it. This is the only place that reads the environment. runtime/options/table.h
// lists every Option, and writes the list as documentation.
//
//   inline constexpr std::string_view ways[] = {"memfd", "nameless", "named"};
//   inline constexpr Option segment_option{.variable = "TOMBOLO_SEGMENT", .choices = ways, ...};
//   TOMBOLO_TRY(check(segment_option, text_of(segment_option)));
//
// Invariants: OP1 a variable that is set to nothing counts as not set.
// Thread safety: as getenv: any thread, while no thread changes the environment.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace tombolo {

struct Option {
  std::string_view variable = {};                  // empty: set by the info key alone
  std::string_view info_key = {};                  // of MPI windows; empty: none
  std::span<const std::string_view> choices = {};  // empty: see `values`
  std::string_view values = {};                    // "a number from 0", "a path"
  std::string_view initial = {};                   // if it is not set; empty: see `meaning`
  std::string_view meaning = {};                   // a sentence or two, in Markdown
};

// The names of a switch, and their meaning.
inline constexpr std::string_view switch_choices[] = {"on",   "off",   "1",   "0",
                                                      "true", "false", "yes", "no"};
std::optional<bool> switch_named(std::string_view name);

// A decimal number from 0 that 64 bits hold; nullopt for anything else.
std::optional<std::uint64_t> number_in(std::string_view text);

// The text in the environment; empty if the variable is not set.
std::string text_of(const Option& option);
bool is_set(const Option& option);
// The names of the variables of the environment that begin so and are set to something.
std::vector<std::string> variables_that_begin(std::string_view start);

// The names separated by commas, or `values`.
std::string values_of(const Option& option);

// Ok, or bad_configuration that names the variable, the text and the allowed ones. An empty text is
// ok. Looks at choices only: the reader of the option checks all else.
Status check(const Option& option, std::string_view text);
// The error for a text that the reader of the option cannot understand.
Status not_understood(const Option& option, std::string_view text);

}  // namespace tombolo
