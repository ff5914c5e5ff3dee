// SPDX-License-Identifier: Apache-2.0
// Of several benchmarks: the clock, memory, processors, quantiles, numbers of the command line. To
// be included after kProgram, the program's name, is declared.
#pragma once
#include <errno.h>
#include <mpi.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static inline _Noreturn void reject(const char* format, ...) {
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) {
    va_list list;
    va_start(list, format);
    fprintf(stderr, "%s: ", kProgram);
    vfprintf(stderr, format, list);
    fprintf(stderr, " (see --help)\n");
    va_end(list);
  }
  MPI_Finalize();
  exit(2);
}

static inline double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

// Over more data than the caches near a core hold, so that no luck of addresses leaves other lines
// there.
static inline void compute_until(double deadline) {
  static double data[1 << 19];
  const int many = sizeof data / sizeof *data, some = 1 << 10;
  for (int i = 0; now_us() < deadline; i = (i + some) % many) {
    for (int k = i; k < i + some; ++k) data[k] = data[k] * 0.999 + 0.001;
    __asm__ volatile("" : : "r"(data) : "memory");  // not left out
  }
}

static inline void* memory(size_t bytes) {
  void* p = NULL;
  if (posix_memalign(&p, 4096, bytes) != 0) {
    fprintf(stderr, "%s: no memory for %zu bytes\n", kProgram, bytes);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  memset(p, 0, bytes);
  return p;
}

static inline int compare(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static inline double quantile(const double* sorted, size_t n, double q) {
  return sorted[(size_t)(q * (double)(n - 1) + 0.5)];
}

// The time of one read of the clock.
static inline double measure_timer(void) {
  enum { kReads = 1001 };
  double reads[kReads];
  for (int i = 0; i < kReads; ++i) {
    double start = now_us();
    reads[i] = now_us() - start;
  }
  qsort(reads, kReads, sizeof *reads, compare);
  double sum = 0;  // of the middle half: the clock's step is coarser than the time of a read
  for (int i = kReads / 4; i < 3 * kReads / 4; ++i) sum += reads[i];
  return sum / (3 * kReads / 4 - kReads / 4);
}

// Keeps to the CPUs that the launcher allows; a rank that it has already bound stays where it is.
static inline void pin(void) {
  cpu_set_t allowed, one;
  MPI_Comm host;
  int local;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
  MPI_Comm_rank(host, &local);
  MPI_Comm_free(&host);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < 2) return;
  int skip = local % CPU_COUNT(&allowed);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || skip-- > 0) continue;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) perror("sched_setaffinity");
    return;
  }
}

static inline double number(const char* option, const char* text, double low, double high,
                            int whole) {
  char* end;
  errno = 0;
  double value = strtod(text, &end);
  if (errno != 0 || end == text || *end != '\0' || !(value >= low && value <= high) ||
      (whole && value != (double)(long long)value))
    reject("--%s wants a %snumber from %g to %g, not '%s'", option, whole ? "whole " : "", low,
           high, text);
  return value;
}
