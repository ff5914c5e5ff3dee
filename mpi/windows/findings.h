// SPDX-License-Identifier: Apache-2.0
// Purpose: tells the user which bytes the program loses on a machine that sees it: when a window is
// freed, and of all windows when the program finalizes MPI, aborts or exits.
//
// Invariants: FD1 a fact is told once in a job, by the process that comes first; the board of a
//                 window holds the facts of all its processes (machine::TellsLosses).
//             FD2 with TOMBOLO_ON_FINDINGS=fail a process that had a window with a mistake, its own
//                 or another's, and would exit with 0 exits with status_of_findings. Its exit
//                 handlers run, its streams are flushed.
//             FD3 a forked child tells nothing, and exits as it likes.
//             FD4 of windows that are made at one place again and again a process tells a fact
//                 once, and at its end in how many more there was the same.
// Thread safety: as MPI asks of the calls that these stand for.
#pragma once

#include "mpi/windows/mpi_window.h"

namespace tombolo::mpi {

inline constexpr int status_of_findings = 88;

// To be called when a window is made.
void watch_for_exit();
// For the exit status: whether there are mistakes in this window.
void note_mistakes(MpiWindow& window);
// Tells the facts about this window that were not told yet; notes mistakes.
void tell_findings(MpiWindow& window);
// The same for all windows that are served.
void tell_all_findings();

}  // namespace tombolo::mpi
