// SPDX-License-Identifier: Apache-2.0
// Purpose: finds symbols of the host MPI at run time, wherever and however it was loaded.
// Invariants: SY1 nothing of our own library is ever returned.
//             SY2 a symbol that was not found is looked for again at the next use.
// Thread safety: all functions may be called from any thread.
#pragma once

#include <atomic>
#include <cstddef>

namespace tombolo::mpi {

// The address of `name` in the host MPI, or null. Looks behind us in the load order, then in the
// global scope, then in every loaded object whose file name is that of an MPI library: a program
// (mpi4py) may have loaded its MPI for itself only (RTLD_LOCAL).
void* find_symbol(const char* name);

// A symbol's name as a template argument.
template <std::size_t N>
struct SymbolName {
  // NOLINTNEXTLINE(google-explicit-constructor): written as a plain string literal.
  consteval SymbolName(const char (&from)[N]) {
    for (std::size_t i = 0; i < N; ++i) text[i] = from[i];
  }
  char text[N]{};
};

// find_symbol(Name), remembered: one load and one predicted branch when it was found before.
template <SymbolName Name>
void* host_symbol() {
  static std::atomic<void*> cached{nullptr};
  void* value = cached.load(std::memory_order_acquire);
  if (value == nullptr) [[unlikely]] {
    value = find_symbol(Name.text);
    cached.store(value, std::memory_order_release);
  }
  return value;
}

}  // namespace tombolo::mpi
