// SPDX-License-Identifier: Apache-2.0
#include "host/images/write_hold.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
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
#include <string_view>
#include <vector>

#include "host/descriptor.h"
#include "host/faults/signal_chain.h"
#include "host/memory/raw_calls.h"

namespace tombolo::host {
namespace {

// The pages that are held. Read in the handler: the range comes before the count, which comes
// before their protection.
constinit std::atomic<std::uint64_t> held_low{0};
constinit std::atomic<std::uint64_t> held_high{0};
constinit std::atomic<std::uint64_t> holds_begun{0};
constinit std::atomic<pid_t> holder{0};  // the thread, which must not wait for itself

// This thread's last access that was tried again after a hold, and the holds begun until then.
struct Tried {
  std::uint64_t at = 0;
  std::uint64_t holds = 0;
};
thread_local constinit Tried tried;

struct sigaction next_action;  // set before the handler is

bool is_held(std::uint64_t at) { return at >= held_low && at < held_high; }

// WH4. The signal may come long after its hold: then the page can be written to by now, as it was
// before the hold.
bool may_be_ours(const siginfo_t& info) {
  if (info.si_code != SEGV_ACCERR || syscall(SYS_gettid) == holder) return false;
  const auto at = reinterpret_cast<std::uint64_t>(info.si_addr);
  const std::uint64_t begun = holds_begun;
  if (is_held(at)) return true;
  if (tried.at == at && tried.holds == begun) return false;
  if (!raw::is_writable(at) && begun == holds_begun) return false;
  tried = {at, begun};
  return true;
}

// As the program's handler has it. When ours returns, the kernel gives the thread its mask back.
void block_as_program() {
  if ((next_action.sa_flags & SA_NODEFER) != 0 && sigismember(&next_action.sa_mask, SIGSEGV) == 0)
    return;
  sigset_t fault;
  sigemptyset(&fault);
  sigaddset(&fault, SIGSEGV);
  pthread_sigmask(SIG_BLOCK, &fault, nullptr);
}

void on_fault(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  if (may_be_ours(*info)) {
    raw::sleep_briefly();  // and the store is tried again
  } else {
    block_as_program();
    pass_on(signal, info, context, next_action);
  }
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
  // A thread that waits in it blocks no faults, so that other holds are not refused.
  ours.sa_flags =
      (now.sa_flags & ~static_cast<int>(SA_RESETHAND)) | SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigdelset(&ours.sa_mask, SIGSEGV);
  installed = sigaction(SIGSEGV, &ours, nullptr) == 0;
  return installed;
}

using Folder = std::unique_ptr<DIR, int (*)(DIR*)>;

std::vector<pid_t> threads_in(DIR* folder) {
  std::vector<pid_t> threads;
  while (const dirent* entry = readdir(folder))
    if (const int thread = std::atoi(entry->d_name); thread > 0) threads.push_back(thread);
  return threads;
}

// The signals that a thread blocks, by the text of its status; all if that does not tell.
std::uint64_t blocked_signals(std::string_view status) {
  constexpr std::string_view key = "SigBlk:";
  std::uint64_t blocked = ~std::uint64_t{0};
  const auto at = status.find(key);
  if (at == std::string_view::npos) return blocked;
  const auto digits = status.find_first_not_of(" \t", at + key.size());
  if (digits != std::string_view::npos)
    std::from_chars(status.data() + digits, status.data() + status.size(), blocked, 16);
  return blocked;
}

bool blocks_faults_now(DIR* folder, pid_t thread) {
  const auto has_ended = [] { return errno == ENOENT || errno == ESRCH; };
  const Descriptor file(
      openat(dirfd(folder), fmt::format("{}/status", thread).c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return !has_ended();
  std::array<char, 65536> status;  // the groups of its user come first
  const ssize_t n = read(file.get(), status.data(), status.size());
  if (n < 0) return !has_ended();
  return (blocked_signals({status.data(), static_cast<std::size_t>(n)}) >> (SIGSEGV - 1) & 1) != 0;
}

// A thread that starts blocks all signals for a moment.
bool blocks_faults(DIR* folder, pid_t thread) {
  for (int i = 0; i < 10; ++i) {
    if (!blocks_faults_now(folder, thread)) return false;
    const timespec briefly{0, 100'000};
    syscall(SYS_nanosleep, &briefly, nullptr);
  }
  return true;
}

// Threads that blocked faults all the time when they were asked last: one is enough for a refusal,
// and it is not waited for again.
class Blocking {
 public:
  bool any(DIR* folder, const std::vector<pid_t>& threads) {
    std::erase_if(threads_, [&](pid_t each) {
      return std::find(threads.begin(), threads.end(), each) == threads.end() ||
             !blocks_faults_now(folder, each);
    });
    if (!threads_.empty()) return true;
    for (const pid_t thread : threads)
      if (blocks_faults(folder, thread)) threads_.push_back(thread);
    return !threads_.empty();
  }

 private:
  std::vector<pid_t> threads_;
};

}  // namespace

// Each thread is asked anew: it may block signals by turns.
OtherThreads other_threads() {
  static std::mutex mutex;
  static Blocking blocking;
  const std::lock_guard lock(mutex);
  const Folder folder(opendir("/proc/self/task"), closedir);
  if (folder == nullptr) return OtherThreads::not_held;
  std::vector<pid_t> threads = threads_in(folder.get());
  if (threads.empty()) return OtherThreads::not_held;
  std::erase(threads, static_cast<pid_t>(syscall(SYS_gettid)));
  if (threads.empty()) return OtherThreads::none;
  if (!handler_is_there() || blocking.any(folder.get(), threads)) return OtherThreads::not_held;
  return OtherThreads::held;
}

bool WriteHold::take(const AddressRange& pages) {
  const OtherThreads others = other_threads();
  if (others == OtherThreads::not_held) return false;
  held_high = 0;  // no range while it is changed
  held_low = pages.low;
  held_high = pages.high;
  ++holds_begun;
  holder = static_cast<pid_t>(syscall(SYS_gettid));
  pages_ = pages;
  if (raw::protect(pages, PROT_READ)) return true;
  release();
  return others == OtherThreads::none;  // copies of other processes are rare
}

void WriteHold::release() {
  if (pages_.empty()) return;
  raw::protect(pages_, PROT_READ | PROT_WRITE);  // WH3
  held_high = 0;
  holder = 0;
  pages_ = {};
}

}  // namespace tombolo::host
