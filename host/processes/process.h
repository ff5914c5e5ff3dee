// SPDX-License-Identifier: Apache-2.0
// Purpose: names a process so that another process of the same host can tell, much later, whether
// it still lives: its number alone is reused.
//
// Invariants: HP1 has_ended() is true only if the process is certainly dead.
// Thread safety: yes.
#pragma once

#include <cstdint>

namespace tombolo::host {

// `pid`: the number of a process, or 0 for a process on another host. `started`: when it was
// started, in the kernel's ticks since boot; 0 if not known.
struct ProcessName {
  std::int32_t pid = 0;
  std::uint64_t started = 0;

  bool operator==(const ProcessName&) const = default;
};

// The name of the process with this number, which may be the own one. Asks the kernel anew.
ProcessName process_named(std::int32_t pid);

// Dead, reaped or not, or its number is another process's by now. False where the kernel tells
// nothing.
bool has_ended(const ProcessName& process);

// Dead, and its parent has not collected it yet.
bool is_uncollected(const ProcessName& process);

// No process has this number: a system call, where has_ended() reads a file of /proc.
bool number_is_free(const ProcessName& process);

}  // namespace tombolo::host
