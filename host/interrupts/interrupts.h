// SPDX-License-Identifier: Apache-2.0
// Purpose: a process interrupts a thread of another one, which runs a function of its own and goes
// on: a signal.
//
//   catch_interrupts(gate);                         // in the process that is interrupted
//   PeerInterrupts peers({{pid, started}, ...});    // in the others
//   peers.interrupt(rank);
//
// The signal is SIGURG: a process that has not begun to catch it, or has ended to, ignores it, and
// so does a program that it executes. It comes on the thread's alternate stack, if there is one.
// System calls that it interrupts are restarted, as far as the kernel does so (signal(7): sleeps
// and poll() end with EINTR).
//
// Invariants: HIN1 a signal that a peer has not sent goes to the action that the program had for it
//                  before.
//             HIN2 the other signals of the program wait while the gate is called, but for those of
//                  faults and of abort(). errno is as before.
//             HIN3 a forked child is not interrupted.
//             HIN4 no other process is interrupted in place of one that has died and whose number
//                  it has.
// Thread safety: catch and leave by one thread; a PeerInterrupts belongs to one thread.
#pragma once

#include <cstddef>
#include <vector>

#include "base/status.h"
#include "host/descriptor.h"
#include "host/interrupts/interrupt_gate.h"
#include "host/processes/process.h"

namespace tombolo::host {

// The calling thread is interrupted from now on: one of a process. Errors: io (the kernel refuses
// the handler).
Status catch_interrupts(InterruptGate& gate);
// By that thread. The gate is not called any more when it returns.
void leave_interrupts();

class PeerInterrupts {
 public:
  // By rank.
  explicit PeerInterrupts(std::vector<ProcessName> processes);

  // Returns at once. Several may be served as one. A process that has ended, or does not catch
  // interrupts, is passed over. The first call for a rank may allocate.
  void interrupt(std::size_t rank);

 private:
  std::vector<ProcessName> processes_;
  std::vector<Descriptor> descriptors_;  // opened when they are needed
};

}  // namespace tombolo::host
