// SPDX-License-Identifier: Apache-2.0
#include "host/fibres/fibre.h"

#include <cxxabi.h>

#include <boost/context/protected_fixedsize_stack.hpp>
#include <cstring>

#include "base/check.h"

#if defined(__SANITIZE_ADDRESS__)
#define TOMBOLO_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TOMBOLO_ADDRESS_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define TOMBOLO_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TOMBOLO_THREAD_SANITIZER 1
#endif
#endif
#ifdef TOMBOLO_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef TOMBOLO_THREAD_SANITIZER
#include <sanitizer/tsan_interface.h>
#endif

namespace tombolo::host {

using boost::context::protected_fixedsize_stack;
using boost::context::detail::jump_fcontext;
using boost::context::detail::make_fcontext;
using boost::context::detail::transfer_t;

Fibre::Fibre() {
#ifdef TOMBOLO_THREAD_SANITIZER
  thread_sanitizer_fibre_ = __tsan_get_current_fiber();
#endif
}

Fibre::Fibre(std::size_t stack_bytes, Body body, void* argument)
    : stack_(protected_fixedsize_stack(stack_bytes).allocate()), body_(body), argument_(argument) {
  context_ = make_fcontext(stack_.sp, stack_.size, &Fibre::enter);
  stack_bottom_ = static_cast<const char*>(stack_.sp) - stack_.size;
  stack_bytes_ = stack_.size;
#ifdef TOMBOLO_THREAD_SANITIZER
  thread_sanitizer_fibre_ = __tsan_create_fiber(0);
#endif
}

Fibre::~Fibre() {
  if (body_ == nullptr) return;
#ifdef TOMBOLO_THREAD_SANITIZER
  __tsan_destroy_fiber(thread_sanitizer_fibre_);
#endif
#ifdef TOMBOLO_ADDRESS_SANITIZER
  // Frames that never returned left their marks, and the next stack may get the same addresses.
  __asan_unpoison_memory_region(stack_bottom_, stack_bytes_);
#endif
  protected_fixedsize_stack(stack_bytes_).deallocate(stack_);
}

void Fibre::switch_to(Fibre& next) {
  leave(next, false);
  arrive(jump_fcontext(next.context_, this));
}

void Fibre::finish(Fibre& next) {
  leave(next, true);
  jump_fcontext(next.context_, this);
  TOMBOLO_CHECK(false, "a fibre that had finished was switched to");
  __builtin_unreachable();
}

bool Fibre::is_overflow(const void* address) const {
  if (body_ == nullptr) return false;
  const auto* const at = static_cast<const char*>(address);
  const auto* const bottom = static_cast<const char*>(stack_.sp) - stack_.size;
  return at >= bottom && at < bottom + boost::context::stack_traits::page_size();
}

void Fibre::enter(transfer_t from) {
  Fibre& self = *static_cast<Fibre*>(from.data)->next_;
  self.arrive(from);
  self.body_(self.argument_);
  TOMBOLO_CHECK(false, "the body of a fibre returned instead of calling finish()");
}

void Fibre::leave(Fibre& next, [[maybe_unused]] bool for_good) {
  next_ = &next;
  static_assert(sizeof(Exceptions) == 2 * sizeof(void*));
  std::memcpy(&exceptions_, abi::__cxa_get_globals(), sizeof(exceptions_));
#ifdef TOMBOLO_ADDRESS_SANITIZER
  __sanitizer_start_switch_fiber(for_good ? nullptr : &fake_stack_, next.stack_bottom_,
                                 next.stack_bytes_);
#endif
#ifdef TOMBOLO_THREAD_SANITIZER
  __tsan_switch_to_fiber(next.thread_sanitizer_fibre_, 0);
#endif
}

void Fibre::arrive(transfer_t from) {
  auto& previous = *static_cast<Fibre*>(from.data);
  previous.context_ = from.fctx;
#ifdef TOMBOLO_ADDRESS_SANITIZER
  // Also tells the bounds of a thread's own stack, which only it knows.
  __sanitizer_finish_switch_fiber(fake_stack_, &previous.stack_bottom_, &previous.stack_bytes_);
#endif
  std::memcpy(abi::__cxa_get_globals(), &exceptions_, sizeof(exceptions_));
}

}  // namespace tombolo::host
