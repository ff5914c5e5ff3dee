// SPDX-License-Identifier: Apache-2.0
// Purpose: a section of a thread that no signal handler of the program interrupts: a handler could
// store to memory that moves meanwhile, or wait for a lock that the thread itself holds.
//
//   const NoSignals none;
//   const std::lock_guard lock(mutex);
//
// Thread safety: an object belongs to its thread.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace tombolo::host {

// The signals that this thread has blocked, which the caller gives back.
inline sigset_t block_signals() {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  // These come from the thread's own instructions and calls, and end it if they are blocked.
  for (const int own : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS}) sigdelset(&all, own);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  return before;
}
inline void give_back_signals(const sigset_t& before) {
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

class NoSignals {
 public:
  NoSignals() = default;
  ~NoSignals() { give_back_signals(before_); }
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;

 private:
  const sigset_t before_ = block_signals();
};

}  // namespace tombolo::host
