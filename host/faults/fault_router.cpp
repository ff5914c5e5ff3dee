// SPDX-License-Identifier: Apache-2.0
#include "host/faults/fault_router.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <initializer_list>
#include <mutex>
#include <utility>

#include "base/check.h"
#include "host/faults/instruction.h"
#include "host/faults/signal_chain.h"

namespace tombolo::host {
namespace {

struct Caught {
  std::atomic<std::uint64_t> low{0};  // 0: free; written last
  std::atomic<std::uint64_t> high{0};
  std::atomic<FaultTarget*> target{nullptr};
};
constexpr std::size_t most_ranges = 512;

// On pages that the kernel empties in a child (HFR3).
struct Table {
  std::atomic<std::size_t> used{0};  // no range lies behind
  std::array<Caught, most_ranges> ranges;
};
constinit std::atomic<Table*> table{nullptr};

std::mutex& table_mutex() {
  static std::mutex& the_mutex = *new std::mutex;
  return the_mutex;
}

// ---- The program's own actions ------------------------------------------------------------------

// In two places: one that is being read is not changed.
class Earlier {
 public:
  const struct sigaction& get() const { return places_[now_.load(std::memory_order_acquire)]; }
  void set(const struct sigaction& action) {
    const std::size_t next = 1 - now_.load(std::memory_order_relaxed);  // one thread sets
    places_[next] = action;
    now_.store(next, std::memory_order_release);  // a handler reads the place after it
  }

 private:
  std::array<struct sigaction, 2> places_{};
  std::atomic<std::size_t> now_{0};
};
constinit Earlier earlier_segv;
constinit Earlier earlier_bus;
Earlier& earlier(int signal) { return signal == SIGBUS ? earlier_bus : earlier_segv; }

// As if the kernel had called the program's handler.
void hold_back_as(const struct sigaction& action, int signal, const ucontext_t& context) {
  sigset_t mask;
  sigorset(&mask, &context.uc_sigmask, &action.sa_mask);
  if ((action.sa_flags & SA_NODEFER) == 0) sigaddset(&mask, signal);
  pthread_sigmask(SIG_SETMASK, &mask, nullptr);
}

const char* say_nothing(const void*) { return ""; }
constinit std::atomic<const char* (*)(const void*)> explanation{say_nothing};

void name_address(const siginfo_t& info) {
  std::array<char, 240> line;
  const char* const signal = info.si_signo == SIGBUS ? "SIGBUS" : "SIGSEGV";
  const auto end =
      info.si_code == SI_KERNEL
          ? fmt::format_to_n(line.data(), line.size(),
                             "tombolo: the program has used an address that cannot be ({})\n",
                             signal)
          : fmt::format_to_n(line.data(), line.size(),
                             "tombolo: the program has accessed {}, which it may not ({}){}\n",
                             info.si_addr, signal,
                             explanation.load(std::memory_order_acquire)(info.si_addr));
  (void)!write(STDERR_FILENO, line.data(), std::min(end.size, line.size()));
}

// A SIGBUS would come again as SIGBUS.
void end_by_segv(siginfo_t* info) {
  struct sigaction plain {};
  plain.sa_handler = SIG_DFL;
  sigaction(SIGSEGV, &plain, nullptr);
  sigset_t segv;
  sigemptyset(&segv);
  sigaddset(&segv, SIGSEGV);
  pthread_sigmask(SIG_UNBLOCK, &segv, nullptr);
  // Not by getpid(): a program whose threads run in processes has its own.
  syscall(SYS_rt_tgsigqueueinfo, syscall(SYS_getpid), syscall(SYS_gettid), SIGSEGV, info);
}

// `signal` is the one that has come; the program is to be told of that of `info`.
void go_to_program(int signal, siginfo_t* info, void* context) {
  const struct sigaction action = earlier(info->si_signo).get();
  if (has_handler(action))
    hold_back_as(action, info->si_signo, *static_cast<ucontext_t*>(context));
  else if (info->si_code > 0)
    name_address(*info);
  if (!has_handler(action) && signal != info->si_signo) return end_by_segv(info);
  pass_on(info->si_signo, info, context, action);
}

// ---- The handler --------------------------------------------------------------------------------

FaultTarget* target_at(std::uint64_t address) {
  Table* const all = table.load(std::memory_order_acquire);
  const std::size_t used = all->used.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < used; ++i) {
    const Caught& caught = all->ranges[i];
    const std::uint64_t low = caught.low.load(std::memory_order_acquire);
    // relaxed: written before `low`, and not changed while a thread can fault there.
    if (low == 0 || address < low || address >= caught.high.load(std::memory_order_relaxed))
      continue;
    return caught.target.load(std::memory_order_relaxed);
  }
  return nullptr;
}

// Of the executable or a library that is loaded with it: no memory is made for it in a handler.
[[gnu::tls_model("initial-exec")]] constinit thread_local const Fault* current = nullptr;

bool call(FaultTarget& target, const Fault& fault) {
  const Fault* const outer = std::exchange(current, &fault);
  const bool handled = target.on_fault(fault);
  current = outer;
  return handled;
}

void on_signal(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  FaultTarget* const target =
      info->si_code > 0 ? target_at(reinterpret_cast<std::uint64_t>(info->si_addr)) : nullptr;
  if (target == nullptr) {
    go_to_program(signal, info, context);
  } else if (const auto& frame = *static_cast<ucontext_t*>(context);
             !call(*target, {.address = info->si_addr,
                             .kind = kind_of_fault(frame),
                             .instruction = instruction_of(frame)})) {
    siginfo_t segv = *info;
    segv.si_signo = SIGSEGV;  // HFR2
    segv.si_code = SEGV_MAPERR;
    go_to_program(signal, &segv, context);
  }
  errno = error;
}

void install(int signal) {
  struct sigaction action {};
  action.sa_sigaction = on_signal;
  // A fault in a target is one more call of the handler, and not the process's end.
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigfillset(&action.sa_mask);
  for (const int each : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS, SIGABRT})
    sigdelset(&action.sa_mask, each);
  struct sigaction before {};
  sigaction(signal, nullptr, &before);
  earlier(signal).set(before);
  sigaction(signal, &action, nullptr);
}

