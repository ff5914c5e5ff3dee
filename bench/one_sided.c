// SPDX-License-Identifier: Apache-2.0
// Micro-benchmark of MPI one-sided communication: one row for each operation, every sample timed
// by itself (the time of one clock read, reported as timer_us, is in every number), all samples of
// all ranks gathered on rank 0.
//
// Kinds of row:
//   every   all ranks at once; the lock rows with a random target, which may be the rank itself
//   pair    rank 0 operates on rank 1 (on itself when it is alone); the others wait in a barrier
//   round   all ranks take part in each iteration; rank 0 decides in growing chunks how long to go
//   away    rank 0 operates on rank 1, after 10 ms of computation each; all others compute
// A row ends after --samples samples for each rank or after --budget-s seconds, so that slow cases
// finish with fewer samples. The data that the rows move is checked; exit status 1 if it is wrong.
//
// Memory model: separate; window memory is accessed locally only under a lock of the own window.
#define _GNU_SOURCE
#include <mpi.h>
#include <regex.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static const char kProgram[] = "one_sided";
#include "bench/common.h"
#include "bench/one_sided_options.h"

enum {
  kDataBytes = 1 << 20,
  kSumBytes = 1 << 16,
  kSumAt = kDataBytes,  // doubles for accumulate
  kCounterAt = kSumAt + kSumBytes,
  kSwapAt = kCounterAt + 64,
  kWholePages = (kSwapAt + 64 + 4095) / 4096 * 4096,
  kEdgeAt = kWholePages,  // a counter in a page that the window shares with other data, if it is
                          // over memory of the program
  kWindowBytes = kEdgeAt + 64,
  kCreatedBytes = 4096,  // of the windows whose creation is timed
  kOdd = 24,             // bytes from the start of a page to a window over memory of the program
};

typedef struct Row Row;

typedef struct {
  Options options;
  int rank, ranks, peer;  // peer: the target of rank 0 in pair rows
  Flavor flavor;
  MPI_Win win;
  unsigned char* base;
  MPI_Group partner, left, right;
  unsigned char *out, *in;  // private buffers of kDataBytes
  uint64_t random, swaps, sums;
  uint64_t* added;  // fetch_and_op increments sent to each rank
  double* samples;
  size_t count;
  uint64_t seen;         // samples, kept or not
  long long operations;  // of this rank in measured_us
  double measured_us, timer_us;
  int bad;
} Bench;

typedef enum { kEvery, kPair, kRound, kAway } Kind;
typedef enum {
  kLockAll = 1,  // the operation runs within one lock_all epoch
  kFence = 2,    // the rounds run within fence epochs
  kOrigin = 4,   // samples are those of the origins
  kTarget = 8,   // samples are those of the targets
  kFirst = 16,   // one operation for each time that the targets compute
} Flag;
typedef enum { kNothing, kPutData, kGotData, kSums } Check;

struct Row {
  const char* name;
  const char* what;
  Kind kind;
  size_t bytes;
  unsigned flags;
  Check check;
  void (*op)(Bench*, const Row*, int target);  // every, pair, away
  double (*once)(Bench*, const Row*);          // round: microseconds, or below 0: no sample
};

static uint64_t next_random(Bench* b) {
  b->random ^= b->random << 13;
  b->random ^= b->random >> 7;
  b->random ^= b->random << 17;
  return b->random >> 11;
}

// --- Operations ---------------------------------------------------------------------------------

static void op_lock_shared(Bench* b, const Row* row, int target) {
  (void)row;
  MPI_Win_lock(MPI_LOCK_SHARED, target, 0, b->win);
  MPI_Win_unlock(target, b->win);
}

static void op_lock_exclusive(Bench* b, const Row* row, int target) {
  (void)row;
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, b->win);
  MPI_Win_unlock(target, b->win);
}

static void op_lock_mixed(Bench* b, const Row* row, int target) {
  (void)row;
  MPI_Win_lock(next_random(b) & 1 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, target, 0, b->win);
  MPI_Win_unlock(target, b->win);
}

static void put(Bench* b, const Row* row, int target) {
  MPI_Put(b->out, (int)row->bytes, MPI_BYTE, target, 0, (int)row->bytes, MPI_BYTE, b->win);
}

