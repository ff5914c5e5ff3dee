// SPDX-License-Identifier: Apache-2.0
// Purpose: runs a function on another stack, while no byte of the caller's changes: for replacing
// the memory that the caller's stack lies in, and for a fork after which the child's is replaced.
//
//   OtherStack stack;
//   if (stack.valid()) stack.run([&] { ... });
//
// Invariants: OS1 from the moment the function starts until run() returns, nothing is stored to the
//                 caller's stack but by the function itself, through pointers and references.
// Thread safety: an object is used by one thread at a time. The function must not throw.
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>

namespace tombolo::host {

class OtherStack {
 public:
  static constexpr std::size_t bytes = std::size_t{256} * 1024;

  OtherStack();
  // On memory of the caller's, which outlives it.
  explicit OtherStack(std::span<std::byte> memory);
  ~OtherStack();
  OtherStack(const OtherStack&) = delete;
  OtherStack& operator=(const OtherStack&) = delete;

  // False if there is no memory for it, or if a sanitizer must know all stacks.
  bool valid() const { return !stack_.empty(); }

  // To be called on a valid one.
  template <class F>
  void run(F&& f) {
    run_on_it([](void* object) { (*static_cast<std::remove_reference_t<F>*>(object))(); }, &f);
  }

 private:
  void run_on_it(void (*call)(void*), void* object);

  std::span<std::byte> stack_;
  bool own_ = false;  // with a page before the stack that cannot be accessed
};

}  // namespace tombolo::host
