// SPDX-License-Identifier: Apache-2.0
#include "host/processes/shared_fork.h"

#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>

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

// `before` and `after` come one with the other, or not at all.
void call_around(std::atomic<void (*)()> AroundFork::*which) {
  for (AroundFork& each : around)
    if (void (*const handler)() = (each.*which).load(); handler != nullptr) handler();
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
  call_around(&AroundFork::before);
  pid_t* const number = own_number();
  unsigned long flags = CLONE_FILES | CLONE_FS | static_cast<unsigned long>(signal);
  if (number != nullptr) flags |= CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID;
#if defined(__aarch64__)
  const long child = syscall(SYS_clone, flags, nullptr, nullptr, nullptr, number);
#else
  const long child = syscall(SYS_clone, flags, nullptr, nullptr, number, nullptr);
#endif
  if (child == 0) return 0;
  const int error = errno;
  call_around(&AroundFork::after);
  errno = error;
  return static_cast<pid_t>(child);
}

}  // namespace tombolo::host
