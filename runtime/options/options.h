// SPDX-License-Identifier: Apache-2.0
// Purpose: the settings of a program's user: environment variables for the process, info keys for
// a window. The values by name; runtime/options/table.h has their meanings.
// Invariants: SO1 a value that is not understood, and a variable named nearly as a setting, are
//                 complaints: a user of the options stops with them, since a check on another
//                 machine than the one asked for is none.
// Thread safety: plain values; read once.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "runtime/engines/machine_id.h"
#include "sync/locks/lock_kind.h"

namespace tombolo::runtime {

// How the counters of a process are written at its end.
enum class Statistics : std::uint8_t { off, text, json };

struct Options {
  MachineId machine{};
  std::uint64_t seed = 1;
  std::uint64_t evictions = 50;   // 1 in n; 0: none
  bool fail_on_findings = false;  // a process that told of a mistake exits with a status of its own
  Statistics statistics = Statistics::off;
  std::string pool;
  bool native_atomics = true;
  bool atomics_asked = false;  // the user has set it
  sync::LockKind locks{};
  bool backoff = true;
  bool reader_bias = true;
  bool remap = true;
  bool served = true;              // false: all goes to the host MPI
  std::uint64_t atomic_bytes = 0;  // range of target memory under one accumulate lock; 0: default
  bool shared_apart = false;       // each region of shared memory starts on a page
  std::uint64_t alignment = 0;     // of the memory that a window brings, in bytes; 0: of a page
  // Of values that were not understood, and of names that look like a setting's: a sentence each.
  std::vector<std::string> complaints;
};

// Reads the environment. Of variables that other layers read it looks at the choices.
Options read_environment();

// Sets the value that an info key of a window names. bad_configuration if the text is not
// understood, and nothing is changed; ok for keys that are not ours.
Status apply_info(Options& options, std::string_view key, std::string_view text);
// The info keys there are.
std::vector<std::string_view> info_keys();

}  // namespace tombolo::runtime
