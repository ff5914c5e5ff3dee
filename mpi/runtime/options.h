// SPDX-License-Identifier: Apache-2.0
// Purpose: what the user may set: environment variables for the process, info keys for a window.
// Invariants: N1 an unknown value is reported once, on stderr by rank 0, and the default is used.
// Thread safety: plain values; read once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sync/locks/lock_kind.h"

namespace tombolo::mpi {

enum class MachineKind : std::uint8_t { coherent, flushed, stale };

struct Options {
  MachineKind machine = MachineKind::coherent;  // TOMBOLO_MACHINE
  std::uint64_t seed = 1;                       // TOMBOLO_SEED
  std::uint64_t evictions = 50;                 // TOMBOLO_EVICTIONS, 1 in n; 0: none
  bool stats = false;                           // TOMBOLO_STATS
  std::string pool;                             // TOMBOLO_POOL
  bool native_atomics = true;                   // TOMBOLO_ATOMICS=full|none
  bool atomics_asked = false;                   // it is set
  sync::LockKind locks{};                       // TOMBOLO_PASSIVE_SYNC
  bool backoff = true;                          // TOMBOLO_BACKOFF
  bool reader_bias = true;                      // TOMBOLO_READER_BIAS
  bool remap = true;                            // TOMBOLO_REMAP
  bool remap_asked = false;                     // it is set
  bool served = true;                           // TOMBOLO_DISABLE=1: forward all
  std::vector<std::string> complaints;          // of values not understood
};

// Reads the environment.
Options read_environment();

// The values by name; nullopt for an unknown name.
std::optional<MachineKind> machine_named(std::string_view name);
std::optional<sync::LockKind> locks_named(std::string_view name);
std::optional<bool> switch_named(std::string_view name);  // on, off, 1, 0, true, false, yes, no
const char* name(MachineKind machine);
const char* name(sync::LockKind locks);

}  // namespace tombolo::mpi
