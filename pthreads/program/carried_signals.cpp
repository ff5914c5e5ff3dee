// SPDX-License-Identifier: Apache-2.0
#include "pthreads/program/carried_signals.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "host/faults/caught_calls.h"
#include "host/interrupts/reserved_signal.h"

namespace tombolo::dsm {
namespace {

constexpr int carrier = host::second_reserved;
constexpr int withheld[] = {SIGINT, SIGQUIT, SIGHUP, SIGTERM, SIGALRM, SIGWINCH};

// Sets as the kernel has them.
using Set = std::uint64_t;
constexpr std::size_t set_bytes = sizeof(Set);
constexpr Set bit(int number) { return Set{1} << (number - 1); }
constexpr Set all_withheld() {
  Set all = 0;
  for (const int number : withheld) all |= bit(number);
  return all;
}

constexpr Set all_but_faults() {
  Set all = ~Set{0};
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS, SIGTRAP, SIGABRT})
    all &= ~bit(fault);
  return all;
}

Set set_of(const sigset_t& signals) {
  Set set = 0;
  std::memcpy(&set, &signals, sizeof set);
  return set;
}
void give(Set set, sigset_t& out) {
  sigemptyset(&out);
  std::memcpy(&out, &set, sizeof set);
}

// Of the thread that is served and its handlers.
volatile Set program_mask = 0;
std::atomic<Set> waiting{0};  // CSG2
std::atomic<int> come{0};
std::atomic<int> handled{0};
volatile pid_t first_process = 0;
std::atomic<pid_t> served{0};  // read in a handler of any thread
std::atomic<Set> carried{0};   // to this process, and not taken yet
// Not by the kernel's number: a thread whose calls are caught would have to ask for it.
thread_local volatile sig_atomic_t is_served = 0;
bool has_timer = false;
int timer = 0;  // the kernel's

pid_t this_process() { return static_cast<pid_t>(syscall(SYS_getpid)); }

void send_here(int number) { syscall(SYS_tgkill, this_process(), served.load(), number); }

// Those that were not carried are dropped: to the program they are the first thread's (CSG1).
void drop(int number) {
  const Set one = bit(number);
  const timespec at_once{};
  while (syscall(SYS_rt_sigtimedwait, &one, nullptr, &at_once, set_bytes) == number) {
  }
}

void take_carried();

bool is_ignored(int number) {
  const host::CallsPass ours;
  struct sigaction action {};
  sigaction(number, nullptr, &action);
  return action.sa_handler == SIG_IGN || (action.sa_handler == SIG_DFL && number == SIGWINCH);
}

// By the program's action, now. A handler that runs already is interrupted: it may also have been
// left by longjmp().
void run(int number) {
  const Set one = bit(number);
  if (is_ignored(number)) return;
  {
    const host::CallsPass ours;
    drop(number);
    send_here(number);
  }
  ++handled;
  // The program's handler runs within the first call, and its own calls are caught there. Carriers
  // wait meanwhile: they queue, and would come one within the other.
  syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &one, nullptr, set_bytes);
  syscall(SYS_rt_sigprocmask, SIG_BLOCK, &one, nullptr, set_bytes);
}

void deliver(int number) {
  const Set one = bit(number);
  Set now = 0;
  {
    const host::CallsPass ours;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, nullptr, &now, set_bytes);
  }
  // A call has a mask of its own meanwhile, which lets the signal through.
  if ((now & one) == 0) {
    ++handled;
    return send_here(number);
  }
  if ((program_mask & one) == 0) return run(number);
  waiting.fetch_or(one);
  const host::CallsPass ours;
  send_here(number);
}

// The process's, which has a thread that takes it or one that does not hold it back.
void deliver_of_timer(int number) {
  const bool takes = (program_mask & bit(number)) == 0;
  if (takes || first_process == 0) return deliver(number);
  const host::CallsPass ours;
  syscall(SYS_kill, first_process, number);
}

// Of another thread than the one that is served, if there is one by now: it looks when it begins.
// This one's calls are not caught, and it may come at any time of the one whose are: no CallsPass.
void send_on(const siginfo_t* info) {
  const pid_t thread = served.load();
  if (thread != 0 && syscall(SYS_rt_tgsigqueueinfo, this_process(), thread, carrier, info) == 0)
    return;
  if (info->si_code == SI_TIMER && first_process != 0) syscall(SYS_kill, first_process, SIGALRM);
}

void on_carrier(int, siginfo_t* info, void*) {
  const int error = errno;
  const bool is_of_a_timer = info->si_code == SI_TIMER;
  const int number = info->si_value.sival_int;
  if (!is_of_a_timer && is_withheld(number)) carried.fetch_or(bit(number));  // before the look
  if (is_served == 0) {
    send_on(info);
  } else {
    ++come;
    if (is_of_a_timer)
      deliver_of_timer(SIGALRM);
    else
      take_carried();
  }
  errno = error;
}

void take_carried() {
  const Set all = carried.exchange(0);
  for (const int number : withheld)
    if ((all & bit(number)) != 0) deliver(number);
}

