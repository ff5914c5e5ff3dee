// SPDX-License-Identifier: Apache-2.0
#include "host/processes/thread_fence.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "base/check.h"

namespace tombolo::host {
namespace {

bool called(int command) { return syscall(SYS_membarrier, command, 0, 0) == 0; }

bool registered() { return called(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED); }

// The kernel may lack memory for a moment.
bool fenced() {
  while (!called(MEMBARRIER_CMD_PRIVATE_EXPEDITED)) {
    if (errno != ENOMEM) return false;
    sched_yield();
  }
  return true;
}

bool ask() { return registered() && fenced(); }

}  // namespace

bool can_fence_threads() {
  // Of the process that has asked, twice its number and the answer: a forked child may have a
  // filter of its own. relaxed: threads that ask at the same time get the same.
  static constinit std::atomic<std::uint64_t> answer{0};
  const auto self = static_cast<std::uint64_t>(getpid());
  std::uint64_t known = answer.load(std::memory_order_relaxed);
  if (known / 2 != self) {
    known = 2 * self + (ask() ? 1 : 0);
    answer.store(known, std::memory_order_relaxed);
  }
  return known % 2 != 0;
}

void fence_threads() {
  // Of the threads that run, the caller among them; others pass one when they are put aside.
  if (fenced()) [[likely]]
    return;
  // A forked child may have to register again.
  const bool again = errno == EPERM && ask();
  TOMBOLO_CHECK(again,
                "membarrier: the kernel allowed it before, and refuses it now ({}): a filter of "
                "system calls that is set while families run has to allow it",
                std::strerror(errno));
}

}  // namespace tombolo::host
