// SPDX-License-Identifier: Apache-2.0
// Purpose: the calls on signals of the calling thread, where that is not the first one: its process
// holds some of them back that are the first thread's (pthreads/program/carried_signals.h).
#include <signal.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

#include "pthreads/calls/calls.h"
#include "pthreads/program/carried_signals.h"

using tombolo::dsm::is_withheld;
using tombolo::dsm::refuse;
using tombolo::dsm::signals_are_served;
using tombolo::dsm::ThreadedProgram;

namespace {

bool is_of_another_thread() { return ThreadedProgram::here() != nullptr && signals_are_served(); }

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

TOMBOLO_PTHREAD_CALL int getitimer(__itimer_which_t which, itimerval* out) noexcept {
  if (!is_of_another_thread() || which != ITIMER_REAL || out == nullptr)
    return TOMBOLO_HOST(getitimer)(which, out);
  return by_errno(tombolo::dsm::get_timer(*out));
}

TOMBOLO_PTHREAD_CALL useconds_t ualarm(useconds_t first, useconds_t interval) noexcept {
  if (!is_of_another_thread()) return TOMBOLO_HOST(ualarm)(first, interval);
  constexpr useconds_t us_per_s = 1'000'000;
  const auto time = [](useconds_t us) {
    return timeval{.tv_sec = us / us_per_s, .tv_usec = us % us_per_s};
  };
  itimerval left{};
  if (by_errno(tombolo::dsm::set_timer({time(interval), time(first)}, &left)) != 0)
    return static_cast<useconds_t>(-1);
  return static_cast<useconds_t>(left.it_value.tv_sec) * us_per_s +
         static_cast<useconds_t>(left.it_value.tv_usec);
}

// Timers are each process's own.
TOMBOLO_PTHREAD_CALL int timer_create(clockid_t clock, sigevent* event, timer_t* out) noexcept {
  const bool by_a_thread = event != nullptr && event->sigev_notify == SIGEV_THREAD;
  if (ThreadedProgram::here() != nullptr && by_a_thread)
    return by_errno(refuse("timer_create with SIGEV_THREAD",
                           "the C library would run its function in a thread that is none of the "
                           "program; a thread that sleeps, or a signal, are there"));
  const bool is_held_back =
      event == nullptr || (event->sigev_notify != SIGEV_NONE && is_withheld(event->sigev_signo));
  if (is_of_another_thread() && is_held_back)
    return by_errno(refuse("timer_create",
                           "in other threads than the first it cannot send INT, QUIT, HUP, TERM, "
                           "ALRM or WINCH; setitimer, and other signals, are there"));
  return TOMBOLO_HOST(timer_create)(clock, event, out);
}

TOMBOLO_PTHREAD_CALL unsigned alarm(unsigned seconds) noexcept {
  if (!is_of_another_thread()) return TOMBOLO_HOST(alarm)(seconds);
  itimerval left{};
  if (tombolo::dsm::set_timer({{}, {.tv_sec = seconds, .tv_usec = 0}}, &left) != 0) return 0;
  // A part of a second is one.
  return static_cast<unsigned>(left.it_value.tv_sec + (left.it_value.tv_usec != 0 ? 1 : 0));
}