static void op_put(Bench* b, const Row* row, int target) {
  put(b, row, target);
  MPI_Win_flush(target, b->win);
}

static void get(Bench* b, const Row* row, int target) {
  MPI_Get(b->in, (int)row->bytes, MPI_BYTE, target, 0, (int)row->bytes, MPI_BYTE, b->win);
}

static void op_get(Bench* b, const Row* row, int target) {
  get(b, row, target);
  MPI_Win_flush(target, b->win);
}

static void op_lock_put(Bench* b, const Row* row, int target) {
  MPI_Win_lock(MPI_LOCK_SHARED, target, 0, b->win);
  put(b, row, target);
  MPI_Win_unlock(target, b->win);
}

static void op_lock_get(Bench* b, const Row* row, int target) {
  MPI_Win_lock(MPI_LOCK_SHARED, target, 0, b->win);
  get(b, row, target);
  MPI_Win_unlock(target, b->win);
}

static void op_lock_exclusive_put(Bench* b, const Row* row, int target) {
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, b->win);
  put(b, row, target);
  MPI_Win_unlock(target, b->win);
}

static void add_one(Bench* b, int target) {
  static const uint64_t one = 1;
  uint64_t old;
  MPI_Fetch_and_op(&one, &old, MPI_UINT64_T, target, kCounterAt, MPI_SUM, b->win);
  MPI_Win_flush(target, b->win);
  ++b->added[target];
}

static void op_fetch_and_op(Bench* b, const Row* row, int target) {
  (void)row;
  add_one(b, target);
}

static void op_fetch_and_op_rank0(Bench* b, const Row* row, int target) {
  (void)row;
  (void)target;
  add_one(b, 0);
}

static void lock_and_add_one(Bench* b, int target, MPI_Aint at) {
  static const uint64_t one = 1;
  uint64_t old;
  MPI_Win_lock(MPI_LOCK_SHARED, target, 0, b->win);
  MPI_Fetch_and_op(&one, &old, MPI_UINT64_T, target, at, MPI_SUM, b->win);
  MPI_Win_unlock(target, b->win);
}

static void op_lock_fetch_and_op(Bench* b, const Row* row, int target) {
  (void)row;
  lock_and_add_one(b, target, kCounterAt);
  ++b->added[target];
}

static void op_lock_fetch_and_op_edge(Bench* b, const Row* row, int target) {
  (void)row;
  lock_and_add_one(b, target, kEdgeAt);
}

static void op_compare_and_swap(Bench* b, const Row* row, int target) {
  (void)row;
  uint64_t old, next = b->swaps + 1;
  MPI_Compare_and_swap(&next, &b->swaps, &old, MPI_UINT64_T, target, kSwapAt, b->win);
  MPI_Win_flush(target, b->win);
  if (old != b->swaps) b->bad = 1;
  b->swaps = next;
}

static void op_accumulate(Bench* b, const Row* row, int target) {
  int count = (int)(row->bytes / sizeof(double));
  MPI_Accumulate(b->out, count, MPI_DOUBLE, target, kSumAt, count, MPI_DOUBLE, MPI_SUM, b->win);
  MPI_Win_flush(target, b->win);
  ++b->sums;
}

static double once_fence(Bench* b, const Row* row) {
  double start = now_us();
  if (row->bytes > 0) put(b, row, (b->rank + 1) % b->ranks);
  MPI_Win_fence(0, b->win);
  return now_us() - start;
}

// Pairs of ranks: the even one is the origin, the odd one the target; a rank alone is both.
static double once_pscw(Bench* b, const Row* row) {
  int alone = b->ranks == 1;
  int origin = b->rank % 2 == 0 || alone, target = b->rank % 2 == 1 || alone;
  if (b->partner == MPI_GROUP_NULL) return -1;
  double start = now_us();
  if (target) MPI_Win_post(b->partner, 0, b->win);
  if (origin) {
    MPI_Win_start(b->partner, 0, b->win);
    if (row->bytes > 0) put(b, row, alone ? 0 : b->rank + 1);
    MPI_Win_complete(b->win);
  }
  if (target) MPI_Win_wait(b->win);
  double us = now_us() - start;
  return alone || ((row->flags & kOrigin) != 0) == origin ? us : -1;
}