Status handle(bool restart) {
  return host::handle_reserved_signal(carrier, &on_carrier, restart ? SA_RESTART : 0);
}

// Whether all handlers of the program want calls that they interrupt to go on.
bool all_restart() {
  for (const int number : withheld) {
    struct sigaction action {};
    sigaction(number, nullptr, &action);
    const bool has_one = action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN;
    if (has_one && (action.sa_flags & SA_RESTART) == 0) return false;
  }
  return true;
}

}  // namespace

bool is_withheld(int number) {
  return number > 0 && number <= 64 && (all_withheld() & bit(number)) != 0;
}

void block_all_but_faults() {
  sigset_t all;
  give(all_but_faults(), all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
}

Status keep_carriers() { return handle(true); }

Status serve_signals(const sigset_t& mask, pid_t first) {
  TOMBOLO_TRY(handle(all_restart()));
  program_mask = set_of(mask);
  waiting = 0;
  first_process = first;
  const Set now = all_but_faults();
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &now, nullptr, set_bytes);
  served = static_cast<pid_t>(syscall(SYS_gettid));
  is_served = 1;
  return {};
}

void let_signals_come() {
  const Set now = program_mask | all_withheld();
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &now, nullptr, set_bytes);
  take_carried();
}

bool signals_are_served() { return is_served != 0; }

void leave_signals() {
  served = 0;
  is_served = 0;
}

NoCarriers::NoCarriers() {
  const Set one = bit(carrier);
  syscall(SYS_rt_sigprocmask, SIG_BLOCK, &one, nullptr, set_bytes);
}
NoCarriers::~NoCarriers() {
  const Set one = bit(carrier);
  syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &one, nullptr, set_bytes);
  carried = 0;  // for the thread that has ended
}

int carry_signal(pid_t process, int number) {
  siginfo_t info{};
  info.si_signo = carrier;
  info.si_code = SI_QUEUE;
  info.si_pid = this_process();
  info.si_uid = getuid();
  info.si_value.sival_int = number;
  return syscall(SYS_rt_sigqueueinfo, process, carrier, &info) == 0 ? 0 : errno;
}

void raise_withheld(int number) { deliver(number); }

int change_mask(int how, const sigset_t* set, sigset_t* old) {
  Set now = 0;
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, nullptr, &now, set_bytes);
  const Set before = (now & ~all_withheld()) | (program_mask & all_withheld());
  if (old != nullptr) give(before, *old);
  if (set == nullptr) return 0;
  const Set given = set_of(*set);
  switch (how) {
    case SIG_BLOCK:
      program_mask = before | given;
      break;
    case SIG_UNBLOCK:
      program_mask = before & ~given;
      break;
    case SIG_SETMASK:
      program_mask = given;
      break;
    default:
      return EINVAL;
  }
  // As the C library does.
  program_mask = program_mask & ~bit(host::first_reserved) & ~bit(host::second_reserved);
  const Set after = program_mask | all_withheld();
  if (syscall(SYS_rt_sigprocmask, SIG_SETMASK, &after, nullptr, set_bytes) != 0) return errno;
  for (const int number : withheld)
    if ((waiting & bit(number) & ~program_mask) != 0) {
      waiting.fetch_and(~bit(number));
      run(number);
    }
  return 0;
}

void have_taken(int number) {
  if (is_withheld(number)) waiting.fetch_and(~bit(number));
}

namespace {

constexpr long ns_per_us = 1000;

itimerval with_us(const itimerspec& left) {
  const auto rounded_up = [](const timespec& time) {
    return timeval{.tv_sec = time.tv_sec, .tv_usec = (time.tv_nsec + ns_per_us - 1) / ns_per_us};
  };
  return {rounded_up(left.it_interval), rounded_up(left.it_value)};
}

}  // namespace

int set_timer(const itimerval& next, itimerval* old) {
  const auto with_ns = [](const timeval& time) {
    return timespec{.tv_sec = time.tv_sec, .tv_nsec = time.tv_usec * ns_per_us};
  };
  if (!has_timer) {
    sigevent event{};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = carrier;
    event.sigev_value.sival_int = SIGALRM;
    if (syscall(SYS_timer_create, CLOCK_REALTIME, &event, &timer) != 0) return errno;
    has_timer = true;
  }
  const itimerspec wanted{.it_interval = with_ns(next.it_interval),
                          .it_value = with_ns(next.it_value)};
  itimerspec left{};
  if (syscall(SYS_timer_settime, timer, 0, &wanted, &left) != 0) return errno;
  if (old != nullptr) *old = with_us(left);
  return 0;
}

int get_timer(itimerval& out) {
  out = {};
  if (!has_timer) return 0;
  itimerspec left{};
  if (syscall(SYS_timer_gettime, timer, &left) != 0) return errno;
  out = with_us(left);
  return 0;
}

Carriers carriers() { return {come, handled}; }

bool carriers_alone(const Carriers& since) {
  return come != since.come && handled == since.handled;
}

}  // namespace tombolo::dsm
