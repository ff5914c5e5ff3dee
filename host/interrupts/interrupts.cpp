// SPDX-License-Identifier: Apache-2.0
#include "host/interrupts/interrupts.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "host/faults/instruction.h"
#include "host/faults/signal_chain.h"

namespace tombolo::host {
namespace {

constexpr int signal_number = SIGURG;
// Marks the signals of peers.
constexpr int mark = 0x746d6269;

struct Caught {
  std::atomic<InterruptGate*> gate{nullptr};
  std::atomic<pid_t> process{0};
  std::atomic<pid_t> thread{0};
};
constinit Caught caught;
struct sigaction earlier;

pid_t this_thread() { return static_cast<pid_t>(syscall(SYS_gettid)); }

siginfo_t marked() {
  siginfo_t info{};
  info.si_signo = signal_number;
  info.si_code = SI_QUEUE;
  info.si_pid = getpid();
  info.si_uid = getuid();
  info.si_value.sival_int = mark;
  return info;
}
bool is_marked(const siginfo_t& info) {
  return info.si_code == SI_QUEUE && info.si_value.sival_int == mark;
}

// In the handler, which runs in any thread of the process.
void deliver(const ucontext_t& context) {
  // relaxed: they were stored before `gate`.
  InterruptGate* const gate = caught.gate.load(std::memory_order_acquire);
  const pid_t process = caught.process.load(std::memory_order_relaxed);
  if (gate == nullptr || process != getpid()) return;  // HIN3
  const pid_t thread = caught.thread.load(std::memory_order_relaxed);
  if (thread == this_thread()) return gate->arrive(instruction_of(context));
  siginfo_t info = marked();
  syscall(SYS_rt_tgsigqueueinfo, process, thread, signal_number, &info);
}

void on_signal(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  if (is_marked(*info))
    deliver(*static_cast<ucontext_t*>(context));
  else if (has_handler(earlier))
    pass_on(signal, info, context, earlier);
  errno = error;
}

Status install() {
  struct sigaction action {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  sigfillset(&action.sa_mask);
  for (const int each : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS, SIGABRT})
    sigdelset(&action.sa_mask, each);
  struct sigaction before {};
  if (sigaction(signal_number, nullptr, &before) != 0) before = {};
  // A second gate of this process: the handler is there.
  if ((before.sa_flags & SA_SIGINFO) != 0 && before.sa_sigaction == on_signal) return {};
  earlier = before;
  if (sigaction(signal_number, &action, nullptr) == 0) return {};
  return Status::io(fmt::format("interrupts: sigaction: {}", std::strerror(errno)));
}

int open_process(const ProcessName& process) {
  const auto opened = static_cast<int>(syscall(SYS_pidfd_open, process.pid, 0));
  // Looked at afterwards: the number cannot become another process's unseen (HIN4).
  if (opened < 0 || !has_ended(process)) return opened;
  close(opened);
  return -1;
}

}  // namespace

Status catch_interrupts(InterruptGate& gate) {
  TOMBOLO_TRY(install());
  caught.process.store(getpid(), std::memory_order_relaxed);  // told by `gate`, as below
  caught.thread.store(this_thread(), std::memory_order_relaxed);
  caught.gate.store(&gate, std::memory_order_release);  // the handler reads the rest after it
  return {};
}

void leave_interrupts() { caught.gate.store(nullptr, std::memory_order_release); }

PeerInterrupts::PeerInterrupts(std::vector<ProcessName> processes)
    : processes_(std::move(processes)), descriptors_(processes_.size()) {}

void PeerInterrupts::interrupt(std::size_t rank) {
  Descriptor& descriptor = descriptors_[rank];
  const ProcessName& process = processes_[rank];
  if (process.pid == 0) return;  // on another host
  if (!descriptor.valid()) descriptor.reset(open_process(process));
  siginfo_t info = marked();
  if (descriptor.valid())
    syscall(SYS_pidfd_send_signal, descriptor.get(), signal_number, &info, 0);
  else if (!has_ended(process))  // a kernel without it, or no descriptor is left
    syscall(SYS_rt_sigqueueinfo, process.pid, signal_number, &info);
}

}  // namespace tombolo::host
