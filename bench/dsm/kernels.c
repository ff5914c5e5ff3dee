// SPDX-License-Identifier: Apache-2.0
// Kernels of threaded programs on virtual shared memory, and with -DPTHREADS on that of one
// process: the same source, but for the calls in team.h.
//
//   kernels PROGRAM VARIANT [SIZE [TIMES]]
//
// With -DCOPIES the programs that move memory between threads do so by memcpy, which the others are
// compared with.
//
// Thread 0 prints a line {"program": ..., "variant": ..., "threads": n, "seconds": s, "check": c}:
// the time of the kernel alone, or of one round of it, and a number that is the same for all
// memories.
#include <stdint.h>

#include "bench/dsm/kernel.h"
#include "bench/dsm/lu.h"
#include "bench/dsm/molecular_dynamics.h"

// ---- Jacobi: the mean of four neighbours, in 100 sweeps of a square --------------------------

static double sweep(const double* from, double* to, size_t n, struct rows rows) {
  double change = 0;
  for (size_t y = rows.first < 1 ? 1 : rows.first; y < rows.last && y < n - 1; ++y)
    for (size_t x = 1; x < n - 1; ++x) {
      const size_t i = y * n + x;
      to[i] = 0.25 * (from[i - 1] + from[i + 1] + from[i - n] + from[i + n]);
      change += (to[i] - from[i]) * (to[i] - from[i]);
    }
  return change;
}

static double jacobi(const struct kernel* kernel, double* check) {
  const size_t n = kernel->size;
  double* const a = shared(n * n * sizeof *a);
  double* const b = shared(n * n * sizeof *b);
  double* const slots = shared((size_t)kernel->times * sizeof *slots);
  const struct rows mine = share(n);
  for (size_t y = mine.first; y < mine.last; ++y)
    for (size_t x = 0; x < n; ++x) a[y * n + x] = b[y * n + x] = y == 0 ? 1.0 : 0.0;
  barrier();
  const double start = now();
  for (int i = 0; i < kernel->times; ++i)
    *check = total(kernel, i % 2 == 0 ? sweep(a, b, n, mine) : sweep(b, a, n, mine), &slots[i]);
  return now() - start;
}

// ---- STREAM's four, warm: a thread's parts of all vectors are its own -------------------------

static void stream_round(char program, const struct rows* mine, double* a, double* b, double* c,
                         double factor) {
  switch (program) {
    case 'c':
      for (size_t i = mine->first; i < mine->last; ++i) c[i] = a[i];
      break;
    case 's':
      for (size_t i = mine->first; i < mine->last; ++i) b[i] = factor * c[i];
      break;
    case 'a':
      for (size_t i = mine->first; i < mine->last; ++i) c[i] = a[i] + b[i];
      break;
    default:
      for (size_t i = mine->first; i < mine->last; ++i) a[i] = b[i] + factor * c[i];
  }
}

static double stream(const struct kernel* kernel, double* check) {
  const size_t n = kernel->size;
  double* const a = shared(n * sizeof *a);
  double* const b = shared(n * sizeof *b);
  double* const c = shared(n * sizeof *c);
  const struct rows mine = share(n);
  double start = 0;
  for (size_t i = mine.first; i < mine.last; ++i) a[i] = 2, b[i] = (double)i, c[i] = 1;
  for (int round = -2; round < kernel->times; ++round) {
    if (round == 0) start = now();
    stream_round(kernel->program[0], &mine, a, b, c, round + 3);
    barrier();
  }
  const double seconds = (now() - start) / kernel->times;
  *check = a[n - 1] + b[n - 1] + c[n - 1];
  return seconds;
}

// ---- Moving memory, beside memcpy between two threads with Pthreads ---------------------------

// Of a copy to memory that is there already, where one was measured.
static double seconds_there;

#ifdef COPIES
// The seconds of a copy of `all`, of 8-byte numbers whose sum becomes `found`. Its memory is new:
// the kernel has yet to find and clear it, as that of a page cache. Then it is copied once more.
static double copying(const uint64_t* all, size_t bytes, uint64_t* found) {
  uint64_t* const copy = malloc(bytes);
  const double start = now();
  memcpy(copy, all, bytes);
  const double seconds = now() - start;
  for (size_t i = 0; i < bytes / sizeof *copy; ++i) *found += copy[i];
  const double again = now();
  memcpy(copy, all, bytes);
  seconds_there = now() - again;
  if (memcmp(copy, all, bytes) != 0) abort();  // else the compiler may leave the second copy out
  free(copy);
  return seconds;
}
#endif

// ---- Cold memory: thread 0 stores, and the last thread reads, or copies with Pthreads ---------

static double cold(const struct kernel* kernel, double* check) {
  const size_t n = kernel->size / sizeof(uint64_t);
  uint64_t* const all = shared(kernel->size);
  if (self() == 0)
    for (size_t i = 0; i < n; ++i) all[i] = i;
  barrier();
  double seconds = 0;
  uint64_t found = 0;
  if (self() == threads() - 1) {
#ifdef COPIES
    seconds = copying(all, kernel->size, &found);
#else
    const double start = now();
    for (size_t i = 0; i < n; ++i) found += all[i];
    seconds = now() - start;
#endif
  }
  *check = sum((double)found);
  return sum(seconds);
}