static double once_pscw_ring(Bench* b, const Row* row) {
  (void)row;
  double start = now_us();
  MPI_Win_post(b->left, 0, b->win);
  MPI_Win_start(b->right, 0, b->win);
  MPI_Win_complete(b->win);
  MPI_Win_wait(b->win);
  return now_us() - start;
}

// Memory of the program for a created window, filled and not on a page, as malloc gives it; null
// for other windows. To be freed: `block`.
static void* base_for(Flavor flavor, size_t bytes, unsigned char** block) {
  *block = NULL;
  if (flavor != kCreate && flavor != kUnmapped) return NULL;
  *block = memory(bytes + kOdd);
  memset(*block, 1, bytes + kOdd);
  return *block + kOdd;
}

static void make_window_of(MPI_Comm comm, Flavor flavor, size_t bytes, void** base, MPI_Win* win) {
  MPI_Aint size = (MPI_Aint)bytes;
  MPI_Info info = MPI_INFO_NULL;
  if (flavor == kUnmapped) {
    MPI_Info_create(&info);
    MPI_Info_set(info, "tombolo_remap", "off");
  }
  if (flavor == kAllocate)
    MPI_Win_allocate(size, 1, info, comm, base, win);
  else if (flavor == kShared)
    MPI_Win_allocate_shared(size, 1, info, comm, base, win);
  else
    MPI_Win_create(*base, size, 1, info, comm, win);
  if (flavor == kUnmapped) MPI_Info_free(&info);
}

static void make_window(Flavor flavor, size_t bytes, void** base, MPI_Win* win) {
  make_window_of(MPI_COMM_WORLD, flavor, bytes, base, win);
}

static double creation_us(Bench* b, const Row* row, int and_free) {
  MPI_Win win;
  unsigned char* block;
  void* base = base_for(b->flavor, row->bytes, &block);
  MPI_Barrier(MPI_COMM_WORLD);
  double start = now_us();
  make_window(b->flavor, row->bytes, &base, &win);
  double created = now_us();
  MPI_Win_free(&win);
  double freed = now_us();
  free(block);
  return (and_free ? freed : created) - start;
}
static double once_create(Bench* b, const Row* row) { return creation_us(b, row, 0); }
static double once_create_and_free(Bench* b, const Row* row) { return creation_us(b, row, 1); }

// Of a communicator that has had no window; making it is not timed.
static double once_first_creation(Bench* b, const Row* row) {
  MPI_Comm comm;
  MPI_Win win;
  unsigned char* block;
  void* base = base_for(b->flavor, row->bytes, &block);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Barrier(comm);
  double start = now_us();
  make_window_of(comm, b->flavor, row->bytes, &base, &win);
  double us = now_us() - start;
  MPI_Win_free(&win);
  MPI_Comm_free(&comm);
  free(block);
  return us;
}

// Puts 8 bytes to the right, and then all of `out`.
static void put_twice(Bench* b, const Row* row, MPI_Win win) {
  const int right = (b->rank + 1) % b->ranks, all = (int)row->bytes;
  MPI_Win_lock(MPI_LOCK_SHARED, right, 0, win);
  MPI_Put(b->out, 8, MPI_BYTE, right, 0, 8, MPI_BYTE, win);
  MPI_Win_flush(right, win);
  MPI_Put(b->out, all, MPI_BYTE, right, 0, all, MPI_BYTE, win);
  MPI_Win_unlock(right, win);
}

// Over memory that mmap() has just given and gets back: none of it has been in a window.
static double new_window_us(Bench* b, const Row* row, int is_used) {
  size_t bytes = row->bytes + kOdd;
  unsigned char* block =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (block == MAP_FAILED) reject("no memory for %zu bytes", bytes);
  memset(block, 1, bytes);
  void* base = block + kOdd;
  MPI_Win win;
  MPI_Barrier(MPI_COMM_WORLD);
  double start = now_us();
  make_window(b->flavor, row->bytes, &base, &win);
  if (is_used) put_twice(b, row, win);
  MPI_Win_free(&win);
  double us = now_us() - start;
  // `out` is the same at all ranks.
  if (is_used && base == block + kOdd && memcmp(base, b->out, row->bytes) != 0) {
    fprintf(stderr, "one_sided: %s: the data is wrong\n", row->name);
    b->bad = 1;
  }
  munmap(block, bytes);
  return us;
}
static double once_create_and_free_new(Bench* b, const Row* row) {
  return new_window_us(b, row, 0);
}
static double once_create_put_and_free_new(Bench* b, const Row* row) {
  return new_window_us(b, row, 1);
}

