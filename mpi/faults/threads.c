// SPDX-License-Identifier: Apache-2.0
// Several threads of each rank call MPI at once. Usage: threads TEST [SEED]:
//   epoch        all operations in one lock-all epoch of one window
//   windows      each thread locks targets of a window of its own
//   targets      each thread locks its own targets of one window, so that several wait at once
//   independent  a thread gets a free lock while another of the same rank waits for a lock whose
//                holder waits for the first
//   active       threads put to different targets of one start epoch, whose posts come late
#include "mpi/faults/check.h"

#include <pthread.h>
#include <stdint.h>

enum { threads = 4, rounds = 200, patience_s = 60 };

static MPI_Win shared_win, own_win[threads];
static MPI_Comm own_comm[threads];
static uint64_t seed = 1;

typedef struct {
  int thread;
  uint64_t random;
} Self;

static unsigned draw(Self* self, unsigned below) {
  self->random ^= self->random << 13;
  self->random ^= self->random >> 7;
  self->random ^= self->random << 17;
  return (unsigned)(self->random >> 33) % below;
}

static void run(void* (*body)(void*)) {
  pthread_t ids[threads];
  Self selves[threads];
  for (int t = 0; t < threads; ++t) {
    selves[t] =
        (Self){t, (seed * 1000003u + (uint64_t)(rank * threads + t) + 1) * 0x9e3779b97f4a7c15u};
    pthread_create(&ids[t], NULL, body, &selves[t]);
  }
  for (int t = 0; t < threads; ++t) pthread_join(ids[t], NULL);
}

// --- epoch: words 0 and 1 of each rank are counters, then a word for each thread of each rank ----

static void* in_one_epoch(void* arg) {
  Self* self = arg;
  const int slot = 2 + rank * threads + self->thread;
  const int64_t one = 1;
  for (int i = 0; i < rounds; ++i) {
    const int target = (int)draw(self, (unsigned)ranks);
    int64_t mine = (int64_t)i << 8 | self->thread, seen = -1, before = 0;
    MPI_Put(&mine, 1, MPI_INT64_T, target, slot, 1, MPI_INT64_T, shared_win);
    MPI_Win_flush(target, shared_win);
    MPI_Get(&seen, 1, MPI_INT64_T, target, slot, 1, MPI_INT64_T, shared_win);
    MPI_Win_flush(target, shared_win);
    EXPECT(seen == mine, "%lld instead of %lld", (long long)seen, (long long)mine);
    MPI_Fetch_and_op(&one, &before, MPI_INT64_T, 0, 0, MPI_SUM, shared_win);
    MPI_Accumulate(&one, 1, MPI_INT64_T, 0, 1, 1, MPI_INT64_T, MPI_SUM, shared_win);
    MPI_Win_flush(0, shared_win);
    EXPECT(before >= 0 && before < (int64_t)ranks * threads * rounds);
    if (draw(self, 16) == 0) MPI_Win_flush_all(shared_win);
  }
  return NULL;
}

static void check_counter(MPI_Win win, int word, int64_t want) {
  int64_t seen = -1;
  if (rank != 0) return;
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
  MPI_Get(&seen, 1, MPI_INT64_T, 0, word, 1, MPI_INT64_T, win);
  MPI_Win_unlock(0, win);
  EXPECT(seen == want, "counter %d: %lld of %lld", word, (long long)seen, (long long)want);
}

static void epoch(void) {
  MPI_Win_lock_all(0, shared_win);
  run(in_one_epoch);
  MPI_Win_unlock_all(shared_win);
  MPI_Barrier(MPI_COMM_WORLD);
  check_counter(shared_win, 0, (int64_t)ranks * threads * rounds);
  check_counter(shared_win, 1, (int64_t)ranks * threads * rounds);
}

// --- windows and targets: counters that only an exclusive lock protects --------------------------

static void add_one(MPI_Win win, int target) {
  int64_t value = 0;
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
  MPI_Get(&value, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, win);
  MPI_Win_flush(target, win);
  ++value;
  MPI_Put(&value, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, win);
  MPI_Win_unlock(target, win);
}

static void* in_own_window(void* arg) {
  Self* self = arg;
  for (int i = 0; i < rounds; ++i) add_one(own_win[self->thread], 0);
  return NULL;
}

