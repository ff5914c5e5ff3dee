// SPDX-License-Identifier: Apache-2.0
// Purpose: the address of the instruction that a signal has interrupted, from its frame: the one
// that runs next. A fault's is that of the access, which is tried again. 0 on a processor that is
// not here.
// Thread safety: for use in signal handlers.
#pragma once

#include <ucontext.h>

#include <cstdint>

namespace tombolo::host {

inline std::uint64_t instruction_of(const ucontext_t& context) {
#if defined(__x86_64__)
  return static_cast<std::uint64_t>(context.uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return context.uc_mcontext.pc;
#else
  (void)context;
  return 0;
#endif
}

}  // namespace tombolo::host
