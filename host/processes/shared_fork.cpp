// SPDX-License-Identifier: Apache-2.0
#include "host/processes/shared_fork.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <tuple>

#include "base/check.h"

namespace tombolo::host {
namespace {

// The place where the C library keeps this thread's number, which has no name: the one word of the
// thread's descriptor that holds it. Null if there is none, or more.
pid_t* own_number() {
  constexpr std::size_t words = 512;  // of a descriptor of 2304 bytes (glibc 2.36)
  const auto number = static_cast<pid_t>(syscall(SYS_gettid));
  auto* const descriptor = reinterpret_cast<pid_t*>(pthread_self());
  pid_t* found = nullptr;
  for (std::size_t i = 0; i < words; ++i) {
    if (descriptor[i] != number) continue;
    if (found != nullptr) return nullptr;
    found = &descriptor[i];
  }
  return found;
}

struct AroundFork {
  std::atomic<void (*)()> before{nullptr};
  std::atomic<void (*)()> after{nullptr};
};
constinit std::array<AroundFork, 8> around;
constinit std::atomic<std::size_t> count_around{0};

using Handlers = std::array<void (*)(), std::tuple_size_v<decltype(around)>>;

// In the order of pthread_atfork(). The handlers for after the fork: another thread may add one
// meanwhile, whose `before` was not called.
Handlers call_before() {
  Handlers after{};
  for (std::size_t i = around.size(); i-- > 0;) {
    void (*const before)() = around[i].before.load();
    if (before == nullptr) continue;
    after[i] = around[i].after.load();
    before();
  }
  return after;
}
void call_after(const Handlers& handlers) {
  for (void (*const after)() : handlers)
    if (after != nullptr) after();
}

}  // namespace

void around_forks(void (*before)(), void (*after)(), void (*in_child)()) {
  const std::size_t at = count_around++;
  TOMBOLO_CHECK(at < around.size(), "handlers of forks: there is room for {}", around.size());
  around[at].after = after;
  around[at].before = before;
  TOMBOLO_CHECK(pthread_atfork(before, after, in_child) == 0, "pthread_atfork: no memory");
}

pid_t fork_sharing_files(int signal) {
  sigset_t signals;  // handlers may block some for the time of the fork
  pthread_sigmask(SIG_BLOCK, nullptr, &signals);
  const Handlers after = call_before();
  pid_t* const number = own_number();
  unsigned long flags = CLONE_FILES | CLONE_FS | static_cast<unsigned long>(signal);
  if (number != nullptr) flags |= CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID;
#if defined(__aarch64__)
  const long child = syscall(SYS_clone, flags, nullptr, nullptr, nullptr, number);
#else
  const long child = syscall(SYS_clone, flags, nullptr, nullptr, number, nullptr);
#endif
  if (child == 0) {
    pthread_sigmask(SIG_SETMASK, &signals, nullptr);
    return 0;
  }
  const int error = errno;
  call_after(after);
  errno = error;
  return static_cast<pid_t>(child);
}

}  // namespace tombolo::host
