// SPDX-License-Identifier: Apache-2.0
#include "host/faults/caught_calls.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <initializer_list>

#include "base/check.h"

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59  // 5.11
#endif
#ifndef SYS_USER_DISPATCH
#define SYS_USER_DISPATCH 2
#endif

#if defined(__x86_64__)

// Code whose calls the kernel does not catch.
//   tombolo_make_call   number in rdi, the arguments at rsi; returns the kernel's result
//   tombolo_call_here   in the place of a caught call: returns to tombolo_call_resumes
//   tombolo_end_signal  at the end of a handler
extern "C" {
long tombolo_make_call(long number, const std::uint64_t* arguments);
void tombolo_call_here();
void tombolo_end_signal();
extern char tombolo_calls_begin[];
extern char tombolo_calls_end[];
extern std::uint64_t tombolo_call_resumes;
}
__asm__(R"(
  .pushsection .text
  .globl tombolo_calls_begin, tombolo_calls_end
  .globl tombolo_make_call, tombolo_call_here, tombolo_end_signal
  .hidden tombolo_calls_begin, tombolo_calls_end
  .hidden tombolo_make_call, tombolo_call_here, tombolo_end_signal, tombolo_call_resumes
tombolo_calls_begin:
tombolo_make_call:
  mov %rdi, %rax
  mov %rsi, %r11
  mov (%r11), %rdi
  mov 8(%r11), %rsi
  mov 16(%r11), %rdx
  mov 24(%r11), %r10
  mov 32(%r11), %r8
  mov 40(%r11), %r9
  syscall
  ret
tombolo_call_here:
  syscall
  jmp *tombolo_call_resumes(%rip)
tombolo_end_signal:
  mov $15, %eax
  syscall
  ud2
tombolo_calls_end:
  .popsection
)");
std::uint64_t tombolo_call_resumes = 0;

