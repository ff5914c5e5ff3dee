// SPDX-License-Identifier: Apache-2.0
#include "host/stacks/other_stack.h"

#include <sys/mman.h>
#include <ucontext.h>

#include <array>
#include <cstdint>

#include "base/check.h"
#include "host/memory/page.h"

namespace tombolo::host {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool may_switch = false;
#else
constexpr bool may_switch = true;
#endif

struct Call {
  void (*function)(void*);
  void* object;
};

// makecontext() passes ints.
void enter(unsigned high, unsigned low) {
  const auto* call = reinterpret_cast<const Call*>(std::uint64_t{high} << 32 | low);
  call->function(call->object);
}

}  // namespace

OtherStack::OtherStack() {
  if (!may_switch) return;
  void* const start = mmap(nullptr, page_bytes() + bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED) return;
  mprotect(start, page_bytes(), PROT_NONE);
  stack_ = {static_cast<std::byte*>(start) + page_bytes(), bytes};
  own_ = true;
}

OtherStack::OtherStack(std::span<std::byte> memory) {
  if (may_switch) stack_ = memory;
}

OtherStack::~OtherStack() {
  if (own_) munmap(stack_.data() - page_bytes(), page_bytes() + bytes);
}

void OtherStack::run_on_it(void (*function)(void*), void* object) {
  TOMBOLO_CHECK(valid(), "a switch to a stack that does not exist");
  const Call call{function, object};
  const auto address = reinterpret_cast<std::uint64_t>(&call);
  ucontext_t here;
  ucontext_t there;
  TOMBOLO_CHECK(getcontext(&there) == 0, "getcontext failed");
  there.uc_stack.ss_sp = stack_.data();
  there.uc_stack.ss_size = stack_.size();
  there.uc_link = &here;
  makecontext(&there, reinterpret_cast<void (*)()>(&enter), 2, static_cast<unsigned>(address >> 32),
              static_cast<unsigned>(address));
  TOMBOLO_CHECK(swapcontext(&here, &there) == 0, "swapcontext failed");
}

}  // namespace tombolo::host
