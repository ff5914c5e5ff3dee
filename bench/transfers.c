// SPDX-License-Identifier: Apache-2.0
// Large transfers by MPI one-sided communication, each beside a memcpy of as many bytes: rank 0
// puts to rank 1 or gets from it and flushes, then copies to or from its own part of the same
// window, which is memory of the same kind, and so on in turn. The other ranks wait.
//
//   X_same    the same buffer and place each time, as far as they fit in a cache
//   X_fresh   another buffer and place each time, in turn through more memory than caches hold; all
//             of it has been used before
//
// In JSON, beside the fields of one_sided: `memcpy`, the median of the copies, and `by_memcpy`, the
// median of the ratios of a transfer to the copy after it. The last transfer is checked.
//
// Memory model: separate; window memory is accessed locally only under a lock of the own window.
#define _GNU_SOURCE
#include <getopt.h>
#include <mpi.h>
#include <regex.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char kProgram[] = "transfers";
#include "bench/common.h"

enum { kMiB = 1 << 20, kFreshBytes = 128 * kMiB, kFewest = 5, kMost = 1000000 };
// Two for the transfers, and two for the copies.
enum { kFewestPlaces = 4 };

typedef enum { kPut, kGet } Direction;

typedef struct {
  const char* name;
  Direction direction;
  size_t bytes;
  int fresh;
} Row;

// Name, direction, bytes, fresh.
static const Row kRows[] = {
    {"put_64k_same", kPut, 64 << 10, 0},  {"put_64k_fresh", kPut, 64 << 10, 1},
    {"get_64k_same", kGet, 64 << 10, 0},  {"get_64k_fresh", kGet, 64 << 10, 1},
    {"put_1m_same", kPut, kMiB, 0},       {"put_1m_fresh", kPut, kMiB, 1},
    {"get_1m_same", kGet, kMiB, 0},       {"get_1m_fresh", kGet, kMiB, 1},
    {"put_8m_same", kPut, 8 * kMiB, 0},   {"put_8m_fresh", kPut, 8 * kMiB, 1},
    {"get_8m_same", kGet, 8 * kMiB, 0},   {"get_8m_fresh", kGet, 8 * kMiB, 1},
    {"put_64m_same", kPut, 64 * kMiB, 0}, {"put_64m_fresh", kPut, 64 * kMiB, 1},
    {"get_64m_same", kGet, 64 * kMiB, 0}, {"get_64m_fresh", kGet, 64 * kMiB, 1},
};
enum { kRowCount = sizeof kRows / sizeof *kRows };

typedef struct {
  const char *pattern, *flavor;
  long long samples;
  double budget_s;
  int json, pin, list;
} Options;

typedef struct {
  Options options;
  int rank, ranks, peer;
  MPI_Win win;
  unsigned char *base, *buffers;  // `slots` times the bytes of the row each
  size_t slots;
  double *moves, *copies, *ratios;
  double timer_us;
  int bad;
} Bench;

// --- One transfer -------------------------------------------------------------------------------

static void transfer(Bench* b, const Row* row, size_t slot) {
  unsigned char* buffer = b->buffers + slot * row->bytes;
  MPI_Aint at = (MPI_Aint)(slot * row->bytes);
  int count = (int)row->bytes;
  if (row->direction == kPut)
    MPI_Put(buffer, count, MPI_BYTE, b->peer, at, count, MPI_BYTE, b->win);
  else
    MPI_Get(buffer, count, MPI_BYTE, b->peer, at, count, MPI_BYTE, b->win);
  MPI_Win_flush(b->peer, b->win);
}

static void copy(Bench* b, const Row* row, size_t slot) {
  unsigned char *buffer = b->buffers + slot * row->bytes, *own = b->base + slot * row->bytes;
  if (row->direction == kPut)
    memcpy(own, buffer, row->bytes);
  else
    memcpy(buffer, own, row->bytes);
  __asm__ volatile("" : : "r"(own), "r"(buffer) : "memory");  // the copy is not left out
}

static size_t after(const Bench* b, size_t slot) { return slot + 1 < b->slots ? slot + 1 : 0; }