static void windows(void) {
  int64_t* base;
  for (int t = 0; t < threads; ++t) {
    MPI_Comm_dup(MPI_COMM_WORLD, &own_comm[t]);
    MPI_Win_allocate(64, 8, MPI_INFO_NULL, own_comm[t], &base, &own_win[t]);
    MPI_Win_fence(0, own_win[t]);
    base[0] = 0;
    MPI_Win_fence(MPI_MODE_NOSUCCEED, own_win[t]);
  }
  run(in_own_window);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int t = 0; t < threads; ++t) {
    check_counter(own_win[t], 0, (int64_t)ranks * rounds);
    MPI_Win_free(&own_win[t]);
    MPI_Comm_free(&own_comm[t]);
  }
}

// Thread t locks targets t, t + threads, ... only: no target twice by one rank.
static void* at_own_targets(void* arg) {
  Self* self = arg;
  const int mine = (ranks - self->thread + threads - 1) / threads;
  if (self->thread >= ranks) return NULL;
  for (int i = 0; i < rounds; ++i) {
    const int target = self->thread + threads * (int)draw(self, (unsigned)mine);
    int64_t value = 0;
    for (unsigned n = draw(self, 3); n > 0; --n) {
      MPI_Win_lock(MPI_LOCK_SHARED, target, 0, shared_win);
      MPI_Get(&value, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, shared_win);
      MPI_Win_unlock(target, shared_win);
    }
    add_one(shared_win, target);
  }
  return NULL;
}

static void targets(int64_t* base) {
  // The first lock-all changes how exclusive locks are taken: without and with it.
  for (int pass = 1; pass <= 2; ++pass) {
    run(at_own_targets);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, shared_win);
    int64_t sum = 0, all = 0;
    MPI_Win_sync(shared_win);
    sum = base[0];
    MPI_Win_unlock_all(shared_win);
    MPI_Allreduce(&sum, &all, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    const int64_t lockers = ranks < threads ? ranks : threads;
    EXPECT(all == pass * lockers * ranks * rounds, "pass %d: %lld", pass, (long long)all);
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

// --- independent ---------------------------------------------------------------------------------

static void* waits_for_rank_0(void* arg) {
  (void)arg;
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, shared_win);
  MPI_Win_unlock(0, shared_win);
  return NULL;
}

static void independent(void) {
  if (rank == 0) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, shared_win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Recv(NULL, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Win_unlock(0, shared_win);
    return;
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank != 1) return;
  pthread_t waiter;
  pthread_create(&waiter, NULL, waits_for_rank_0, NULL);
  pause_ms(200);
  for (int i = 0; i < 10; ++i) {
    MPI_Win_lock(i % 2 == 0 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, 1, 0, shared_win);
    MPI_Win_unlock(1, shared_win);
  }
  MPI_Send(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
  pthread_join(waiter, NULL);
}

// --- active --------------------------------------------------------------------------------------

static void* puts_to_its_targets(void* arg) {
  const Self* self = arg;
  for (int target = self->thread; target < ranks; target += threads) {
    const int64_t value = 100 + rank;
    MPI_Put(&value, 1, MPI_INT64_T, target, 2 + rank, 1, MPI_INT64_T, shared_win);
  }
  return NULL;
}

static void active(const int64_t* base) {
  MPI_Group world;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  for (int round = 0; round < 20; ++round) {
    if (rank == round % ranks) pause_ms(5);
    MPI_Win_post(world, 0, shared_win);
    MPI_Win_start(world, 0, shared_win);
    run(puts_to_its_targets);
    MPI_Win_complete(shared_win);
    MPI_Win_wait(shared_win);
    for (int r = 0; r < ranks; ++r) EXPECT(base[2 + r] == 100 + r, "from %d", r);
  }
  MPI_Group_free(&world);
}

int main(int argc, char** argv) {
  int level;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  EXPECT(level == MPI_THREAD_MULTIPLE);
  alarm(patience_s);  // a deadlock is a failure
  const char* test = argc > 1 ? argv[1] : "epoch";
  if (argc > 2) seed = strtoull(argv[2], NULL, 10);
  const MPI_Aint words = 2 + ranks * threads;
  int64_t* base;
  MPI_Win_allocate(8 * words, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &shared_win);
  MPI_Win_fence(0, shared_win);
  memset(base, 0, 8 * (size_t)words);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, shared_win);
  if (strcmp(test, "epoch") == 0) epoch();
  if (strcmp(test, "windows") == 0) windows();
  if (strcmp(test, "targets") == 0) targets(base);
  if (strcmp(test, "independent") == 0) independent();
  if (strcmp(test, "active") == 0) active(base);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_free(&shared_win);
  return end();
}
