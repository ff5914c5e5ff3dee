// SPDX-License-Identifier: Apache-2.0
// Purpose: how much memory this process can still get, asked before a segment is created, so that
// too large a segment is refused with a reason instead of a SIGBUS or a killed process later.
//
// Invariants: MR1 the answer is an upper bound at the moment of the call: pages that others were
//                 promised and have not touched yet are not counted, except this process's own
//                 (Promise).
//             MR2 a limit that cannot be read (no /proc, no descriptor left) is none: to go on
//                 may end in a SIGBUS, but to refuse would end all jobs of such a host.
// Thread safety: yes.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

namespace tombolo::host {

struct MemoryRoom {
  static constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t bytes = unlimited;  // also where no limit is known
  std::string limit;                // the limit that was found, for the message
};

// The least of free memory and swap of the host and of the limits of this process's control groups
// (version 1 and 2). `root` replaces "/" in tests.
MemoryRoom memory_room(const std::string& root = "/");

// True if the kernel grants no more memory than it has (vm.overcommit_memory = 2). Then only
// reserved pages are safe: untouched ones may be refused at the first touch.
bool strict_overcommit(const std::string& root = "/");

// Counts the bytes of anonymous segments that this process has created and still holds.
// memory_room() subtracts the part of them that cannot have been touched yet.
void promise_memory(std::uint64_t bytes);
void release_promise(std::uint64_t bytes);

}  // namespace tombolo::host
