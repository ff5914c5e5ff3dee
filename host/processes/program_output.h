// SPDX-License-Identifier: Apache-2.0
// Purpose: the output of a small tool of this host, run by a process that may be anything: with
// threads, with signal handlers, with libraries preloaded.
// Invariants: HO1 the tool gets an environment of its own: no library of this process is preloaded
//                 into it.
//             HO2 it is killed when its time is over.
// Thread safety: yes.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace tombolo::host {

// The stdout of `command`, a program of the PATH and its arguments; nullopt if it cannot
// be started, takes longer than `limit`, or cannot be read.
std::optional<std::string> output_of(const std::vector<std::string>& command,
                                     std::chrono::milliseconds limit);

}  // namespace tombolo::host