// ---- Stores to more than the cache holds, the second time; a copy with Pthreads ---------------

static double fill(const struct kernel* kernel, double* check) {
  char* const all = shared(kernel->size);
#ifdef COPIES
  uint64_t found = 0;
  if (self() == threads() - 1) memset(all, 7, kernel->size);
  barrier();
  const double seconds = self() == 0 ? copying((uint64_t*)all, kernel->size, &found) : 0;
#else
  if (self() == 0) memset(all, 1, kernel->size);
  barrier();
  const double start = now();
  if (self() == 0) memset(all, 7, kernel->size);
  const double seconds = now() - start;
#endif
  barrier();
  *check = self() == 0 ? all[kernel->size / 2] + all[kernel->size - 1] : 0;
  return seconds;
}

// ---- Synchronization --------------------------------------------------------------------------

static void wait_a_microsecond(void) {
  for (const double end = now() + 1e-6; now() < end;) continue;
}

// The lock goes from one thread to the next, with 64 bytes that each changes. A thread that has got
// it before its turn lets the other one have it.
static double hand_over(const struct kernel* kernel, double* check) {
  enum { kNumbers = 8 };
  double* const numbers = shared(kNumbers * sizeof *numbers);
  const double all = (double)kernel->times * threads();
  double turns = 0;
  barrier();
  const double start = now();
  while (turns < all) {
    lock(1);
    turns = numbers[0];
    if (turns < all && (unsigned)turns % threads() == self()) {
      record(numbers, kNumbers * sizeof *numbers);
      for (int i = 0; i < kNumbers; ++i) numbers[i] += 1;
    }
    unlock(1);
    wait_a_microsecond();
  }
  const double seconds = now() - start;
  barrier();
  *check = numbers[kNumbers - 1];
  return seconds / all;
}

static double barriers(const struct kernel* kernel, double* check) {
  barrier();
  const double start = now();
  for (int i = 0; i < kernel->times; ++i) barrier();
  *check = 0;
  return (now() - start) / kernel->times;
}

// A thread is created, and its value got, again and again.
#ifdef PTHREADS
static void* same(void* value) { return value; }

static double create_and_join(const struct kernel* kernel, double* check) {
  double start = 0;
  *check = 0;
  for (int i = -1; self() == 0 && i < kernel->times; ++i) {
    if (i == 0) start = now();  // behind the first thread, which may start a process
    pthread_t thread;
    void* value = NULL;
    if (pthread_create(&thread, NULL, same, (void*)(size_t)(i + 2)) != 0) abort();
    if (pthread_join(thread, &value) != 0) abort();
    *check += (double)(size_t)value;
  }
  return (now() - start) / kernel->times;
}
#endif

// ---- The program ------------------------------------------------------------------------------

static const struct kernel kernels[] = {
    {"jacobi", "reduction", 1024, 100, jacobi},
    {"jacobi", "lock", 1024, 100, jacobi},
    {"copy", "warm", (size_t)4 << 20, 10, stream},
    {"scale", "warm", (size_t)4 << 20, 10, stream},
    {"add", "warm", (size_t)4 << 20, 10, stream},
    {"triad", "warm", (size_t)4 << 20, 10, stream},
    {"md", "reduction", 2048, 10, molecular_dynamics},
    {"md", "lock", 2048, 10, molecular_dynamics},
    {"lu", "4 x cache", 4096, 1, lu},
    {"cold", "read", (size_t)128 << 20, 1, cold},
    {"fill", "memset", (size_t)1 << 30, 1, fill},
    {"hand_over", "64 bytes", 0, 20000, hand_over},
    {"barrier", "nothing written", 0, 20000, barriers},
#ifdef PTHREADS
    {"threads", "create and join", 0, 2000, create_and_join},
#endif
};

static void run(struct kernel kernel, int argc, char** argv) {
  double check = 0;
  if (argc > 3) kernel.size = (size_t)atoll(argv[3]);
  if (argc > 4) kernel.times = atoi(argv[4]);
  const double seconds = kernel.run(&kernel, &check);
  if (self() == 0)
    printf(
        "{\"program\": \"%s\", \"variant\": \"%s\", \"threads\": %u, \"seconds\": %.9f, "
        "\"seconds_there\": %.9f, \"check\": %.17g}\n",
        kernel.program, kernel.variant, threads(), seconds, seconds_there, check);
}

static void body(int argc, char** argv) {
  const size_t n = sizeof kernels / sizeof *kernels;
  for (size_t i = 0; argc > 2 && i < n; ++i)
    if (strcmp(argv[1], kernels[i].program) == 0 && strcmp(argv[2], kernels[i].variant) == 0)
      return run(kernels[i], argc, argv);
  if (self() == 0) {
    fprintf(stderr, "usage: kernels PROGRAM VARIANT [SIZE [TIMES]], of\n");
    for (size_t i = 0; i < n; ++i)
      fprintf(stderr, "  %s '%s'\n", kernels[i].program, kernels[i].variant);
  }
  exit(2);
}
