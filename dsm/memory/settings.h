// SPDX-License-Identifier: Apache-2.0
// Purpose: the settings of a program on virtual shared memory, as its user gives them: how its
// processes share memory, and how much.
// Thread safety: plain values; read_settings() as getenv.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/status.h"
#include "dsm/protocol/shape.h"
#include "dsm/threads/program_memory.h"

namespace tombolo::dsm {

// In the order of the choices of runtime/options/dsm_options.h.
enum class TransportKind : std::uint8_t { map, window, mpi };
enum class ProtocolKind : std::uint8_t { regional, sequential };

// Trivially copyable: all processes take those of process 0.
struct Settings {
  TransportKind transport = TransportKind::map;
  ProtocolKind protocol = ProtocolKind::regional;
  Thread servers = 0;  // processes of the job that are memory servers
  std::uint64_t memory_bytes = std::uint64_t{1} << 30;   // of the program
  std::uint64_t cache_bytes = std::uint64_t{256} << 20;  // of each thread
  // The needs of the layer above, not of the user.
  Lock locks = 1024;
  WordIndex words = 4096;
  bool timed = false;   // waits are timed, and pages are counted one by one
  bool traced = false;  // events are kept for a trace
};

// Those of the environment. bad_configuration for values that are not understood.
Status read_settings(Settings& out);
// The number of memory servers alone.
Status read_servers(Thread& out);

// "4096", "64KiB", "512MiB", "2GiB" and the like, with K, M, G or T alone meaning the same; nullopt
// for anything else, and for more than 64 bits hold.
std::optional<std::uint64_t> bytes_in(std::string_view text);

}  // namespace tombolo::dsm
