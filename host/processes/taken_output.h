// SPDX-License-Identifier: Apache-2.0
// Purpose: lets a process that is about to end its job wait until the launcher has read its output:
// launchers drop all that lies in a pipe when they kill the job.
// Invariants: OT1 the wait ends: after `limit` the output is given up, for its reader may be
// stopped or stuck.
// Thread safety: any thread.
#pragma once

#include <chrono>
#include <string_view>

namespace tombolo::host {

// True once the reader of `descriptor` has taken every byte that was written to it. True at once
// for files and terminals, which keep their bytes, and for a closed descriptor, which has none.
bool wait_until_taken(int descriptor, std::chrono::milliseconds limit);

// Writes the line to standard error, without stdio, and ends this process as one that has failed
// once the line is taken: the launcher then kills the others of the job.
[[noreturn]] void fail_with(std::string_view line);

}  // namespace tombolo::host
