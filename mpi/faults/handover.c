// SPDX-License-Identifier: Apache-2.0
// Two threads of rank 0 call MPI in turn (MPI_THREAD_SERIALIZED): one puts and hands over, the
// other flushes and gets the value of the put. Each has a processor of its own where there are two.
// The hand-over is a release store: an atomic operation would empty the write-combining buffers by
// itself.
#include "mpi/faults/check.h"

#include <pthread.h>
#include <sched.h>

// On a busy host as many rounds as fit into the time.
enum { rounds = 20000, seconds = 5, over = -1 };

static MPI_Win win;
static atomic_int turn;  // even: the putting thread's; odd: the getting one's
static double start;

static void keep_to(int processor) {
  cpu_set_t allowed, one;
  CPU_ZERO(&one);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  for (int cpu = 0, seen = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &allowed) && seen++ == processor) CPU_SET(cpu, &one);
  if (CPU_COUNT(&one) == 1) pthread_setaffinity_np(pthread_self(), sizeof one, &one);
}

// False once it is over.
static int await_turn(int wanted) {
  for (int i = 1;; ++i) {
    const int seen = atomic_load_explicit(&turn, memory_order_acquire);
    if (seen == wanted || seen == over) return seen == wanted;
    if (i % 1000 == 0) sched_yield();
  }
}

static void* put(void* unused) {
  keep_to(0);
  for (int i = 0; i < rounds; ++i) {
    await_turn(2 * i);
    if (now() - start > seconds) break;
    MPI_Put(&i, 1, MPI_INT, 1, 0, 1, MPI_INT, win);
    atomic_store_explicit(&turn, 2 * i + 1, memory_order_release);
    if (i + 1 == rounds) return unused;
  }
  atomic_store(&turn, over);  // between two rounds
  return unused;
}

static void* get(void* unused) {
  keep_to(1);
  for (int i = 0; i < rounds; ++i) {
    int seen = -1;
    if (!await_turn(2 * i + 1)) break;
    MPI_Win_flush(1, win);
    MPI_Get(&seen, 1, MPI_INT, 1, 0, 1, MPI_INT, win);
    MPI_Win_flush(1, win);
    EXPECT(seen == i, "%d, not %d", seen, i);
    atomic_store_explicit(&turn, 2 * i + 2, memory_order_release);
  }
  return unused;
}

int main(int argc, char** argv) {
  int level, *base;
  pthread_t threads[2];
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  EXPECT(level >= MPI_THREAD_SERIALIZED);
  MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
  MPI_Win_lock_all(0, win);
  start = now();
  if (rank == 0) {
    pthread_create(&threads[0], NULL, put, NULL);
    pthread_create(&threads[1], NULL, get, NULL);
    for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  }
  MPI_Win_unlock_all(win);
  MPI_Win_free(&win);
  return end();
}