// ---- The table ----------------------------------------------------------------------------------

Status make_table() {
  if (table.load(std::memory_order_relaxed) != nullptr) return {};  // under the mutex
  void* const pages =
      mmap(nullptr, sizeof(Table), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED)
    return Status::no_memory(fmt::format("catching faults: mmap: {}", std::strerror(errno)));
  if (madvise(pages, sizeof(Table), MADV_WIPEONFORK) != 0) {
    const int error = errno;
    munmap(pages, sizeof(Table));
    return Status::unsupported(fmt::format(
        "catching faults: MADV_WIPEONFORK: {}; it came with Linux 4.14", std::strerror(error)));
  }
  table.store(new (pages) Table, std::memory_order_release);  // for handlers of other threads
  install(SIGSEGV);
  install(SIGBUS);
  return {};
}

}  // namespace

Status catch_faults(const AddressRange& range, FaultTarget& target) {
  const std::lock_guard lock(table_mutex());
  TOMBOLO_TRY(make_table());
  Table& all = *table.load(std::memory_order_relaxed);  // under the mutex, here and below
  auto* const place = std::ranges::find_if(all.ranges, [](const Caught& caught) {
    return caught.low.load(std::memory_order_relaxed) == 0;
  });
  if (place == all.ranges.end())
    return Status::no_memory(fmt::format("faults of {} ranges are caught already", most_ranges));
  place->high.store(range.high, std::memory_order_relaxed);  // told by `low`
  place->target.store(&target, std::memory_order_relaxed);
  place->low.store(range.low, std::memory_order_release);  // a handler reads the rest after it
  const auto needed = static_cast<std::size_t>(place - all.ranges.begin()) + 1;
  if (all.used.load(std::memory_order_relaxed) < needed)
    all.used.store(needed, std::memory_order_release);
  return {};
}

void leave_faults(const AddressRange& range) {
  const std::lock_guard lock(table_mutex());
  Table* const all = table.load(std::memory_order_relaxed);
  if (all == nullptr) return;
  for (Caught& caught : all->ranges)
    if (caught.low.load(std::memory_order_relaxed) == range.low)
      caught.low.store(0, std::memory_order_relaxed);  // the place may be taken; nothing else
}

void set_earlier_action(int signal, const struct sigaction* action, struct sigaction* old) {
  TOMBOLO_CHECK(signal == SIGSEGV || signal == SIGBUS, "signal {} is not one of faults", signal);
  const std::lock_guard lock(table_mutex());
  if (old != nullptr) *old = earlier(signal).get();
  if (action != nullptr) earlier(signal).set(*action);
}

Status tell_faults(const char* (*explain)(const void* address)) {
  const std::lock_guard lock(table_mutex());
  TOMBOLO_TRY(make_table());
  explanation.store(explain, std::memory_order_release);  // a handler calls it
  return {};
}

const Fault* fault_here() { return current; }

}  // namespace tombolo::host
