// SPDX-License-Identifier: Apache-2.0
// Purpose: the calls on signals of the calling thread, where that is not the first one: its process
// holds some of them back that are the first thread's (dsm/world/carried_signals.h).
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>

#include "dsm/pthread/calls.h"
#include "dsm/world/carried_signals.h"

using tombolo::dsm::is_withheld;
using tombolo::dsm::signals_are_served;
using tombolo::dsm::World;

namespace {

bool is_of_another_thread() { return World::here() != nullptr && signals_are_served(); }

int by_errno(int error) {
  if (error == 0) return 0;
  errno = error;
  return -1;
}

}  // namespace

TOMBOLO_PTHREAD_CALL int pthread_sigmask(int how, const sigset_t* set, sigset_t* old) noexcept {
  return is_of_another_thread() ? tombolo::dsm::change_mask(how, set, old)
                                : TOMBOLO_HOST(pthread_sigmask)(how, set, old);
}

TOMBOLO_PTHREAD_CALL int sigprocmask(int how, const sigset_t* set, sigset_t* old) noexcept {
  return by_errno(pthread_sigmask(how, set, old));
}

TOMBOLO_PTHREAD_CALL int raise(int number) noexcept {
  if (!is_of_another_thread() || !is_withheld(number)) return TOMBOLO_HOST(raise)(number);
  tombolo::dsm::raise_withheld(number);
  return 0;
}

TOMBOLO_PTHREAD_CALL int setitimer(__itimer_which_t which, const itimerval* next,
                                   itimerval* old) noexcept {
  if (!is_of_another_thread() || which != ITIMER_REAL || next == nullptr)
    return TOMBOLO_HOST(setitimer)(which, next, old);
  return by_errno(tombolo::dsm::set_timer(*next, old));
}

TOMBOLO_PTHREAD_CALL unsigned alarm(unsigned seconds) noexcept {
  if (!is_of_another_thread()) return TOMBOLO_HOST(alarm)(seconds);
  itimerval left{};
  if (tombolo::dsm::set_timer({{}, {.tv_sec = seconds, .tv_usec = 0}}, &left) != 0) return 0;
  // A part of a second is one.
  return static_cast<unsigned>(left.it_value.tv_sec + (left.it_value.tv_usec != 0 ? 1 : 0));
}
