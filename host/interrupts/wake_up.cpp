// SPDX-License-Identifier: Apache-2.0
#include "host/interrupts/wake_up.h"

#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

#include "host/faults/caught_calls.h"
#include "host/interrupts/reserved_signal.h"

namespace tombolo::host {
namespace {

constexpr int the_signal = first_reserved;
constexpr std::size_t set_bytes = sizeof(std::uint64_t);  // of the kernel's
constexpr timespec again{.tv_sec = 0, .tv_nsec = 10'000'000};

volatile sig_atomic_t woken = 0;
volatile sig_atomic_t repeats = 0;
volatile sig_atomic_t restarts = 0;
int timer = 0;                 // the kernel's, while it repeats
std::atomic<pid_t> served{0};  // read in a handler of any thread
// Not by the kernel's number: a thread whose calls are caught would have to ask for it.
thread_local volatile sig_atomic_t is_served = 0;

// WKU1
void repeat() {
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event._sigev_un._tid = served.load();
  event.sigev_signo = the_signal;
  const itimerspec often{.it_interval = again, .it_value = again};
  if (syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &timer) != 0) return;
  repeats = 1;
  syscall(SYS_timer_settime, timer, 0, &often, nullptr);
}

void stop() {
  if (repeats != 0) syscall(SYS_timer_delete, timer);
  repeats = 0;
}

void on_wake_up(int, siginfo_t*, void*) {
  const int error = errno;
  if (is_served == 0) {
    const pid_t thread = served.load();
    if (thread != 0) syscall(SYS_tgkill, syscall(SYS_getpid), thread, the_signal);  // WKU3
    errno = error;
    return;
  }
  const CallsPass ours;
  woken = 1;
  if (repeats == 0 && restarts == 0) repeat();
  errno = error;
}

Status install() {
  return handle_reserved_signal(the_signal, &on_wake_up, restarts != 0 ? SA_RESTART : 0);
}

}  // namespace

Status serve_wake_ups() {
  TOMBOLO_TRY(install());
  served = static_cast<pid_t>(syscall(SYS_gettid));
  is_served = 1;
  return {};
}

bool wake_ups_are_served() { return is_served != 0; }

bool wake_up(pid_t process) { return kill(process, the_signal) == 0; }

bool has_been_woken() { return woken != 0; }

bool will_be_woken() {
  const CallsPass ours;
  std::uint64_t waiting = 0;
  syscall(SYS_rt_sigpending, &waiting, set_bytes);
  return has_been_woken() || (waiting >> (the_signal - 1) & 1) != 0;
}

void forget_wake_ups() {
  const CallsPass ours;
  stop();
  woken = 0;
}

void leave_wake_ups() {
  served = 0;
  is_served = 0;
  forget_wake_ups();
  restart_after_wake_ups(false);
}

void restart_after_wake_ups(bool restart) {
  const CallsPass ours;
  const bool changes = (restarts != 0) != restart;
  restarts = restart ? 1 : 0;
  if (changes) (void)install().ok();  // another time the kernel has taken it
  if (restart) stop();
  if (!restart && woken != 0 && repeats == 0) repeat();
}

}  // namespace tombolo::host
