// SPDX-License-Identifier: Apache-2.0
// Purpose: the runtime's side of the calls of instrumented code (dsm/compiler/runtime_calls.h):
// which parts of a process have such code, whether its thread is in a span, and the table that
// serves its stores and atomic operations by the program's memory.
//
//   serve_instrumented_code({.memory_of = ..., .first_lock = 64, .locks = 256, .check = &must});
//   extern "C" ... tombolo_dsm_attach(const tombolo_dsm_module* module) { return attach(*module); }
//   ... at each begin and end of a span: tell_instrumented_code(spans);
//
// An atomic operation on the program's memory is one under a lock of its page: whatever its order,
// all stores of the thread before it are seen by the next thread that has an operation on that
// address. Each is stronger than memory_order_seq_cst needs, and fences have nothing to do.
//
// Invariants: DIC1 memory that `memory_of` does not know is this process's, or all processes map
//                  it: there the processor's atomic operations are right.
//             DIC2 two operations on one page have the same lock: so their changes have the
//                  versions of the page in the order in which threads are told of them, and patch
//                  it.
// Thread safety: one thread at a time in each process; its memory is private to the process.
#pragma once

#include <array>
#include <cstddef>

#include "dsm/threads/program_memory.h"

// Of runtime_calls.h, which has names of tombolo/dsm.h.
struct tombolo_dsm_module;
struct tombolo_dsm_runtime;

namespace tombolo::dsm {

struct InstrumentedCode {
  // The memory of the calling thread that caches `address`; null: see DIC1.
  ProgramMemory* (*memory_of)(const void* address) = nullptr;
  // Locks of the memory that nothing else uses.
  Lock first_lock = 0;
  Lock locks = 1;
  // Ends the process unless the status is ok.
  void (*check)(const Status& status) = nullptr;
};

// From now on. Before, all calls are served as without a runtime.
void serve_instrumented_code(const InstrumentedCode& how);

// As tombolo_dsm_attach and tombolo_dsm_detach.
const tombolo_dsm_runtime* attach(const tombolo_dsm_module& module);
void detach(const tombolo_dsm_module& module);

// The parts that are attached. The constructors of libraries attach before this one's have run.
struct AttachedModules {
  struct Module {
    const void* module;
    int* (*in_span)();
  };
  static constexpr std::size_t most = 256;
  std::array<Module, most> modules{};
  std::size_t count = 0;
};
const AttachedModules& attached_modules();
// In a process in which the constructors of the program do not run: those of another one, which has
// the program at the same addresses.
void attach_all(const AttachedModules& modules);

// As an operation of instrumented code. Returns the value that it found.
std::uint64_t change_atomically(void* address, std::size_t bytes, const AtomicChange& change);

// The calling thread is in so many spans.
void tell_instrumented_code(int spans);

}  // namespace tombolo::dsm
