// SPDX-License-Identifier: Apache-2.0
// Purpose: a flow of control with its own stack, to which a thread switches and back.
//
//   Fibre here;                              // the thread's own flow
//   Fibre other(65536, &body, &object);      // throws std::bad_alloc
//   here.switch_to(other);                   // runs body(&object) until that switches back
//
// The switch is Boost.Context's (jump_fcontext). Its classes fiber and continuation are not used:
// they enter a new stack once while they are created, which the thread sanitizer cannot be told of,
// and their sanitizer support needs a Boost that was built with ucontext, which distributions'
// packages are not.
//
// Invariants: FB1 switch_to is called on the fibre that runs.
//             FB2 a body never returns: it ends with finish(), after which the fibre may go.
//             FB3 exceptions belong to the fibre: each has its own caught and uncaught ones.
//             FB4 the page below the end of the stack is protected: an overflow ends the program.
// Thread safety: a fibre is used by the thread that created it.
#pragma once

#include <boost/context/detail/fcontext.hpp>
#include <boost/context/stack_context.hpp>
#include <cstddef>

namespace tombolo::host {

class Fibre {
 public:
  using Body = void (*)(void*);

  Fibre();
  Fibre(std::size_t stack_bytes, Body body, void* argument);
  ~Fibre();
  Fibre(const Fibre&) = delete;
  Fibre& operator=(const Fibre&) = delete;

  // Runs `next` from where it stopped; returns when some fibre switches back to this one.
  void switch_to(Fibre& next);
  // The same, never to be switched back to.
  [[noreturn]] void finish(Fibre& next);
  // Whether an access to the address is an overflow of this fibre's stack: it lies in the page of
  // FB4. May be called in a signal handler.
  bool is_overflow(const void* address) const;

 private:
  // The C++ ABI keeps these for each thread (Itanium C++ ABI, 2.2.2).
  struct Exceptions {
    void* caught;
    unsigned int uncaught;
  };

  static void enter(boost::context::detail::transfer_t from);
  void leave(Fibre& next, bool for_good);
  void arrive(boost::context::detail::transfer_t from);

  boost::context::detail::fcontext_t context_ = nullptr;
  boost::context::stack_context stack_;
  Body body_ = nullptr;
  void* argument_ = nullptr;
  Fibre* next_ = nullptr;
  Exceptions exceptions_{};
  // For the sanitizers.
  const void* stack_bottom_ = nullptr;
  std::size_t stack_bytes_ = 0;
  [[maybe_unused]] void* fake_stack_ = nullptr;
  [[maybe_unused]] void* thread_sanitizer_fibre_ = nullptr;
};

}  // namespace tombolo::host
