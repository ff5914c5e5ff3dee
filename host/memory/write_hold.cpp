// SPDX-License-Identifier: Apache-2.0
#include "host/memory/write_hold.h"

#include <dirent.h>
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <vector>

#include "host/faults/signal_chain.h"
#include "host/memory/raw_calls.h"

namespace tombolo::host {
namespace {

constexpr std::int64_t second_ns = 1'000'000'000;

// Pages that are held or were lately: the signal for a store may come late. Read in the handler.
struct Held {
  std::atomic<std::uint64_t> low{0};
  std::atomic<std::uint64_t> high{0};
  std::atomic<std::int64_t> released_ns{0};  // 0 while held

  bool may_be(std::uint64_t at, std::int64_t now) const {
    const std::int64_t released = released_ns;
    return at >= low && at < high && (released == 0 || now - released < second_ns);
  }
};
constinit std::array<Held, 256> lately_held;
constinit std::atomic<std::size_t> last{0};  // of `lately_held`, counted on
constinit std::atomic<pid_t> holder{0};      // the thread, which must not wait for itself

struct sigaction next_action;  // set before the handler is

std::int64_t now_ns() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * second_ns + now.tv_nsec;
}

bool may_be_ours(const siginfo_t& info) {
  if (info.si_code != SEGV_ACCERR || syscall(SYS_gettid) == holder) return false;
  const auto at = reinterpret_cast<std::uint64_t>(info.si_addr);
  const std::int64_t now = now_ns();
  return std::any_of(lately_held.begin(), lately_held.end(),
                     [&](const Held& h) { return h.may_be(at, now); });
}

void on_fault(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  if (may_be_ours(*info))
    sched_yield();  // and the store is tried again
  else
    pass_on(signal, info, context, next_action);
  errno = error;
}

// False if the program has put its own handler over ours.
bool handler_is_there() {
  static bool installed = false;
  struct sigaction now = {};
  if (sigaction(SIGSEGV, nullptr, &now) != 0) return false;
  if (installed) return (now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == on_fault;
  next_action = now;
  struct sigaction ours = now;
  ours.sa_sigaction = on_fault;
  ours.sa_flags = (now.sa_flags & ~static_cast<int>(SA_RESETHAND)) | SA_SIGINFO | SA_ONSTACK;
  installed = sigaction(SIGSEGV, &ours, nullptr) == 0;
  return installed;
}

// Empty if the kernel does not tell.
std::vector<pid_t> threads_here() {
  std::vector<pid_t> threads;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc/self/task"), closedir);
  if (folder == nullptr) return threads;
  while (const dirent* entry = readdir(folder.get()))
    if (const int thread = std::atoi(entry->d_name); thread > 0) threads.push_back(thread);
  return threads;
}

bool blocks_faults_now(pid_t thread) {
  std::string status;
  if (!read_proc(fmt::format("/proc/self/task/{}/status", thread), status).ok())
    return false;  // it has ended
  constexpr std::string_view key = "SigBlk:";
  const auto at = status.find(key);
  if (at == std::string::npos) return true;
  const auto digits = status.find_first_not_of(" \t", at + key.size());
  std::uint64_t blocked = ~std::uint64_t{0};
  if (digits != std::string::npos)
    std::from_chars(status.data() + digits, status.data() + status.size(), blocked, 16);
  return (blocked >> (SIGSEGV - 1) & 1) != 0;
}

// A thread that starts blocks all signals for a moment.
bool blocks_faults(pid_t thread) {
  for (int i = 0; i < 10; ++i) {
    if (!blocks_faults_now(thread)) return false;
    const timespec briefly{0, 100'000};
    nanosleep(&briefly, nullptr);
  }
  return true;
}

enum class Others { none, held, not_held };

// Whether other threads would wait at a fault. Those that were seen to are not asked again.
Others other_threads() {
  static std::mutex mutex;
  static std::vector<pid_t> known;
  const std::lock_guard lock(mutex);
  std::vector<pid_t> threads = threads_here();
  if (threads.empty()) return Others::not_held;
  std::erase(threads, static_cast<pid_t>(syscall(SYS_gettid)));
  if (threads.empty()) return Others::none;
  if (!handler_is_there()) return Others::not_held;
  for (const pid_t thread : threads)
    if (std::find(known.begin(), known.end(), thread) == known.end() && blocks_faults(thread))
      return Others::not_held;
  known = std::move(threads);
  return Others::held;
}

}  // namespace

bool can_hold_writes() { return other_threads() != Others::not_held; }

bool WriteHold::take(const AddressRange& pages) {
  const Others others = other_threads();
  if (others == Others::not_held) return false;
  Held& next = lately_held[++last % lately_held.size()];
  next.high = 0;  // no range while it is changed
  next.low = pages.low;
  next.released_ns = 0;
  next.high = pages.high;
  holder = static_cast<pid_t>(syscall(SYS_gettid));
  pages_ = pages;
  if (raw::protect(pages, PROT_READ)) return true;
  release();
  return others == Others::none;  // copies of other processes are rare
}

void WriteHold::release() {
  if (pages_.empty()) return;
  raw::protect(pages_, PROT_READ | PROT_WRITE);  // WH3
  lately_held[last % lately_held.size()].released_ns = now_ns();
  holder = 0;
  pages_ = {};
}

}  // namespace tombolo::host
