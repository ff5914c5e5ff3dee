// SPDX-License-Identifier: Apache-2.0
// A team of threads, twice: with -DPTHREADS those of one process, else those of tombolo/dsm.h. The
// calls that all make together are made in one order. To be included once.
#pragma once
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Each thread on a processor of its own, as far as there are enough.
static void pin(unsigned thread) {
  cpu_set_t allowed, one;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  unsigned skip = thread % (unsigned)CPU_COUNT(&allowed);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || skip-- > 0) continue;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
    return;
  }
}

static void body(int argc, char** argv);

#ifdef PTHREADS

#include <pthread.h>

enum { kMostThreads = 64, kMostBlocks = 16, kMostLocks = 4 };

static struct {
  unsigned threads;
  int argc;
  char** argv;
  pthread_barrier_t barrier;
  pthread_mutex_t locks[kMostLocks];
  void* blocks[kMostBlocks];
  struct {
    double value;
    char rest[56];
  } values[kMostThreads];
} team;
static _Thread_local unsigned self_;
static _Thread_local unsigned blocks_;

static unsigned self(void) { return self_; }
static unsigned threads(void) { return team.threads; }
static void barrier(void) { pthread_barrier_wait(&team.barrier); }
static void lock(unsigned i) { pthread_mutex_lock(&team.locks[i]); }
static void unlock(unsigned i) { pthread_mutex_unlock(&team.locks[i]); }
static void record(const void* address, size_t bytes) { (void)address, (void)bytes; }

static double sum(double value) {
  double all = 0;
  team.values[self_].value = value;
  barrier();
  for (unsigned i = 0; i < team.threads; ++i) all += team.values[i].value;
  barrier();
  return all;
}

static void* shared(size_t bytes) {
  if (self_ == 0 && posix_memalign(&team.blocks[blocks_], 4096, bytes) != 0) abort();
  if (self_ == 0) memset(team.blocks[blocks_], 0, bytes);
  barrier();
  return team.blocks[blocks_++];
}

static void* start(void* number) {
  self_ = (unsigned)(size_t)number;
  pin(self_);
  body(team.argc, team.argv);
  return NULL;
}

// `THREADS` in the environment.
int main(int argc, char** argv) {
  pthread_t others[kMostThreads];
  const char* const n = getenv("THREADS");
  team.threads = n != NULL ? (unsigned)atoi(n) : 2;
  if (team.threads < 1 || team.threads > kMostThreads) return 2;
  team.argc = argc;
  team.argv = argv;
  pthread_barrier_init(&team.barrier, NULL, team.threads);
  for (int i = 0; i < kMostLocks; ++i) pthread_mutex_init(&team.locks[i], NULL);
  for (size_t i = 1; i < team.threads; ++i) pthread_create(&others[i], NULL, start, (void*)i);
  start(NULL);
  for (size_t i = 1; i < team.threads; ++i) pthread_join(others[i], NULL);
  return 0;
}

#else

#include <tombolo/dsm.h>

enum { kMostLocks = 4 };
static tombolo_dsm_mutex_t locks_[kMostLocks];

static unsigned self(void) { return tombolo_dsm_thread(); }
static unsigned threads(void) { return tombolo_dsm_threads(); }
static void barrier(void) { tombolo_dsm_barrier_wait(); }
static void lock(unsigned i) { tombolo_dsm_mutex_lock(locks_[i]); }
static void unlock(unsigned i) { tombolo_dsm_mutex_unlock(locks_[i]); }
static void record(const void* address, size_t bytes) { tombolo_dsm_record(address, bytes); }
static double sum(double value) { return tombolo_dsm_sum(value); }

static void* shared(size_t bytes) {
  void* const block = tombolo_dsm_malloc(bytes);
  if (block == NULL) {
    fprintf(stderr, "no memory for %zu bytes; see TOMBOLO_DSM_MEMORY\n", bytes);
    exit(1);
  }
  return block;
}

int main(int argc, char** argv) {
  tombolo_dsm_init();
  pin(self());
  for (int i = 0; i < kMostLocks; ++i) locks_[i] = tombolo_dsm_mutex_create();
  body(argc, argv);
  tombolo_dsm_finalize();
  return 0;
}

#endif