static size_t measure(Bench* b, const Row* row) {
  double deadline = now_us() + 1e6 * b->options.budget_s, end = 0;
  size_t n = 0, slot = 0, most = (size_t)b->options.samples;
  while (n < most && (n < kFewest || end < deadline)) {
    double start = now_us();
    transfer(b, row, slot);
    double middle = now_us();
    slot = after(b, slot);
    double again = now_us();
    copy(b, row, slot);
    end = now_us();
    slot = after(b, slot);
    b->moves[n] = middle - start;
    b->copies[n] = end - again;
    ++n;
  }
  for (size_t i = 0; i < n; ++i) b->ratios[i] = b->moves[i] / b->copies[i];
  return n;
}

// --- A row --------------------------------------------------------------------------------------

static void fill(unsigned char* data, size_t bytes, unsigned seed) {
  for (size_t i = 0; i < bytes; ++i) data[i] = (unsigned char)(i * 7 + (i >> 8) + seed);
}

static void make_window(Bench* b, size_t bytes) {
  MPI_Aint size = (MPI_Aint)bytes;
  if (strcmp(b->options.flavor, "allocate") == 0) {
    MPI_Win_allocate(size, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &b->base, &b->win);
  } else if (strcmp(b->options.flavor, "shared") == 0) {
    MPI_Win_allocate_shared(size, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &b->base, &b->win);
  } else {
    b->base = memory(bytes);
    MPI_Win_create(b->base, size, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &b->win);
  }
}

static void free_window(Bench* b) {
  unsigned char* base = strcmp(b->options.flavor, "create") == 0 ? b->base : NULL;
  MPI_Win_free(&b->win);
  free(base);
}

// A whole transfer of a place that no other has filled in the same way.
static void check(Bench* b, const Row* row) {
  unsigned char* expected = memory(row->bytes);
  const Row put = {NULL, kPut, row->bytes, 0}, get = {NULL, kGet, row->bytes, 0};
  fill(expected, row->bytes, 3);
  memcpy(b->buffers, expected, row->bytes);
  transfer(b, &put, 0);
  memset(b->buffers, 0, row->bytes);
  transfer(b, &get, 0);
  if (memcmp(expected, b->buffers, row->bytes) != 0) {
    fprintf(stderr, "%s: %s: the data is wrong\n", kProgram, row->name);
    b->bad = 1;
  }
  free(expected);
}

static void print_row(const Bench* b, const Row* row, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; ++i) sum += b->moves[i];
  qsort(b->moves, n, sizeof(double), compare);
  qsort(b->copies, n, sizeof(double), compare);
  qsort(b->ratios, n, sizeof(double), compare);
  const double* t = b->moves;
  double median = quantile(t, n, 0.5), q1 = quantile(t, n, 0.25), q3 = quantile(t, n, 0.75);
  double copied = quantile(b->copies, n, 0.5), ratio = quantile(b->ratios, n, 0.5);
  if (b->options.json)
    printf(
        "{\"row\":\"%s\",\"flavor\":\"%s\",\"ranks\":%d,\"unit\":\"us\",\"median\":%.4f,"
        "\"q1\":%.4f,\"q3\":%.4f,\"p99\":%.4f,\"max\":%.4f,\"mean\":%.4f,\"samples\":%zu,"
        "\"timer_us\":%.4f,\"memcpy\":%.4f,\"by_memcpy\":%.4f}\n",
        row->name, b->options.flavor, b->ranks, median, q1, q3, quantile(t, n, 0.99), t[n - 1],
        sum / (double)n, n, b->timer_us, copied, ratio);
  else
    printf("%-16s %-8s %11.3f %11.3f %11.3f %11.3f %9.3f %8zu\n", row->name, b->options.flavor,
           median, q1, q3, copied, ratio, n);
  fflush(stdout);
}

static void lead(Bench* b, const Row* row) {
  b->buffers = memory(b->slots * row->bytes);
  fill(b->buffers, b->slots * row->bytes, 1);
  MPI_Win_lock_all(0, b->win);
  for (size_t slot = 0; slot < b->slots; ++slot) {  // every page is there, at both sides
    transfer(b, row, slot);
    copy(b, row, slot);
  }
  size_t n = measure(b, row);
  check(b, row);
  MPI_Win_unlock_all(b->win);
  print_row(b, row, n);
  free(b->buffers);
}

