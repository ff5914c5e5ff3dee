// SPDX-License-Identifier: Apache-2.0
// Purpose: brings the system calls of a thread to an object before the kernel has them, also those
// that the C library makes inside of its functions: for programs whose memory has pages that are
// closed to the kernel, too (guarded_memory.h: EFAULT).
//
//   struct Calls : CallTarget { bool before(SystemCall& call) override { ... } };
//   TOMBOLO_TRY(catch_calls(calls));         // those of this thread, from now on
//   { const CallsPass pass; write(...); }    // not this one
//
// By Syscall User Dispatch: the kernel sends SIGSYS instead, and the handler makes the call. That
// takes about a microsecond more for each call.
//
// Invariants: HCC1 a call is made as the program would have made it: with its mask of signals, so
//                  that a handler of the program's may interrupt it, and with its errors.
//             HCC2 calls of the handlers of faults (fault_router.h) are not caught.
//             HCC3 processes and threads that the thread starts are not caught. Those that begin on
//                  a stack of their own, as posix_spawn() starts them, run as without this.
// Limits: x86-64, Linux 5.11. The program leaves SIGSYS alone.
// Thread safety: one thread of a process at a time is caught.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/status.h"

namespace tombolo::host {

struct SystemCall {
  static constexpr std::size_t room_bytes = 1088;

  long number = 0;
  std::array<std::uint64_t, 6> arguments{};
  long result = 0;  // of a call that was made, or is not to be made
  // For lists that take the place of the program's: a handler that interrupts the call makes its
  // own calls with room of their own.
  alignas(16) std::array<std::byte, room_bytes> room{};
  std::uint64_t given = 0;  // an argument whose place one in the room has taken
};

class CallTarget {
 public:
  virtual ~CallTarget() = default;
  // In the handler of a signal, on the thread's alternate stack if it has one, while all signals
  // wait but those of faults. True: the call is to be made, with the arguments as they are now. It
  // is asked once more where a handler of the program has made a call or met a fault meanwhile: the
  // arguments are the program's again.
  virtual bool before(SystemCall& call) = 0;
  // In the same place, with the result of a call that was made.
  virtual void after(const SystemCall&) {}
};

// Whether this kernel can. Errors: unsupported.
Status can_catch_calls();

// After catch_faults(). `target` outlives the calls. Errors: unsupported.
Status catch_calls(CallTarget& target);
// The calling thread's go to the kernel again.
void leave_calls();

// Whether the calls of the thread that is caught go to the kernel now.
bool calls_pass();

// Makes this call of the kernel, whether the thread's are caught or not, and changes nothing in
// that: where it lets a signal through, the calls of the program's handler are caught as before.
// Returns the kernel's result, an error as -errno.
long call_uncaught(long number, const std::array<std::uint64_t, 6>& arguments);

// As long as it lives this thread's calls go to the kernel.
class CallsPass {
 public:
  CallsPass();
  ~CallsPass();
  CallsPass(const CallsPass&) = delete;
  CallsPass& operator=(const CallsPass&) = delete;

 private:
  char before_;
};

}  // namespace tombolo::host
