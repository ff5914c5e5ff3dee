// SPDX-License-Identifier: Apache-2.0
// Purpose: the calls between a program that was compiled with store instrumentation and the
// runtime of virtual shared memory (003 section 5.6).
//
//   calls of instrumented code     tombolo_dsm_record, tombolo_dsm_atomic_*, and one flag. Each
//                                  executable and shared library that was linked by a wrapper has
//                                  functions of these names of its own (default_calls.c).
//   calls of the runtime           tombolo_dsm_attach and tombolo_dsm_detach. Those functions look
//                                  for them when the program starts, and pass their calls on
//                                  to the table that attach returns. Without a runtime they record
//                                  nothing, and their atomics are the processor's: an ordinary
//                                  program of Pthreads.
//
// So a runtime that is preloaded serves a program that was linked without it.
//
// Invariants: DRC1 a recorded byte is one that the thread stores in the span, or has stored: never
//                  a neighbour that it leaves alone, whose older value would travel with the lock.
//             DRC2 an atomic operation on memory that other threads may know is a call, in all
//                  variants. Its operands are unsigned, and narrower ones are extended by zeros.
// Thread safety: any thread may call these functions at any time.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// ---- Calls of instrumented code -----------------------------------------------------------------

// Not zero while this thread holds a lock. The runtime sets it, through tombolo_dsm_module.
extern __thread int tombolo_dsm_in_span;

// The thread stores these bytes next, or has just stored them (calls of the C library whose result
// says how many). Outside of spans, and for addresses that are not shared, it does nothing. `bytes`
// may be 0.
void tombolo_dsm_record(const void* address, size_t bytes);
// One lane of a vector that is stored under a mask: recorded if `stored` is not zero.
void tombolo_dsm_record_lane(const void* address, size_t bytes, int stored);

// Operations on N bytes, N in 1, 2, 4, 8 (uint8_t to uint64_t), at an address that is a multiple of
// N. `order` is one of __ATOMIC_RELAXED to __ATOMIC_SEQ_CST. All but store return the former value.
//
//   uintN_t tombolo_dsm_atomic_load_N(const void* address, int order);
//   void    tombolo_dsm_atomic_store_N(void* address, uintN_t value, int order);
//   uintN_t tombolo_dsm_atomic_exchange_N(void* address, uintN_t value, int order);
//   uintN_t tombolo_dsm_atomic_fetch_OP_N(void* address, uintN_t operand, int order);
//             OP: add, sub, and, or, xor, nand, max, min (signed), umax, umin
//   uintN_t tombolo_dsm_atomic_compare_exchange_N(void* address, uintN_t expected,
//                                                 uintN_t desired, int success, int failure);
//             it has stored `desired` if the result is `expected`; it fails for no other reason
//   void    tombolo_dsm_atomic_fence(int order);

// ---- Calls of the runtime -----------------------------------------------------------------------

enum { tombolo_dsm_calls_version = 1 };

// In the order of the operations that the compiler knows.
enum tombolo_dsm_update {
  tombolo_dsm_exchange,
  tombolo_dsm_add,
  tombolo_dsm_sub,
  tombolo_dsm_and,
  tombolo_dsm_or,
  tombolo_dsm_xor,
  tombolo_dsm_nand,
  tombolo_dsm_max,
  tombolo_dsm_min,
  tombolo_dsm_umax,
  tombolo_dsm_umin,
};

// One executable or shared library with instrumented code. It stays where it is until it is
// detached.
struct tombolo_dsm_module {
  int version;             // tombolo_dsm_calls_version of this module
  int* (*in_span)(void);   // the flag of the calling thread in this module
  const void* of_address;  // an address in the module, for messages that name it
};

// How the runtime serves the calls above. `bytes` is 1, 2, 4 or 8.
struct tombolo_dsm_runtime {
  void (*record)(const void* address, size_t bytes);
  uint64_t (*load)(const void* address, size_t bytes, int order);
  void (*store)(void* address, size_t bytes, uint64_t value, int order);
  uint64_t (*update)(void* address, size_t bytes, enum tombolo_dsm_update, uint64_t operand,
                     int order);
  uint64_t (*compare_exchange)(void* address, size_t bytes, uint64_t expected, uint64_t desired,
                               int success, int failure);
  void (*fence)(int order);
};

// Called before the constructors of the module. The table is valid until the process ends. NULL:
// this runtime has no calls of that version, and the module goes on without it.
const struct tombolo_dsm_runtime* tombolo_dsm_attach(const struct tombolo_dsm_module* module);
void tombolo_dsm_detach(const struct tombolo_dsm_module* module);

#ifdef __cplusplus
}
#endif
