// SPDX-License-Identifier: Apache-2.0
// Work of unequal size, handed out on demand: one counter on rank 0, from which every rank takes
// the next chunk of items with MPI_Fetch_and_op; results are added where they belong with
// MPI_Accumulate. One lock_all epoch, completed by flushes; no rank waits for another until the
// end.
//
// An item is the start of a Collatz sequence; its result is the number of steps to 1, which differs
// much from item to item. Three windows: the counter, the bins of results (sum, number of items and
// maximum; bin i lives on rank i mod ranks), and one mark for each item on the rank that owns it.
//
// Checked: each item was done exactly once, and every bin equals a computation without the queue.
//
// Memory model: separate. Window memory is cleared under an exclusive lock of the own window and
// read back under a shared one; in between only atomic operations touch it.
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  long long items, chunk, bins, rounds, seed;
} Options;

enum { kSum, kCount, kMaximum, kFields };  // of one bin

typedef struct {
  int rank, ranks;
  size_t own_bins, own_items, items_per_rank;
  uint64_t *counter, *bins, *marks;
  MPI_Win counter_win, bins_win, marks_win;
  long long taken, requests;
} Queue;

static _Noreturn void reject(const char* format, ...) {
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) {
    va_list list;
    va_start(list, format);
    fprintf(stderr, "work_queue: ");
    vfprintf(stderr, format, list);
    fprintf(stderr, " (see --help)\n");
    va_end(list);
  }
  MPI_Finalize();
  exit(2);
}

static long long number(const char* option, const char* text, long long low, long long high) {
  char* end;
  errno = 0;
  long long value = strtoll(text, &end, 10);
  if (errno != 0 || end == text || *end != '\0' || value < low || value > high)
    reject("--%s wants a whole number from %lld to %lld, not '%s'", option, low, high, text);
  return value;
}

static void help(void) {
  printf(
      "usage: work_queue [options]\n"
      "  --items N   items of work (default 300000)\n"
      "  --chunk N   items taken at once (default 4)\n"
      "  --bins N    bins that results are added to (default 64)\n"
      "  --rounds N  sequences computed for one item, which makes items longer (default 24)\n"
      "  --seed N    seed of the sequences' starts (default 1)\n"
      "  --help      this text\n");
}

static Options parse(int argc, char** argv, int rank) {
  Options o = {.items = 300000, .chunk = 4, .bins = 64, .rounds = 24, .seed = 1};
  static const struct option known[] = {{"items", required_argument, NULL, 'i'},
                                        {"chunk", required_argument, NULL, 'c'},
                                        {"bins", required_argument, NULL, 'b'},
                                        {"rounds", required_argument, NULL, 'r'},
                                        {"seed", required_argument, NULL, 's'},
                                        {"help", no_argument, NULL, 'h'},
                                        {NULL, 0, NULL, 0}};
  opterr = 0;
  int c;
  while ((c = getopt_long(argc, argv, ":", known, NULL)) != -1) {
    switch (c) {
      case 'i':
        o.items = number("items", optarg, 0, 1LL << 32);
        break;
      case 'c':
        o.chunk = number("chunk", optarg, 1, 1 << 20);
        break;
      case 'b':
        o.bins = number("bins", optarg, 1, 1 << 24);
        break;
      case 'r':
        o.rounds = number("rounds", optarg, 1, 1 << 20);
        break;
      case 's':
        o.seed = number("seed", optarg, 0, INT64_MAX);
        break;
      case 'h':
        if (rank == 0) help();
        MPI_Finalize();
        exit(0);
      case ':':
        reject("option %s lacks its value", argv[optind - 1]);
      default:
        reject("unknown option %s", argv[optind - 1]);
    }
  }
  if (optind < argc) reject("unexpected argument '%s'", argv[optind]);
  return o;
}

static uint64_t mix(uint64_t z) {
  z += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

static uint64_t work(const Options* o, uint64_t item) {
  uint64_t steps = 0;
  for (uint64_t r = 0; r < (uint64_t)o->rounds; ++r) {
    uint64_t n = mix(item * (uint64_t)o->rounds + r + ((uint64_t)o->seed << 44)) % (item + 2) + 1;
    for (; n != 1; ++steps) n = n % 2 == 0 ? n / 2 : 3 * n + 1;
  }
  return steps;
}

static MPI_Win window(Queue* q, size_t words, uint64_t** base) {
  MPI_Win win;
  MPI_Win_allocate((MPI_Aint)(8 * words), 8, MPI_INFO_NULL, MPI_COMM_WORLD, base, &win);
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, q->rank, 0, win);
  if (words > 0) memset(*base, 0, 8 * words);
  MPI_Win_unlock(q->rank, win);
  return win;
}

static void create(Queue* q, const Options* o) {
  memset(q, 0, sizeof *q);
  MPI_Comm_rank(MPI_COMM_WORLD, &q->rank);
  MPI_Comm_size(MPI_COMM_WORLD, &q->ranks);
  size_t rank = (size_t)q->rank, ranks = (size_t)q->ranks;
  size_t items = (size_t)o->items, bins = (size_t)o->bins;
  q->items_per_rank = (items + ranks - 1) / ranks;
  size_t first = rank * q->items_per_rank;
  q->own_items = first >= items                      ? 0
                 : items - first < q->items_per_rank ? items - first
                                                     : q->items_per_rank;
  q->own_bins = (bins + ranks - 1 - rank) / ranks;
  q->counter_win = window(q, q->rank == 0 ? 1 : 0, &q->counter);
  q->bins_win = window(q, kFields * q->own_bins, &q->bins);
  q->marks_win = window(q, q->own_items, &q->marks);
  MPI_Barrier(MPI_COMM_WORLD);  // all memory is cleared
}