// --- Rows ---------------------------------------------------------------------------------------

// Name, meaning, kind, bytes, flags, check, op, once.
static const Row kRows[] = {
    {"lock_shared", "lock shared + unlock, random target", kEvery, 0, 0, kNothing, op_lock_shared,
     NULL},
    {"lock_exclusive", "lock exclusive + unlock, random target", kEvery, 0, 0, kNothing,
     op_lock_exclusive, NULL},
    {"lock_mixed", "lock + unlock, half shared, half exclusive", kEvery, 0, 0, kNothing,
     op_lock_mixed, NULL},
    {"pscw_origin", "start + complete, in pairs", kRound, 0, kOrigin, kNothing, NULL, once_pscw},
    {"pscw_target", "post + wait, in pairs", kRound, 0, kTarget, kNothing, NULL, once_pscw},
    {"pscw_ring", "post left, start right, complete, wait", kRound, 0, 0, kNothing, NULL,
     once_pscw_ring},
    {"fence", "fence", kRound, 0, kFence, kNothing, NULL, once_fence},
    {"fence_put_8", "put 8 B to the right + fence", kRound, 8, kFence, kNothing, NULL, once_fence},
    {"lock_put_8_unlock", "lock shared + put 8 B + unlock", kPair, 8, 0, kPutData, op_lock_put,
     NULL},
    {"lock_get_8_unlock", "lock shared + get 8 B + unlock", kPair, 8, 0, kGotData, op_lock_get,
     NULL},
    {"put_8_flush", "put 8 B + flush", kPair, 8, kLockAll, kPutData, op_put, NULL},
    {"get_8_flush", "get 8 B + flush", kPair, 8, kLockAll, kGotData, op_get, NULL},
    {"fetch_and_op_flush", "fetch_and_op 8 B + flush", kPair, 8, kLockAll, kNothing,
     op_fetch_and_op, NULL},
    {"compare_and_swap_flush", "compare_and_swap 8 B + flush", kPair, 8, kLockAll, kNothing,
     op_compare_and_swap, NULL},
    {"fetch_and_op_rank0_flush", "fetch_and_op + flush, all ranks to rank 0", kEvery, 8, kLockAll,
     kNothing, op_fetch_and_op_rank0, NULL},
    {"accumulate_8_flush", "accumulate 8 B, sum of doubles + flush", kPair, 8, kLockAll, kSums,
     op_accumulate, NULL},
    {"accumulate_64k_flush", "accumulate 64 KiB, sum of doubles + flush", kPair, kSumBytes,
     kLockAll, kSums, op_accumulate, NULL},
    {"put_4k_flush", "put 4 KiB + flush", kPair, 4 << 10, kLockAll, kPutData, op_put, NULL},
    {"get_4k_flush", "get 4 KiB + flush", kPair, 4 << 10, kLockAll, kGotData, op_get, NULL},
    {"put_64k_flush", "put 64 KiB + flush", kPair, 64 << 10, kLockAll, kPutData, op_put, NULL},
    {"get_64k_flush", "get 64 KiB + flush", kPair, 64 << 10, kLockAll, kGotData, op_get, NULL},
    {"put_1m_flush", "put 1 MiB + flush", kPair, 1 << 20, kLockAll, kPutData, op_put, NULL},
    {"get_1m_flush", "get 1 MiB + flush", kPair, 1 << 20, kLockAll, kGotData, op_get, NULL},
    {"pscw_put_64k", "start + put 64 KiB + complete, in pairs", kRound, 64 << 10, kOrigin, kPutData,
     NULL, once_pscw},
    {"pscw_put_1m", "start + put 1 MiB + complete, in pairs", kRound, 1 << 20, kOrigin, kPutData,
     NULL, once_pscw},
    {"window_creation", "creation of a window of 4 KiB for each rank", kRound, kCreatedBytes, 0,
     kNothing, NULL, once_create},
    {"create_free_8k", "creation and free of a window of 8 KiB for each rank", kRound, 8 << 10, 0,
     kNothing, NULL, once_create_and_free},
    {"create_free_1m", "creation and free of a window of 1 MiB for each rank", kRound, 1 << 20, 0,
     kNothing, NULL, once_create_and_free},
    {"create_free_new_1m", "the same over new memory of mmap()", kRound, 1 << 20, 0, kNothing, NULL,
     once_create_and_free_new},
    {"create_free_new_64m", "the same over 64 MiB", kRound, 64 << 20, 0, kNothing, NULL,
     once_create_and_free_new},
    {"create_put_free_new_1m", "creation, put 8 B, put 1 MiB and free over new memory of mmap()",
     kRound, 1 << 20, 0, kNothing, NULL, once_create_put_and_free_new},
    {"first_creation", "creation of a communicator's first window, of 1 MiB for each rank", kRound,
     1 << 20, 0, kNothing, NULL, once_first_creation},
    {"passive_put", "lock + put 8 B + unlock, the target computes", kAway, 8, 0, kPutData,
     op_lock_exclusive_put, NULL},
    {"passive_put_first", "the same, the first one after a barrier", kAway, 8, kFirst, kPutData,
     op_lock_exclusive_put, NULL},
    {"passive_fetch_and_op", "lock + fetch_and_op + unlock, the target computes", kAway, 8, 0,
     kNothing, op_lock_fetch_and_op, NULL},
    {"passive_fetch_and_op_edge", "the same in a page that the window shares with other data",
     kAway, 8, 0, kNothing, op_lock_fetch_and_op_edge, NULL},
};
enum { kRowCount = sizeof kRows / sizeof *kRows };

