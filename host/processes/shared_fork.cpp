// SPDX-License-Identifier: Apache-2.0
#include "host/processes/shared_fork.h"

#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>

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

}  // namespace

pid_t fork_sharing_files(int signal) {
  pid_t* const number = own_number();
  unsigned long flags = CLONE_FILES | CLONE_FS | static_cast<unsigned long>(signal);
  if (number != nullptr) flags |= CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID;
#if defined(__aarch64__)
  const long child = syscall(SYS_clone, flags, nullptr, nullptr, nullptr, number);
#else
  const long child = syscall(SYS_clone, flags, nullptr, nullptr, number, nullptr);
#endif
  return static_cast<pid_t>(child);
}

}  // namespace tombolo::host
