// SPDX-License-Identifier: Apache-2.0
// Purpose: a runtime of the tests of store instrumentation: for each part of a program between two
// calls that begin or end spans, it prints which bytes of the shared memory have changed and which
// have been recorded, as hexadecimal digits, one for four bytes. It is compared with a twin.
//
// The program has one thread, and names its shared memory: `shared_memory`, `shared_bytes`. Linked
// with a program, it takes the place of the library's mutexes.
//
//   part DEPTH CHANGED RECORDED     at each begin and end of a span; outside of spans nothing
//   records NUMBER                  at the end: calls of tombolo_dsm_record in spans
//   outside NUMBER                  and outside
//
// Thread safety: one thread.
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dsm/compiler/runtime_calls.h"

extern unsigned char shared_memory[];
extern const size_t shared_bytes;

enum { most_bytes = 1 << 16 };
static unsigned char twin[most_bytes];
static unsigned char recorded[most_bytes];
static unsigned char changed[most_bytes];
static int depth;
static long records[2];

__thread int tombolo_dsm_in_span;

void tombolo_dsm_record(const void* address, size_t bytes) {
  ++records[depth == 0];
  const unsigned char* first = address;
  for (size_t i = 0; i < bytes; ++i)
    if (first + i >= shared_memory && first + i < shared_memory + shared_bytes)
      recorded[first + i - shared_memory] = 1;
}

static void print_bits(const unsigned char* bytes) {
  for (size_t i = 0; i < shared_bytes; i += 4)
    printf("%x", bytes[i] | bytes[i + 1] << 1 | bytes[i + 2] << 2 | bytes[i + 3] << 3);
}

static void end_part(void) {
  if (depth > 0) {
    for (size_t i = 0; i < shared_bytes; ++i) changed[i] = twin[i] != shared_memory[i];
    printf("part %d ", depth);
    print_bits(changed);
    printf(" ");
    print_bits(recorded);
    printf("\n");
  }
  memset(recorded, 0, sizeof recorded);
  memcpy(twin, shared_memory, shared_bytes);
}

static int begin(void) {
  end_part();
  tombolo_dsm_in_span = ++depth;
  return 0;
}

int pthread_mutex_lock(pthread_mutex_t* mutex) {
  mutex->__data.__lock = 1;
  return begin();
}

int pthread_mutex_trylock(pthread_mutex_t* mutex) {
  if (mutex->__data.__lock) return EBUSY;
  return pthread_mutex_lock(mutex);
}

int pthread_mutex_unlock(pthread_mutex_t* mutex) {
  mutex->__data.__lock = 0;
  end_part();
  tombolo_dsm_in_span = --depth;
  return 0;
}

__attribute__((constructor)) static void check_size(void) {
  if (shared_bytes > most_bytes || shared_bytes % 4 != 0) abort();
}

__attribute__((destructor)) static void print_counts(void) {
  printf("records %ld\noutside %ld\n", records[0], records[1]);
}