// --- Measuring ----------------------------------------------------------------------------------

// With --whole-budget there may be more than can be kept: each has the same chance to be.
static void record(Bench* b, double us) {
  if (us < 0) return;
  ++b->seen;
  if (b->count < (size_t)b->options.samples) {
    b->samples[b->count++] = us;
  } else if (b->options.whole_budget) {
    uint64_t place = next_random(b) % b->seen;
    if (place < b->count) b->samples[place] = us;
  }
}

// Runs a batch of operations up to `times` times or until `budget_us` is over.
static void repeat(Bench* b, const Row* row, long long times, double budget_us, int keep) {
  double begin = now_us(), start, end = begin;
  long long i = 0;
  for (; (i < times || (keep && b->options.whole_budget)) && end <= begin + budget_us; ++i) {
    int target = row->kind == kEvery ? (int)(next_random(b) % (uint64_t)b->ranks) : b->peer;
    start = now_us();
    for (long long n = b->options.batch; n > 0; --n) row->op(b, row, target);
    end = now_us();
    if (keep) record(b, (end - start) / (double)b->options.batch);
  }
  if (!keep) return;
  b->operations += i * b->options.batch;
  b->measured_us += end - begin;
}

static void run_alone(Bench* b, const Row* row) {
  int active = row->kind == kEvery || b->rank == 0;
  double budget_us = 1e6 * b->options.budget_s;
  if (active && (row->flags & kLockAll)) MPI_Win_lock_all(0, b->win);
  if (active) repeat(b, row, b->options.warmup, budget_us / 5, 0);
  MPI_Barrier(MPI_COMM_WORLD);
  if (active) repeat(b, row, b->options.samples, budget_us, 1);
  if (active && (row->flags & kLockAll)) MPI_Win_unlock_all(b->win);
  MPI_Barrier(MPI_COMM_WORLD);
}

