// SPDX-License-Identifier: Apache-2.0
#include "host/interrupts/reserved_signal.h"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "base/check.h"

#if defined(__x86_64__)
// The kernel wants to be told how a handler returns.
extern "C" void tombolo_end_reserved_signal();
__asm__(R"(
  .pushsection .text
  .globl tombolo_end_reserved_signal
  .hidden tombolo_end_reserved_signal
tombolo_end_reserved_signal:
  mov $15, %eax
  syscall
  ud2
  .popsection
)");
#endif

namespace tombolo::host {
namespace {

// As the kernel has it.
struct KernelAction {
  void (*handler)(int, siginfo_t*, void*);
  unsigned long flags;
#if defined(__x86_64__)
  void (*restorer)();
#endif
  std::uint64_t mask;
};

}  // namespace

Status handle_reserved_signal(int signal, void (*handler)(int, siginfo_t*, void*),
                              unsigned long flags) {
  TOMBOLO_CHECK(signal == first_reserved || signal == second_reserved,
                "signal {} is not one that the C library keeps for itself", signal);
  KernelAction action{};
  action.handler = handler;
  action.flags = SA_SIGINFO | SA_ONSTACK | flags;
#if defined(__x86_64__)
  constexpr unsigned long has_restorer = 0x04000000;  // SA_RESTORER
  action.flags |= has_restorer;
  action.restorer = &tombolo_end_reserved_signal;
#endif
  // The C library's sigaction() refuses these signals.
  constexpr std::size_t set_bytes = sizeof action.mask;
  if (syscall(SYS_rt_sigaction, signal, &action, nullptr, set_bytes) == 0) return {};
  return Status::io(fmt::format("sigaction of signal {}: {}", signal, std::strerror(errno)));
}

}  // namespace tombolo::host
