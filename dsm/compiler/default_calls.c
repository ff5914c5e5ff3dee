// SPDX-License-Identifier: Apache-2.0
// Purpose: the functions that instrumented code calls, one copy for each executable and shared
// library: they pass the calls on to the runtime, if the process has one. See runtime_calls.h.
//
// All are weak and hidden: an object of the same link may define its own, and no library sees those
// of another.
//
// Invariants: DDC1 the table is set before the module's own constructors run, and not changed
//                  afterwards: calls read it without an order.
//             DDC2 the functions lie in a section of their own, which stays in a program without
//                  symbols: by it the program is known as one whose atomic operations are calls.
// Thread safety: any thread.
#include <stdbool.h>

#include "dsm/compiler/runtime_calls.h"

#define OURS_HIDDEN __attribute__((weak, visibility("hidden")))
#define OURS __attribute__((section("tombolo_calls"))) OURS_HIDDEN

OURS_HIDDEN __thread int tombolo_dsm_in_span = 0;

static const struct tombolo_dsm_runtime* runtime;

// ---- Finding the runtime ------------------------------------------------------------------------

// Both are NULL where they are missing: a program that was linked statically has no runtime.
extern void* dlsym(void* handle, const char* name) __attribute__((weak));

static int* in_span_of_this_thread(void) { return &tombolo_dsm_in_span; }

static const struct tombolo_dsm_module this_module = {
    .version = tombolo_dsm_calls_version,
    .in_span = in_span_of_this_thread,
    .of_address = &this_module,
};

// NULL is RTLD_DEFAULT: the libraries in the order in which they were loaded.
static void* found(const char* name) { return dlsym ? dlsym(NULL, name) : NULL; }

__attribute__((constructor(101))) static void attach(void) {
  const struct tombolo_dsm_runtime* (*to)(const struct tombolo_dsm_module*) = NULL;
  *(void**)&to = found("tombolo_dsm_attach");
  if (to) runtime = to(&this_module);
}

__attribute__((destructor(101))) static void detach(void) {
  void (*from)(const struct tombolo_dsm_module*) = NULL;
  *(void**)&from = found("tombolo_dsm_detach");
  if (from && runtime) from(&this_module);
}

// ---- Stores -------------------------------------------------------------------------------------

OURS void tombolo_dsm_record(const void* address, size_t bytes) {
  if (runtime) runtime->record(address, bytes);
}

OURS void tombolo_dsm_record_lane(const void* address, size_t bytes, int stored) {
  if (stored) tombolo_dsm_record(address, bytes);
}

// ---- Atomics ------------------------------------------------------------------------------------

OURS void tombolo_dsm_atomic_fence(int order) {
  if (runtime)
    runtime->fence(order);
  else
    __atomic_thread_fence(order);
}

// The order of a failed exchange may be neither of those that only stores have.
#define LOADS_AND_STORES(T, N)                                                              \
  OURS T tombolo_dsm_atomic_load_##N(const void* address, int order) {                      \
    if (runtime) return (T)runtime->load(address, N, order);                                \
    return __atomic_load_n((const T*)address, order);                                       \
  }                                                                                         \
  OURS void tombolo_dsm_atomic_store_##N(void* address, T value, int order) {               \
    if (runtime)                                                                            \
      runtime->store(address, N, value, order);                                             \
    else                                                                                    \
      __atomic_store_n((T*)address, value, order);                                          \
  }                                                                                         \
  OURS T tombolo_dsm_atomic_compare_exchange_##N(void* address, T expected, T desired,      \
                                                 int success, int failure) {                \
    if (runtime)                                                                            \
      return (T)runtime->compare_exchange(address, N, expected, desired, success, failure); \
    __atomic_compare_exchange_n((T*)address, &expected, desired, false, success, failure);  \
    return expected;                                                                        \
  }

// `apply` makes the new value of `old` and `operand`.
#define UPDATE(T, N, NAME, APPLY)                                                      \
  OURS T tombolo_dsm_atomic_##NAME##_##N(void* address, T operand, int order) {        \
    if (runtime) return (T)runtime->update(address, N, UPDATE_##NAME, operand, order); \
    T old = __atomic_load_n((T*)address, __ATOMIC_RELAXED);                            \
    while (!__atomic_compare_exchange_n((T*)address, &old, (T)(APPLY), true, order,    \
                                        __ATOMIC_RELAXED)) {                           \
    }                                                                                  \
    return old;                                                                        \
  }
#define UPDATE_exchange tombolo_dsm_exchange
#define UPDATE_fetch_add tombolo_dsm_add
#define UPDATE_fetch_sub tombolo_dsm_sub
#define UPDATE_fetch_and tombolo_dsm_and
#define UPDATE_fetch_or tombolo_dsm_or
#define UPDATE_fetch_xor tombolo_dsm_xor
#define UPDATE_fetch_nand tombolo_dsm_nand
#define UPDATE_fetch_max tombolo_dsm_max
#define UPDATE_fetch_min tombolo_dsm_min
#define UPDATE_fetch_umax tombolo_dsm_umax
#define UPDATE_fetch_umin tombolo_dsm_umin

#define ALL_OF(T, SIGNED, N)                                             \
  LOADS_AND_STORES(T, N)                                                 \
  UPDATE(T, N, exchange, operand)                                        \
  UPDATE(T, N, fetch_add, old + operand)                                 \
  UPDATE(T, N, fetch_sub, old - operand)                                 \
  UPDATE(T, N, fetch_and, old& operand)                                  \
  UPDATE(T, N, fetch_or, old | operand)                                  \
  UPDATE(T, N, fetch_xor, old ^ operand)                                 \
  UPDATE(T, N, fetch_nand, ~(old & operand))                             \
  UPDATE(T, N, fetch_max, (SIGNED)old > (SIGNED)operand ? old : operand) \
  UPDATE(T, N, fetch_min, (SIGNED)old < (SIGNED)operand ? old : operand) \
  UPDATE(T, N, fetch_umax, old > operand ? old : operand)                \
  UPDATE(T, N, fetch_umin, old < operand ? old : operand)

ALL_OF(uint8_t, int8_t, 1)
ALL_OF(uint16_t, int16_t, 2)
ALL_OF(uint32_t, int32_t, 4)
ALL_OF(uint64_t, int64_t, 8)
