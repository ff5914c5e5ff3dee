// SPDX-License-Identifier: Apache-2.0
// Purpose: macros of the fault programs. Each is an ordinary MPI program that exits with 0 if its
// expectations came true, and else writes the others to stderr. cli/tests/faults_test.py runs them.
// Thread safety: EXPECT may be used from several threads.
#pragma once
#define _GNU_SOURCE

#include <mpi.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int rank, ranks;
static atomic_int failures;

#define EXPECT(condition, ...)                                                       \
  do {                                                                               \
    if (!(condition)) {                                                              \
      ++failures;                                                                    \
      fprintf(stderr, "%s:%d: rank %d: %s: ", __FILE__, __LINE__, rank, #condition); \
      __VA_OPT__(fprintf(stderr, __VA_ARGS__);)                                      \
      fprintf(stderr, "\n");                                                         \
    }                                                                                \
  } while (0)

static inline int class_of(int error) {
  int class = -1;
  MPI_Error_class(error, &class);
  return class;
}

static inline const char* text_of(int error) {
  static _Thread_local char text[MPI_MAX_ERROR_STRING + 1];
  int length = 0;
  MPI_Error_string(error, text, &length);
  return text;
}

static inline double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline void pause_ms(int ms) {
  const struct timespec t = {ms / 1000, ms % 1000 * 1000000L};
  nanosleep(&t, NULL);
}

static inline void begin(int* argc, char*** argv) {
  MPI_Init(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
}

// The sum of the failures of all ranks, as an exit status.
static inline int end(void) {
  int mine = failures, all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return all != 0;
}
