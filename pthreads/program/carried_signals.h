// SPDX-License-Identifier: Apache-2.0
// Purpose: signals for the thread of one process of a program. The kernel gives those of a terminal
// to all processes, but to the program they are one, whose first thread has them: so the other
// threads hold these back (*withheld* ones: INT, QUIT, HUP, TERM, ALRM and WINCH). One that is
// meant for such a thread comes to its process by a *carrier*, a signal that no program can hold
// back, and is taken there as the program's mask and action say.
//
//   keep_carriers();                  // in the first process
//   serve_signals(mask, first);       // by the thread of a process, when it starts
//   let_signals_come();               // when handlers of the program can run
//   carry_signal(process, SIGTERM);   // in another one
//   raise_withheld(SIGTERM);          // by the thread itself
//   change_mask(SIG_UNBLOCK, ...);    // in the place of pthread_sigmask()
//
// Invariants: CSG1 a withheld signal that was not carried is never taken by such a thread, but by a
//                  call that waits for signals or has a mask of its own (sigwait, ppoll).
//             CSG2 a carried one that the program's mask holds back waits until the mask changes,
//                  or a call takes it.
//             CSG3 the carrier itself is not seen: a call that it ends without a handler of the
//                  program goes on (carriers_alone()).
// Limits: system calls are restarted as the actions say if these are alike in that: else none is.
// Thread safety: the thread that is served; carry_signal() by any.
#pragma once

#include <signal.h>
#include <sys/time.h>
#include <sys/types.h>

#include "base/status.h"

namespace tombolo::dsm {

bool is_withheld(int number);

// It acts on the calling thread, where a process runs none of the program.
void block_all_but_faults();

// In the first process, before the others are forked: a carrier may come before the thread is
// served, which has it then. Errors: io.
Status keep_carriers();
// `mask`: the program's. `first`: the process that has the signals of this one's timers while the
// mask holds them back, or 0. All signals but those of faults wait from now on. Errors: io.
Status serve_signals(const sigset_t& mask, pid_t first);
// By that thread, when the program's handlers can run: the mask is the program's from now on, and
// those that have come before are taken.
void let_signals_come();
// Whether the calling thread is the one.
bool signals_are_served();
void leave_signals();

// As long as it lives the calling thread, which waits for the end of the one that is served, has no
// carrier. Those that the other one has not taken are dropped at the end.
class NoCarriers {
 public:
  NoCarriers();
  ~NoCarriers();
  NoCarriers(const NoCarriers&) = delete;
  NoCarriers& operator=(const NoCarriers&) = delete;
};

// 0, or an error's number.
int carry_signal(pid_t process, int number);
// To the calling thread.
void raise_withheld(int number);
// As pthread_sigmask().
int change_mask(int how, const sigset_t* set, sigset_t* old);
// A call that waits for signals has returned this one.
void have_taken(int number);
// SIGALRM to this process, as setitimer(ITIMER_REAL) says. 0, or an error's number.
int set_timer(const itimerval& next, itimerval* old);
// As getitimer(ITIMER_REAL) tells of it.
int get_timer(itimerval& out);

// How many carriers have come, and how many have made a handler run.
struct Carriers {
  int come = 0;
  int handled = 0;
};
Carriers carriers();
// Whether carriers have come since then, and no handler of the program has run for them.
bool carriers_alone(const Carriers& since);

}  // namespace tombolo::dsm
