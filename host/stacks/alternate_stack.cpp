// SPDX-License-Identifier: Apache-2.0
#include "host/stacks/alternate_stack.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "host/memory/page.h"

namespace tombolo::host {
namespace {

class ThreadStack {
 public:
  ThreadStack() = default;
  ThreadStack(const ThreadStack&) = delete;
  ThreadStack& operator=(const ThreadStack&) = delete;
  ~ThreadStack() {
    // Functions that run at the exit of the process may still fault.
    if (start_ == nullptr || syscall(SYS_gettid) == getpid()) return;
    stack_t now{};
    if (sigaltstack(nullptr, &now) == 0 && now.ss_sp == stack().ss_sp)
      sigaltstack(&before_, nullptr);
    munmap(start_, page_bytes() + alternate_stack_bytes);
  }

  Status ensure() {
    stack_t now{};
    if (sigaltstack(nullptr, &now) == 0 && (now.ss_flags & SS_DISABLE) == 0 &&
        now.ss_size >= alternate_stack_bytes)
      return {};
    if (start_ == nullptr) TOMBOLO_TRY(allocate());
    const stack_t ours = stack();
    if (sigaltstack(&ours, &before_) == 0) return {};
    return Status::io(fmt::format("sigaltstack: {}", std::strerror(errno)));
  }

 private:
  stack_t stack() const {
    stack_t stack{};
    stack.ss_sp = start_ + page_bytes();
    stack.ss_size = alternate_stack_bytes;
    return stack;
  }
  Status allocate() {
    void* const start = mmap(nullptr, page_bytes() + alternate_stack_bytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED)
      return Status::no_memory(fmt::format("a stack of {} bytes for signals: {}; see ulimit -v",
                                           alternate_stack_bytes, std::strerror(errno)));
    start_ = static_cast<std::byte*>(start);
    mprotect(start_, page_bytes(), PROT_NONE);
    return {};
  }

  std::byte* start_ = nullptr;  // of the page that cannot be accessed
  stack_t before_{};
};

}  // namespace

Status ensure_alternate_stack() {
  static thread_local ThreadStack of_this_thread;
  return of_this_thread.ensure();
}

}  // namespace tombolo::host
