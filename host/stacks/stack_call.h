// SPDX-License-Identifier: Apache-2.0
// Purpose: calls a function on another stack and comes back, without a system call: for each call
// of a runtime whose callers' stacks lie in memory that it opens and closes.
//
// Invariants: STK1 from the moment the function starts until it has returned, nothing is stored to
//                  the caller's stack but by the function itself, through pointers.
// Limits: x86-64 and arm64. Exceptions must not leave the function.
// Thread safety: a stack is used by one call at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace tombolo::host {

#if defined(__x86_64__) || defined(__aarch64__)
inline constexpr bool calls_on_stacks = true;
#else
inline constexpr bool calls_on_stacks = false;
#endif

namespace detail {

// `top` is a multiple of 16.
[[gnu::noinline]] inline void call_at(std::byte* top, void (*function)(void*), void* object) {
#if defined(__x86_64__)
  asm volatile(
      "movq %%rsp, %%rbx\n\t"
      "movq %[top], %%rsp\n\t"
      "callq *%[function]\n\t"
      "movq %%rbx, %%rsp"
      : "+D"(object), [top] "+S"(top), [function] "+a"(function)
      :
      : "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "cc", "memory", "xmm0", "xmm1", "xmm2",
        "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13",
        "xmm14", "xmm15");
#elif defined(__aarch64__)
  register void* first asm("x0") = object;
  asm volatile(
      "mov x19, sp\n\t"
      "mov sp, %[top]\n\t"
      "blr %[function]\n\t"
      "mov sp, x19"
      : "+r"(first)
      : [top] "r"(top), [function] "r"(function)
      : "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14",
        "x15", "x16", "x17", "x19", "x30", "cc", "memory", "v0", "v1", "v2", "v3", "v4", "v5", "v6",
        "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19",
        "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31");
#else
  (void)top;
  function(object);
#endif
}

}  // namespace detail

template <class F>
void call_on(std::span<std::byte> stack, F&& f) {
  constexpr std::uintptr_t alignment = 16;
  const auto end = reinterpret_cast<std::uintptr_t>(stack.data() + stack.size());
  detail::call_at(
      reinterpret_cast<std::byte*>(end / alignment * alignment),
      [](void* object) { (*static_cast<std::remove_reference_t<F>*>(object))(); }, &f);
}

}  // namespace tombolo::host