static void run_row(Bench* b, const Row* row) {
  // An even number: the transfers have the one half of the places and the copies the other.
  b->slots = row->fresh ? kFreshBytes / row->bytes : 1;
  if (row->fresh && b->slots < kFewestPlaces) b->slots = kFewestPlaces;
  make_window(b, b->slots * row->bytes);
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, b->rank, 0, b->win);
  fill(b->base, b->slots * row->bytes, 2);
  MPI_Win_unlock(b->rank, b->win);
  MPI_Barrier(MPI_COMM_WORLD);
  if (b->rank == 0) lead(b, row);
  MPI_Barrier(MPI_COMM_WORLD);
  free_window(b);
}

// --- Setting up ---------------------------------------------------------------------------------

static void help(void) {
  printf(
      "usage: transfers [options]\n"
      "  --rows REGEX     only rows whose name matches (extended regular expression)\n"
      "  --list           print the rows and stop\n"
      "  --flavor NAME    allocate (default), create or shared\n"
      "  --samples N      of each row at most (default 10000)\n"
      "  --budget-s S     seconds for a row, about (default 1), and at least five samples\n"
      "  --pin            bind each rank to one CPU, in order of ranks\n"
      "  --json           one JSON object for each row instead of a table\n"
      "  --help           this text\n");
}

static Options parse(int argc, char** argv, int rank) {
  Options o = {.pattern = "", .flavor = "allocate", .samples = 10000, .budget_s = 1};
  static const struct option known[] = {{"rows", required_argument, NULL, 'r'},
                                        {"list", no_argument, NULL, 'l'},
                                        {"flavor", required_argument, NULL, 'f'},
                                        {"samples", required_argument, NULL, 's'},
                                        {"budget-s", required_argument, NULL, 'b'},
                                        {"pin", no_argument, NULL, 'p'},
                                        {"json", no_argument, NULL, 'j'},
                                        {"help", no_argument, NULL, 'h'},
                                        {NULL, 0, NULL, 0}};
  opterr = 0;
  int c;
  while ((c = getopt_long(argc, argv, ":", known, NULL)) != -1) {
    switch (c) {
      case 'r':
        o.pattern = optarg;
        break;
      case 'l':
        o.list = 1;
        break;
      case 'f':
        o.flavor = optarg;
        break;
      case 's':
        o.samples = (long long)number("samples", optarg, 1, kMost, 1);
        break;
      case 'b':
        o.budget_s = number("budget-s", optarg, 0.001, 3600, 0);
        break;
      case 'p':
        o.pin = 1;
        break;
      case 'j':
        o.json = 1;
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
  if (strcmp(o.flavor, "allocate") != 0 && strcmp(o.flavor, "create") != 0 &&
      strcmp(o.flavor, "shared") != 0)
    reject("--flavor knows allocate, create, shared; not '%s'", o.flavor);
  return o;
}

static void run_matching(Bench* b, const regex_t* pattern) {
  int matching = 0;
  for (int r = 0; r < kRowCount; ++r) {
    if (regexec(pattern, kRows[r].name, 0, NULL, 0) != 0) continue;
    ++matching;
    if (!b->options.list)
      run_row(b, &kRows[r]);
    else if (b->rank == 0)
      printf("%s\n", kRows[r].name);
  }
  if (matching == 0) reject("--rows: no row matches '%s' (see --list)", b->options.pattern);
}

int main(int argc, char** argv) {
  Bench b = {.win = MPI_WIN_NULL};
  regex_t pattern;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &b.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &b.ranks);
  b.options = parse(argc, argv, b.rank);
  b.peer = 1 % b.ranks;
  if (regcomp(&pattern, b.options.pattern, REG_EXTENDED | REG_NOSUB) != 0)
    reject("--rows: '%s' is not a regular expression", b.options.pattern);
  if (b.options.pin) pin();
  b.timer_us = measure_timer();
  size_t bytes = (size_t)b.options.samples * sizeof(double);
  b.moves = memory(bytes);
  b.copies = memory(bytes);
  b.ratios = memory(bytes);
  if (b.rank == 0 && !b.options.json && !b.options.list)
    printf("%-16s %-8s %11s %11s %11s %11s %9s %8s   (us; %d ranks; a clock read: %.3f)\n", "row",
           "flavor", "median", "q1", "q3", "memcpy", "by memcpy", "samples", b.ranks, b.timer_us);
  run_matching(&b, &pattern);
  free(b.moves);
  free(b.copies);
  free(b.ratios);
  regfree(&pattern);
  MPI_Bcast(&b.bad, 1, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Finalize();
  return b.bad;
}
