// SPDX-License-Identifier: Apache-2.0
// Threads that call no MPI count in variables beside the memory of windows, and inside it, while
// windows over it are made, used and freed. No count may be lost.
#include "mpi/faults/check.h"

#include <pthread.h>
#include <sys/mman.h>

enum { kThreads = 1, kRounds = 100, kLongs = 1500, kMapped = 64 << 10 };

static atomic_int stop;
static volatile long in_bss[kLongs];

typedef struct {
  volatile long* counter[3];
  long count;
} Counting;

static void* count(void* to) {
  Counting* const c = to;
  while (!stop) {
    for (int n = 0; n < 20000; ++n, ++c->count)
      for (int i = 0; i < 3; ++i) *c->counter[i] += 1;
    // The ranks need the processors, too.
    nanosleep(&(struct timespec){0, 20000}, NULL);
  }
  return NULL;
}

static void window_over(volatile long* memory, long n, int round) {
  MPI_Win win;
  const long v = round;
  MPI_Win_create((void*)memory, n * (MPI_Aint)sizeof(long), sizeof(long), MPI_INFO_NULL,
                 MPI_COMM_WORLD, &win);
  MPI_Win_fence(0, win);
  MPI_Put(&v, 1, MPI_LONG, (rank + 1) % ranks, 0, 1, MPI_LONG, win);
  MPI_Win_fence(0, win);
  EXPECT(memory[0] == round, "%ld in round %d", memory[0], round);
  MPI_Win_free(&win);
}

int main(int argc, char** argv) {
  int level;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  volatile long* const heap = calloc(kLongs, sizeof *heap);
  volatile long* const mapped =
      mmap(NULL, kMapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  pthread_t thread[kThreads];
  Counting counting[kThreads];
  // The last elements of each array are the threads'; windows have them, or their page, too.
  for (int i = 0; i < kThreads; ++i) {
    counting[i] =
        (Counting){{&heap[kLongs - 1 - i], &mapped[1000 - i], &in_bss[kLongs - 1 - i]}, 0};
    pthread_create(&thread[i], NULL, count, &counting[i]);
  }
  for (int round = 1; round <= kRounds; ++round) {
    window_over(heap, kLongs - 10 * (round % 2), round);
    window_over(mapped, 900 + 200 * (round % 2), round);
    window_over(in_bss, kLongs - 10 * (round % 2), round);
  }
  stop = 1;
  for (int i = 0; i < kThreads; ++i) {
    pthread_join(thread[i], NULL);
    for (int k = 0; k < 3; ++k)
      EXPECT(*counting[i].counter[k] == counting[i].count, "thread %d, counter %d: %ld of %ld", i,
             k, *counting[i].counter[k], counting[i].count);
  }
  free((void*)heap);
  munmap((void*)mapped, kMapped);
  return end();
}
