// SPDX-License-Identifier: Apache-2.0
// Purpose: the settings of a program's user: environment variables for the process, info keys for
// a window. The fields are those of WindowOptions, which is made of the table of options
// (base/options.toml), and of which all interfaces read some.
// Invariants: SO1 a value that is not understood, and a variable named nearly as a setting, are
//                 complaints: a user of the options stops with them, since a check on another
//                 machine than the one asked for is none.
// Thread safety: plain values; read once.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "runtime/options/window_options.h"

namespace tombolo::runtime {

struct Options : WindowOptions {
  // Of values that were not understood, and of names that look like a setting's: a sentence each.
  std::vector<std::string> complaints{};

  // Whether the machine's own atomics are used, if nothing speaks against them.
  bool native_atomics() const { return atomics.value_or(true); }
};

// Reads the environment, and checks the options that other layers read.
Options read_environment();

// Sets the value that an info key of a window names. bad_configuration if the text is not
// understood, and nothing is changed; ok for keys that are not ours.
Status apply_info(Options& options, std::string_view key, std::string_view text);
// The info keys there are.
std::vector<std::string_view> info_keys();

}  // namespace tombolo::runtime