// Chunks of 1, 2, 4, ... rounds; the first round of a chunk only brings the ranks together. While
// fewer rounds than --warmup and less than a fifth of the budget are over, samples are dropped.
static void run_rounds(Bench* b, const Row* row) {
  double start = now_us(), budget_us = 1e6 * b->options.budget_s;
  long long done = 0, kept = 0, chunk = 1, plan[2] = {1, 0};  // rounds to do; keep their samples?
  if (row->flags & kFence) MPI_Win_fence(MPI_MODE_NOPRECEDE, b->win);
  while (plan[0] > 0) {
    row->once(b, row);
    double begin = now_us();
    for (long long i = 0; i < plan[0]; ++i) {
      double us = row->once(b, row);
      if (plan[1]) record(b, us);
    }
    if (plan[1]) {
      b->operations += plan[0];
      b->measured_us += now_us() - begin;
    }
    done += plan[0];
    kept += plan[1] ? plan[0] : 0;
    double spent = now_us() - start;
    double fitting = (budget_us * 1.2 - spent) / (spent / (double)(done + 1));
    chunk = chunk < 4096 ? 2 * chunk : chunk;
    plan[0] = chunk < (long long)fitting ? chunk : (long long)fitting;
    if (!b->options.whole_budget && plan[0] > b->options.samples - kept)
      plan[0] = b->options.samples - kept;
    if (plan[0] < 1) plan[0] = kept == 0;  // at least one sample
    plan[1] = plan[1] || done >= b->options.warmup || spent > budget_us / 5;
    MPI_Bcast(plan, 2, MPI_LONG_LONG, 0, MPI_COMM_WORLD);
  }
  if (row->flags & kFence) MPI_Win_fence(MPI_MODE_NOSUCCEED, b->win);
  MPI_Barrier(MPI_COMM_WORLD);
}