static void add_result(const Queue* q, const Options* o, uint64_t item, uint64_t result) {
  static const uint64_t one = 1;
  uint64_t bin = item % (uint64_t)o->bins;
  int target = (int)(bin % (uint64_t)q->ranks);
  MPI_Aint at = (MPI_Aint)(bin / (uint64_t)q->ranks * kFields);
  uint64_t sums[2] = {result, 1};
  MPI_Accumulate(sums, 2, MPI_UINT64_T, target, at, 2, MPI_UINT64_T, MPI_SUM, q->bins_win);
  MPI_Accumulate(&result, 1, MPI_UINT64_T, target, at + kMaximum, 1, MPI_UINT64_T, MPI_MAX,
                 q->bins_win);
  MPI_Win_flush_local(target, q->bins_win);  // the operands may be reused
  MPI_Accumulate(&one, 1, MPI_UINT64_T, (int)(item / q->items_per_rank),
                 (MPI_Aint)(item % q->items_per_rank), 1, MPI_UINT64_T, MPI_SUM, q->marks_win);
}

static void drain(Queue* q, const Options* o) {
  const uint64_t chunk = (uint64_t)o->chunk, items = (uint64_t)o->items;
  for (;;) {
    uint64_t first;
    MPI_Fetch_and_op(&chunk, &first, MPI_UINT64_T, 0, 0, MPI_SUM, q->counter_win);
    MPI_Win_flush(0, q->counter_win);
    ++q->requests;
    if (first >= items) break;
    uint64_t end = items - first < chunk ? items : first + chunk;
    for (uint64_t item = first; item < end; ++item) {
      add_result(q, o, item, work(o, item));
      ++q->taken;
    }
  }
  MPI_Win_flush_all(q->bins_win);
  MPI_Win_flush_all(q->marks_win);
}

static double process(Queue* q, const Options* o) {
  MPI_Win wins[3] = {q->counter_win, q->bins_win, q->marks_win};
  double start = MPI_Wtime();
  for (int w = 0; w < 3; ++w) MPI_Win_lock_all(0, wins[w]);
  drain(q, o);
  for (int w = 0; w < 3; ++w) MPI_Win_unlock_all(wins[w]);
  MPI_Barrier(MPI_COMM_WORLD);
  return MPI_Wtime() - start;
}

// Number of this rank's items that were not done exactly once.
static long long wrong_marks(Queue* q) {
  long long wrong = 0;
  MPI_Win_lock(MPI_LOCK_SHARED, q->rank, 0, q->marks_win);
  for (size_t i = 0; i < q->own_items; ++i) wrong += q->marks[i] != 1;
  MPI_Win_unlock(q->rank, q->marks_win);
  return wrong;
}

// Number of this rank's bins that differ from the computation without the queue.
static long long wrong_bins(Queue* q, const Options* o) {
  size_t fields = kFields * (size_t)o->bins;
  uint64_t* expected = calloc(fields, sizeof *expected);
  uint64_t* maxima = calloc((size_t)o->bins, sizeof *maxima);
  size_t first = (size_t)q->rank * q->items_per_rank;
  for (size_t item = first; item < first + q->own_items; ++item) {
    uint64_t bin = item % (uint64_t)o->bins, result = work(o, item);
    expected[kFields * bin + kSum] += result;
    expected[kFields * bin + kCount] += 1;
    if (result > maxima[bin]) maxima[bin] = result;
  }
  MPI_Allreduce(MPI_IN_PLACE, expected, (int)fields, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, maxima, (int)o->bins, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
  long long wrong = 0;
  MPI_Win_lock(MPI_LOCK_SHARED, q->rank, 0, q->bins_win);
  for (size_t b = 0; b < q->own_bins; ++b) {
    size_t bin = b * (size_t)q->ranks + (size_t)q->rank;
    const uint64_t *have = q->bins + kFields * b, *want = expected + kFields * bin;
    wrong +=
        have[kSum] != want[kSum] || have[kCount] != want[kCount] || have[kMaximum] != maxima[bin];
  }
  MPI_Win_unlock(q->rank, q->bins_win);
  free(expected);
  free(maxima);
  return wrong;
}

int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  Options o = parse(argc, argv, rank);
  Queue q;
  create(&q, &o);
  double seconds = process(&q, &o);
  long long sums[4] = {wrong_marks(&q), wrong_bins(&q, &o), q.taken, q.requests};
  long long least = q.taken, most = q.taken;
  MPI_Allreduce(MPI_IN_PLACE, sums, 4, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, &least, 1, MPI_LONG_LONG, MPI_MIN, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_LONG_LONG, MPI_MAX, MPI_COMM_WORLD);
  int good = sums[0] == 0 && sums[1] == 0 && sums[2] == o.items;
  if (rank == 0)
    printf(
        "RESULT %s ranks=%d items=%lld done=%lld not_once=%lld wrong_bins=%lld requests=%lld "
        "least_per_rank=%lld most_per_rank=%lld seconds=%.3f\n",
        good ? "ok" : "WRONG", q.ranks, o.items, sums[2], sums[0], sums[1], sums[3], least, most,
        seconds);
  MPI_Win_free(&q.counter_win);
  MPI_Win_free(&q.bins_win);
  MPI_Win_free(&q.marks_win);
  MPI_Finalize();
  return good ? 0 : 1;
}