namespace tombolo::host {
namespace {

constexpr char pass = 0;    // SYSCALL_DISPATCH_FILTER_ALLOW
constexpr char caught = 1;  // SYSCALL_DISPATCH_FILTER_BLOCK

// Of the thread that is caught, or will be; the kernel reads it at each call.
constinit volatile char selector = pass;
constinit CallTarget* the_target = nullptr;

constexpr std::size_t mask_bytes = 8;  // of the kernel's signal sets

// As the kernel has it.
struct KernelAction {
  void (*handler)(int, siginfo_t*, void*);
  unsigned long flags;
  void (*restorer)();
  std::uint64_t mask;
};
constexpr unsigned long has_restorer = 0x04000000;  // SA_RESTORER

long make(long number, const std::array<std::uint64_t, 6>& arguments) {
  return tombolo_make_call(number, arguments.data());
}
std::uint64_t bits(const volatile void* at) { return reinterpret_cast<std::uint64_t>(at); }

// Those that begin on another stack, and those about the handler's own: the handler cannot make
// them.
bool is_of_its_place(long number) {
  constexpr long clone3 = 435;
  return number == SYS_clone || number == SYS_vfork || number == SYS_fork || number == clone3 ||
         number == SYS_sigaltstack;
}

// How many calls and faults have come: a handler of the program that makes neither leaves the
// memory of an interrupted call's arguments as it is.
constinit volatile std::uint64_t events = 0;

constexpr std::uint64_t all_but_faults = [] {
  std::uint64_t all = ~std::uint64_t{0};
  for (const int each : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS, SIGABRT})
    all &= ~(std::uint64_t{1} << (each - 1));
  return all;
}();

bool ask(SystemCall& call) {
  const CallsPass of_the_target;
  return the_target->before(call);
}

// With the program's mask (HCC1), which the call may change. False: a handler of the program has
// run since the target was asked, and has changed things; nothing was made.
bool make_as_program(SystemCall& call, sigset_t* mask) {
  const std::uint64_t known = events;
  make(SYS_rt_sigprocmask, {SIG_SETMASK, bits(mask), 0, mask_bytes});
  if (events == known) {
    call.result = make(call.number, call.arguments);
    make(SYS_rt_sigprocmask, {SIG_SETMASK, 0, bits(mask), mask_bytes});
    if (call.result != -EFAULT || events == known) return true;
  }
  make(SYS_rt_sigprocmask, {SIG_SETMASK, bits(&all_but_faults), 0, mask_bytes});
  return false;
}

void on_call(int, siginfo_t* info, void* context) {
  events = events + 1;
  auto& state = *static_cast<ucontext_t*>(context);
  greg_t* const registers = state.uc_mcontext.gregs;
  const int error = errno;
  SystemCall call{.number = info->si_syscall,
                  .arguments = {static_cast<std::uint64_t>(registers[REG_RDI]),
                                static_cast<std::uint64_t>(registers[REG_RSI]),
                                static_cast<std::uint64_t>(registers[REG_RDX]),
                                static_cast<std::uint64_t>(registers[REG_R10]),
                                static_cast<std::uint64_t>(registers[REG_R8]),
                                static_cast<std::uint64_t>(registers[REG_R9])}};
  if (call.number == SYS_rt_sigreturn) {
    registers[REG_RIP] = static_cast<greg_t>(bits(reinterpret_cast<void*>(&tombolo_end_signal)));
    return;
  }
  const SystemCall asked = call;
  bool made = ask(call);
  errno = error;
  if (made && is_of_its_place(call.number)) {
    tombolo_call_resumes = static_cast<std::uint64_t>(registers[REG_RIP]);
    registers[REG_RAX] = call.number;
    registers[REG_RIP] = static_cast<greg_t>(bits(reinterpret_cast<void*>(&tombolo_call_here)));
    return;
  }
  while (made && !make_as_program(call, &state.uc_sigmask)) {
    call = asked;
    made = ask(call);
    errno = error;
  }
  if (made) {
    const CallsPass of_the_target;
    the_target->after(call);
    errno = error;
  }
  registers[REG_RAX] = call.result;
}

void (*router)(int, siginfo_t*, void*) = nullptr;

// In front of the handler of faults (HCC2).
void on_fault(int signal, siginfo_t* info, void* context) {
  events = events + 1;
  const CallsPass of_the_handler;
  router(signal, info, context);
}

Status install(int signal, void (*handler)(int, siginfo_t*, void*)) {
  KernelAction action{.handler = handler,
                      .flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER | has_restorer,
                      .restorer = &tombolo_end_signal,
                      .mask = all_but_faults};
  if (syscall(SYS_rt_sigaction, signal, &action, nullptr, mask_bytes) == 0) return {};
  return Status::unsupported(fmt::format("sigaction: {}", std::strerror(errno)));
}

Status install_all() {
  struct sigaction now {};
  sigaction(SIGSEGV, nullptr, &now);
  TOMBOLO_CHECK((now.sa_flags & SA_SIGINFO) != 0, "system calls are caught before faults are");
  if (now.sa_sigaction != &on_fault) router = now.sa_sigaction;
  TOMBOLO_TRY(install(SIGSEGV, &on_fault));
  TOMBOLO_TRY(install(SIGBUS, &on_fault));
  return install(SIGSYS, &on_call);
}

Status dispatch(bool on) {
  const auto begin = on ? bits(tombolo_calls_begin) : 0;
  const auto bytes = on ? bits(tombolo_calls_end) - bits(tombolo_calls_begin) : 0;
  const auto at = on ? bits(&selector) : 0;
  if (prctl(PR_SET_SYSCALL_USER_DISPATCH, on ? 1L : 0L, begin, bytes, at) == 0) return {};
  return Status::unsupported(
      fmt::format("catching system calls: {}; it came with Linux 5.11", std::strerror(errno)));
}

}  // namespace

bool calls_pass() { return selector == pass; }

long call_uncaught(long number, const std::array<std::uint64_t, 6>& arguments) {
  return make(number, arguments);
}

CallsPass::CallsPass() : before_(selector) { selector = pass; }
CallsPass::~CallsPass() { selector = before_; }

Status can_catch_calls() {
  const CallsPass nothing_is_caught;
  TOMBOLO_TRY(dispatch(true));
  return dispatch(false);
}

Status catch_calls(CallTarget& target) {
  the_target = &target;
  selector = pass;
  TOMBOLO_TRY(install_all());
  TOMBOLO_TRY(dispatch(true));
  selector = caught;
  return {};
}

void leave_calls() {
  selector = pass;
  (void)dispatch(false);
}

}  // namespace tombolo::host

#else

namespace tombolo::host {

bool calls_pass() { return true; }

long call_uncaught(long number, const std::array<std::uint64_t, 6>& arguments) {
  const auto& [a, b, c, d, e, f] = arguments;
  const long result = syscall(number, a, b, c, d, e, f);
  return result == -1 ? -errno : result;
}

CallsPass::CallsPass() : before_(0) {}
CallsPass::~CallsPass() { before_ = 0; }

Status can_catch_calls() {
  return Status::unsupported("catching system calls: it is there on x86-64 alone");
}
Status catch_calls(CallTarget&) { return can_catch_calls(); }
void leave_calls() {}

}  // namespace tombolo::host

#endif