// The first 20 ms let every other rank leave the barrier and be at its computation. A sample is the
// median of a turn: one operation if it waits for the computation's end, or in rows with kFirst.
static void run_away(Bench* b, const Row* row) {
  const int first_only = row->flags & kFirst;
  const double turn_us = first_only ? 60e3 : 200e3, first_us = 20e3, pause_us = 10e3;
  const long long least = first_only ? 40 : 8;  // other load of the host triples some
  long long turns = (long long)(b->options.budget_s * 1e6 / turn_us);
  if (turns < least) turns = least;
  if (turns > b->options.samples) turns = b->options.samples;
  for (long long i = -1; i < turns; ++i) {  // the first one warms up
    MPI_Barrier(MPI_COMM_WORLD);
    double start = now_us(), last = start + turn_us - pause_us;
    if (b->rank != 0) compute_until(start + turn_us);
    double taken[32];
    size_t n = 0;
    for (double at = start + first_us; b->rank == 0 && at < last; at = now_us() + pause_us) {
      compute_until(at);
      double begin = now_us();
      row->op(b, row, b->peer);
      taken[n++] = now_us() - begin;
      if (first_only || n == sizeof taken / sizeof *taken) break;
    }
    qsort(taken, n, sizeof *taken, compare);
    if (i >= 0 && n > 0) record(b, quantile(taken, n, 0.5));
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

// --- Checking -----------------------------------------------------------------------------------

static void fill(unsigned char* data, size_t bytes, unsigned seed) {
  for (size_t i = 0; i < bytes; ++i) data[i] = (unsigned char)(i * 7 + (i >> 8) + seed * 31 + 1);
}

static void fetch(Bench* b, size_t at, size_t bytes) {
  memset(b->in, 0, bytes);
  MPI_Win_lock(MPI_LOCK_SHARED, b->peer, 0, b->win);
  MPI_Get(b->in, (int)bytes, MPI_BYTE, b->peer, (MPI_Aint)at, (int)bytes, MPI_BYTE, b->win);
  MPI_Win_unlock(b->peer, b->win);
}

// Of another row, too.
static void clear_sums(Bench* b, const Row* row) {
  memset(b->in, 0, row->bytes);
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, b->peer, 0, b->win);
  MPI_Put(b->in, (int)row->bytes, MPI_BYTE, b->peer, kSumAt, (int)row->bytes, MPI_BYTE, b->win);
  MPI_Win_unlock(b->peer, b->win);
  b->sums = 0;
}

static void before(Bench* b, const Row* row, unsigned seed) {
  fill(b->out, kDataBytes, seed);
  if (row->check == kSums) {
    if (b->rank == 0) clear_sums(b, row);
    for (size_t i = 0; i < row->bytes / sizeof(double); ++i) ((double*)b->out)[i] = 1;
  }
  if (row->check == kGotData && b->rank == 0) {
    op_lock_exclusive_put(b, row, b->peer);
    memset(b->in, 0, row->bytes);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

static void after(Bench* b, const Row* row) {
  if (b->rank != 0 || row->check == kNothing) return;
  int good = 1;
  if (row->check == kSums) {
    fetch(b, kSumAt, row->bytes);
    for (size_t i = 0; i < row->bytes / sizeof(double); ++i)
      good = good && ((double*)b->in)[i] == (double)b->sums;
  } else {
    if (row->check == kPutData) fetch(b, 0, row->bytes);
    good = memcmp(b->in, b->out, row->bytes) == 0;
  }
  if (!good) {
    fprintf(stderr, "one_sided: %s: the data is wrong\n", row->name);
    b->bad = 1;
  }
}

static void check_counters(Bench* b) {
  uint64_t counter;
  MPI_Allreduce(MPI_IN_PLACE, b->added, b->ranks, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, b->rank, 0, b->win);
  memcpy(&counter, b->base + kCounterAt, sizeof counter);
  MPI_Win_unlock(b->rank, b->win);
  if (counter != b->added[b->rank]) {
    fprintf(stderr, "one_sided: rank %d counted %llu fetch_and_op of %llu\n", b->rank,
            (unsigned long long)counter, (unsigned long long)b->added[b->rank]);
    b->bad = 1;
  }
}

// --- Reporting ----------------------------------------------------------------------------------

// Of rank 0, whatever lies between two samples included; 0 where operations are far apart.
static double per_second(const Bench* b) {
  return b->measured_us > 0 ? 1e6 * (double)b->operations / b->measured_us : 0;
}

static void print_row(const Bench* b, const Row* row, const double* sorted, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; ++i) sum += sorted[i];
  double median = quantile(sorted, n, 0.5), q1 = quantile(sorted, n, 0.25);
  double q3 = quantile(sorted, n, 0.75), p99 = quantile(sorted, n, 0.99);
  double mean = sum / (double)n, max = sorted[n - 1];
  const char* flavor = kFlavorNames[b->flavor];
  if (b->options.json)
    printf(
        "{\"row\":\"%s\",\"flavor\":\"%s\",\"ranks\":%d,\"unit\":\"us\",\"median\":%.4f,"
        "\"q1\":%.4f,\"q3\":%.4f,\"p99\":%.4f,\"max\":%.4f,\"mean\":%.4f,\"samples\":%zu,"
        "\"timer_us\":%.4f,\"per_s\":%.1f,\"operations\":%lld,\"batch\":%lld}\n",
        row->name, flavor, b->ranks, median, q1, q3, p99, max, mean, n, b->timer_us, per_second(b),
        b->operations, row->kind == kEvery || row->kind == kPair ? b->options.batch : 1);
  else
    printf("%-26s %-8s %11.3f %11.3f %11.3f %11.3f %11.3f %8zu %12.0f\n", row->name, flavor, median,
           q1, q3, p99, max, n, per_second(b));
  fflush(stdout);
}

static void report(Bench* b, const Row* row) {
  int count = (int)b->count, *counts = NULL, *at = NULL;
  double* all = NULL;
  size_t n = 0;
  if (b->rank == 0) {
    counts = memory((size_t)b->ranks * sizeof(int));
    at = memory((size_t)b->ranks * sizeof(int));
  }
  MPI_Gather(&count, 1, MPI_INT, counts, 1, MPI_INT, 0, MPI_COMM_WORLD);
  if (b->rank == 0) {
    for (int r = 0; r < b->ranks; n += (size_t)counts[r], ++r) at[r] = (int)n;
    all = memory((n + 1) * sizeof(double));
  }
  MPI_Gatherv(b->samples, count, MPI_DOUBLE, all, counts, at, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  if (b->rank == 0 && n > 0) {
    qsort(all, n, sizeof *all, compare);
    print_row(b, row, all, n);
  }
  free(counts);
  free(at);
  free(all);
}

static void run_row(Bench* b, const Row* row) {
  if (row->kind == kAway && b->ranks == 1) {
    fprintf(stderr, "one_sided: %s wants two ranks: skipped\n", row->name);
    return;
  }
  b->count = 0;
  b->seen = 0;
  b->operations = 0;
  b->measured_us = 0;
  before(b, row, (unsigned)(row - kRows));
  if (row->kind == kRound)
    run_rounds(b, row);
  else if (row->kind == kAway)
    run_away(b, row);
  else
    run_alone(b, row);
  after(b, row);
  report(b, row);
}

// --- Setting up ---------------------------------------------------------------------------------

static MPI_Group group_of(int rank) {
  MPI_Group world, group;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, 1, &rank, &group);
  MPI_Group_free(&world);
  return group;
}

static void setup(Bench* b) {
  b->peer = 1 % b->ranks;
  b->random = 88172645463325252u + 0x9e3779b97f4a7c15u * (uint64_t)b->rank;
  if (b->options.pin) pin();
  int partner = b->ranks == 1 ? 0 : b->rank ^ 1;
  b->partner = partner < b->ranks ? group_of(partner) : MPI_GROUP_NULL;
  b->left = group_of((b->rank + b->ranks - 1) % b->ranks);
  b->right = group_of((b->rank + 1) % b->ranks);
  b->out = memory(kDataBytes);
  b->in = memory(kDataBytes);
  b->added = memory((size_t)b->ranks * sizeof *b->added);
  b->samples = memory((size_t)b->options.samples * sizeof *b->samples);
  b->timer_us = measure_timer();
}

static void run_flavor(Bench* b, Flavor flavor, const regex_t* pattern) {
  unsigned char* block;
  void* base = base_for(flavor, kWindowBytes, &block);
  b->flavor = flavor;
  make_window(flavor, kWindowBytes, &base, &b->win);
  b->base = base;
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, b->rank, 0, b->win);
  memset(b->base, 0, kWindowBytes);
  MPI_Win_unlock(b->rank, b->win);
  memset(b->added, 0, (size_t)b->ranks * sizeof *b->added);
  b->swaps = b->sums = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  for (int r = 0; r < kRowCount; ++r)
    if (regexec(pattern, kRows[r].name, 0, NULL, 0) == 0) run_row(b, &kRows[r]);
  check_counters(b);
  MPI_Win_free(&b->win);
  free(block);
}

static void teardown(Bench* b) {
  if (b->partner != MPI_GROUP_NULL) MPI_Group_free(&b->partner);
  MPI_Group_free(&b->left);
  MPI_Group_free(&b->right);
  free(b->out);
  free(b->in);
  free(b->added);
  free(b->samples);
}

static int count_matching(const regex_t* pattern, int print) {
  int count = 0;
  for (int r = 0; r < kRowCount; ++r) {
    if (regexec(pattern, kRows[r].name, 0, NULL, 0) != 0) continue;
    if (print) printf("%-26s %s\n", kRows[r].name, kRows[r].what);
    ++count;
  }
  return count;
}

int main(int argc, char** argv) {
  Bench b = {.win = MPI_WIN_NULL};
  regex_t pattern;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &b.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &b.ranks);
  b.options = parse(argc, argv, b.rank);
  if (regcomp(&pattern, b.options.pattern, REG_EXTENDED | REG_NOSUB) != 0)
    reject("--rows: '%s' is not a regular expression", b.options.pattern);
  if (count_matching(&pattern, b.options.list && b.rank == 0) == 0)
    reject("--rows: no row matches '%s' (see --list)", b.options.pattern);
  if (!b.options.list) {
    setup(&b);
    if (b.rank == 0 && !b.options.json)
      printf("%-26s %-8s %11s %11s %11s %11s %11s %8s %12s   (us; %d ranks; a clock read: %.3f)\n",
             "row", "flavor", "median", "q1", "q3", "p99", "max", "samples", "per second", b.ranks,
             b.timer_us);
    for (int f = 0; f < kFlavors; ++f)
      if (b.options.flavors[f]) run_flavor(&b, (Flavor)f, &pattern);
    teardown(&b);
  }
  regfree(&pattern);
  MPI_Allreduce(MPI_IN_PLACE, &b.bad, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Finalize();
  return b.bad;
}
