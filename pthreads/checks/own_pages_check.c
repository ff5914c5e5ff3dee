// SPDX-License-Identifier: Apache-2.0
// Purpose: pages of one thread: each stores to its own in each round, and reads one of its
// neighbour's; all meet at a barrier between. At the end the first one reads all of them.
// Arguments: threads, rounds, pages of each; 16 if not given.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { most_threads = 64, page_bytes = 4096 };

static pthread_barrier_t barrier;
static unsigned char* own[most_threads];
static size_t threads;
static size_t own_bytes = (size_t)16 * page_bytes;
static int rounds;

static void* store(void* number) {
  const size_t self = (size_t)number;
  const size_t next = (self + 1) % threads;
  size_t wrong = 0;
  for (int round = 1; round <= rounds; ++round) {
    memset(own[self], round, own_bytes);
    pthread_barrier_wait(&barrier);
    wrong += own[next][own_bytes - 1] != (unsigned char)round;
    pthread_barrier_wait(&barrier);
  }
  return (void*)wrong;
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  threads = (size_t)atoi(argv[1]);
  rounds = atoi(argv[2]);
  if (threads < 1 || threads > most_threads) return 2;
  if (argc > 3) own_bytes = (size_t)atoi(argv[3]) * page_bytes;
  pthread_t made[most_threads];
  pthread_barrier_init(&barrier, NULL, (unsigned)threads);
  for (size_t i = 0; i < threads; ++i)
    if (posix_memalign((void**)&own[i], 4096, own_bytes) != 0) return 2;
  for (size_t i = 0; i < threads; ++i) pthread_create(&made[i], NULL, store, (void*)i);
  size_t all_wrong = 0;
  for (size_t i = 0; i < threads; ++i) {
    void* wrong = NULL;
    pthread_join(made[i], &wrong);
    all_wrong += (size_t)wrong;
  }
  for (size_t i = 0; i < threads; ++i)
    for (size_t at = 0; at < own_bytes; at += page_bytes)
      all_wrong += own[i][at] != (unsigned char)rounds;
  printf("%zu wrong\n", all_wrong);
  return all_wrong == 0 ? 0 : 1;
}
