// SPDX-License-Identifier: Apache-2.0
// Does a writer get in? Rank 0 takes an exclusive lock at intervals while all other ranks take and
// release a shared lock of the same window without a pause. For each request of the writer: how
// long it waited, and how many reader entries lie between its request and its entry.
//
// Then the distribution of lock + unlock with random targets, all ranks at once, for shared, mixed
// and exclusive locks: quartiles and interquartile range, as in Table 2 of "MPI Passive Target
// Synchronization on a Non-Cache-Coherent Shared-Memory Processor".
//
// One JSON object for each row. All ranks must be on one host: entries are counted by the time
// stamps of one clock, taken after MPI_Win_lock returns. A reader that was preempted between its
// entry and its time stamp is counted late, so a count is off by at most one for each reader.
// (Where an MPI defers the lock to the first operation, --touch makes the entries real.)
//
// Memory model: separate; window memory is accessed locally only to clear it, under a lock.
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <mpi.h>
#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct {
  long long rounds, interval_us, hold_us, samples, record_mib, target;
  double budget_s;
  int touch, pin, starvation, distribution;
} Options;

// Times of entries, as differences in nanoseconds: one word, or 0xffff and four words.
typedef struct {
  uint16_t* words;
  size_t used, capacity;
  uint64_t first, last;
  int full;
} Trace;

typedef struct {
  uint64_t request, entry;
} Wait;

typedef struct {
  Options options;
  int rank, ranks, bad;
  MPI_Win win;
} Bench;

static _Noreturn void reject(const char* format, ...) {
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) {
    va_list list;
    va_start(list, format);
    fprintf(stderr, "starvation: ");
    vfprintf(stderr, format, list);
    fprintf(stderr, " (see --help)\n");
    va_end(list);
  }
  MPI_Finalize();
  exit(2);
}

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1000000000u * (uint64_t)t.tv_sec + (uint64_t)t.tv_nsec;
}

static void* memory(size_t bytes) {
  void* p = malloc(bytes > 0 ? bytes : 1);
  if (p == NULL) {
    fprintf(stderr, "starvation: no memory for %zu bytes\n", bytes);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  memset(p, 0, bytes);  // no page faults later
  return p;
}

static uint64_t next_random(uint64_t* state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state >> 11;
}

// --- Traces of the readers ----------------------------------------------------------------------

static void note(Trace* t, uint64_t time) {
  uint64_t difference = time - t->last;
  if (t->used + 5 > t->capacity) t->full = 1;
  if (t->full) return;
  if (difference < 0xffff) {
    t->words[t->used++] = (uint16_t)difference;
  } else {
    t->words[t->used++] = 0xffff;
    for (int shift = 48; shift >= 0; shift -= 16)
      t->words[t->used++] = (uint16_t)(difference >> shift);
  }
  t->last = time;
}

static uint64_t next_time(const Trace* t, size_t* at, uint64_t time) {
  uint64_t difference = t->words[(*at)++];
  if (difference == 0xffff) {
    difference = 0;
    for (int i = 0; i < 4; ++i) difference = difference << 16 | t->words[(*at)++];
  }
  return time + difference;
}

// Adds the entries of this reader to the count of the wait in which they lie.
static void count_entries(const Trace* t, const Wait* waits, long long n, long long* counts) {
  uint64_t time = t->first;
  long long w = 0;
  for (size_t at = 0; at < t->used;) {
    time = next_time(t, &at, time);
    while (w < n && time > waits[w].entry) ++w;
    if (w < n && time > waits[w].request) ++counts[w];
  }
}

// --- The two roles ------------------------------------------------------------------------------

static void read_until_told(Bench* b, Trace* trace) {
  int target = (int)b->options.target, told = 0;
  uint64_t pair[2], tested, limit;
  MPI_Request stop;
  MPI_Irecv(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &stop);
  tested = now_ns();
  limit = tested + (uint64_t)(1e9 * b->options.budget_s);
  for (uint64_t n = 1; !told; ++n) {
    MPI_Win_lock(MPI_LOCK_SHARED, target, 0, b->win);
    if (b->options.touch) {
      MPI_Get(pair, 2, MPI_UINT64_T, target, 0, 2, MPI_UINT64_T, b->win);
      MPI_Win_flush(target, b->win);
    }
    uint64_t time = now_ns();
    MPI_Win_unlock(target, b->win);
    note(trace, time);
    if (b->options.touch && pair[0] != pair[1]) b->bad = 1;
    if (time > limit) break;  // gives way to a writer that never got in
    if (n % 64 == 0 || time - tested > 1000000) {
      MPI_Test(&stop, &told, MPI_STATUS_IGNORE);
      tested = time;
    }
  }
  if (!told) MPI_Wait(&stop, MPI_STATUS_IGNORE);
}

static void pause_ns(uint64_t ns) {
  struct timespec t = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
  nanosleep(&t, NULL);
}

// Returns the number of rounds. The pauses vary from half to one and a half of the interval.
static long long write_at_intervals(Bench* b, Wait* waits) {
  const Options* o = &b->options;
  int target = (int)o->target;
  uint64_t random = 88172645463325252u, limit = now_ns() + (uint64_t)(1e9 * o->budget_s);
  long long n = 0;
  while (n < o->rounds && (n == 0 || now_ns() < limit)) {
    uint64_t interval = 1000 * (uint64_t)o->interval_us;
    if (interval > 0) pause_ns(interval / 2 + next_random(&random) % interval);
    uint64_t pair[2] = {(uint64_t)n, (uint64_t)n};
    // After a sleep the first call takes a microsecond longer, in which a reader enters 20 times.
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, (target + 1) % b->ranks, 0, b->win);
    MPI_Win_unlock((target + 1) % b->ranks, b->win);
    waits[n].request = now_ns();
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, b->win);
    if (o->touch) {
      MPI_Put(&pair[0], 1, MPI_UINT64_T, target, 0, 1, MPI_UINT64_T, b->win);
      MPI_Win_flush(target, b->win);
    }
    waits[n].entry = now_ns();
    while (o->hold_us > 0 && now_ns() - waits[n].entry < 1000 * (uint64_t)o->hold_us) continue;
    if (o->touch) MPI_Put(&pair[1], 1, MPI_UINT64_T, target, 8, 1, MPI_UINT64_T, b->win);
    MPI_Win_unlock(target, b->win);
    ++n;
  }
  for (int r = 1; r < b->ranks; ++r) MPI_Send(NULL, 0, MPI_BYTE, r, 0, MPI_COMM_WORLD);
  return n;
}

// --- Reporting ----------------------------------------------------------------------------------

static int compare(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static double quantile(const double* sorted, size_t n, double q) {
  return sorted[(size_t)(q * (double)(n - 1) + 0.5)];
}

static double mean(const double* values, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; ++i) sum += values[i];
  return sum / (double)n;
}

static void print_quantiles(const char* prefix, double* values, size_t n) {
  qsort(values, n, sizeof *values, compare);
  printf(",\"%smedian\":%.6g,\"%sq1\":%.6g,\"%sq3\":%.6g,\"%sp99\":%.6g,\"%smax\":%.6g", prefix,
         quantile(values, n, 0.5), prefix, quantile(values, n, 0.25), prefix,
         quantile(values, n, 0.75), prefix, quantile(values, n, 0.99), prefix, values[n - 1]);
  printf(",\"%smean\":%.6g", prefix, mean(values, n));
}

// Waits that ended after a reader's trace was full are left out.
static void report_starvation(const Bench* b, const Wait* waits, const long long* counts,
                              long long rounds, uint64_t valid_until, uint64_t entries,
                              double seconds) {
  double* us = memory((size_t)rounds * sizeof(double));
  double* passed = memory((size_t)rounds * sizeof(double));
  size_t n = 0;
  for (long long i = 0; i < rounds; ++i) {
    if (waits[i].entry > valid_until) continue;
    us[n] = 1e-3 * (double)(waits[i].entry - waits[i].request);
    passed[n++] = (double)counts[i];
  }
  if (n == 0) {
    fprintf(stderr,
            "starvation: the readers' traces were full before the writer's first entry; "
            "enlarge --record-mib\n");
  } else {
    printf(
        "{\"row\":\"writer_wait\",\"flavor\":\"allocate\",\"ranks\":%d,\"readers\":%d,\"unit\":"
        "\"us\"",
        b->ranks, b->ranks - 1);
    print_quantiles("", us, n);
    print_quantiles("entries_", passed, n);
    printf(",\"samples\":%zu,\"rounds\":%lld,\"reader_entries\":%llu,\"seconds\":%.3f}\n", n,
           rounds, (unsigned long long)entries, seconds);
  }
  fflush(stdout);
  free(us);
  free(passed);
}

static uint64_t total_entries(const Trace* t) {
  uint64_t n = 0;
  for (size_t at = 0; at < t->used; ++n) at += t->words[at] == 0xffff ? 5 : 1;
  return n;
}

static void measure_starvation(Bench* b) {
  long long rounds = 0;
  size_t most = (size_t)b->options.rounds;
  Wait* waits = memory(most * sizeof *waits);
  long long* counts = memory(most * sizeof *counts);
  size_t words = b->rank == 0 ? 8 : (size_t)b->options.record_mib << 19;
  Trace trace = {.words = memory(2 * words), .capacity = words};
  MPI_Barrier(MPI_COMM_WORLD);
  uint64_t start = trace.first = trace.last = now_ns();
  if (b->rank == 0)
    rounds = write_at_intervals(b, waits);
  else
    read_until_told(b, &trace);
  double seconds = 1e-9 * (double)(now_ns() - start);

  uint64_t valid_until = trace.full ? trace.last : UINT64_MAX, entries = total_entries(&trace);
  MPI_Allreduce(MPI_IN_PLACE, &valid_until, 1, MPI_UINT64_T, MPI_MIN, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, &entries, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  MPI_Bcast(&rounds, 1, MPI_LONG_LONG, 0, MPI_COMM_WORLD);
  MPI_Bcast(waits, (int)(2 * rounds), MPI_UINT64_T, 0, MPI_COMM_WORLD);
  count_entries(&trace, waits, rounds, counts);
  MPI_Allreduce(MPI_IN_PLACE, counts, (int)rounds, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (b->rank == 0) report_starvation(b, waits, counts, rounds, valid_until, entries, seconds);
  free(trace.words);
  free(counts);
  free(waits);
}

// One row: every rank locks and unlocks random targets; `exclusive` is the share in percent.
static void measure_distribution(Bench* b, const char* row, unsigned exclusive) {
  size_t most = (size_t)b->options.samples;
  double* us = memory(most * sizeof *us);
  uint64_t random = 88172645463325252u + 0x9e3779b97f4a7c15u * (uint64_t)(b->rank + 1);
  int n = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  uint64_t limit = now_ns() + (uint64_t)(1e9 * b->options.budget_s), end = 0;
  while ((size_t)n < most && end < limit) {
    int target = (int)(next_random(&random) % (uint64_t)b->ranks);
    int type = next_random(&random) % 100 < exclusive ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED;
    uint64_t start = now_ns();
    MPI_Win_lock(type, target, 0, b->win);
    MPI_Win_unlock(target, b->win);
    end = now_ns();
    us[n++] = 1e-3 * (double)(end - start);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  int* counts = memory(2 * (size_t)b->ranks * sizeof(int));
  int *at = counts + b->ranks, total = 0;
  MPI_Gather(&n, 1, MPI_INT, counts, 1, MPI_INT, 0, MPI_COMM_WORLD);
  for (int r = 0; r < b->ranks; total += counts[r], ++r) at[r] = total;
  double* all = memory((size_t)total * sizeof *all);
  MPI_Gatherv(us, n, MPI_DOUBLE, all, counts, at, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  if (b->rank == 0) {
    size_t size = (size_t)total;
    printf("{\"row\":\"%s\",\"flavor\":\"allocate\",\"ranks\":%d,\"unit\":\"us\"", row, b->ranks);
    print_quantiles("", all, size);
    double iqr = quantile(all, size, 0.75) - quantile(all, size, 0.25);
    printf(",\"iqr\":%.6g,\"iqr_by_median\":%.6g,\"samples\":%d}\n", iqr,
           iqr / quantile(all, size, 0.5), total);
    fflush(stdout);
  }
  free(all);
  free(counts);
  free(us);
}

// --- Options ------------------------------------------------------------------------------------

static void help(void) {
  printf(
      "usage: starvation [options]\n"
      "  --rounds N       requests of the writer (default 200)\n"
      "  --interval-us N  mean pause of the writer between them (default 2000)\n"
      "  --hold-us N      time for which the writer keeps the lock (default 0)\n"
      "  --target N       rank whose window is locked (default 1, or 0 when alone)\n"
      "  --touch          readers get and the writer puts within the lock; checks exclusion\n"
      "  --samples N      lock + unlock pairs of each rank for the distribution (default 1000)\n"
      "  --budget-s S     most seconds for each part; readers then give way (default 10)\n"
      "  --record-mib N   memory of each reader for its time stamps (default 24)\n"
      "  --only PART      starvation or distribution\n"
      "  --pin            bind each rank to one CPU, in order of ranks\n"
      "  --help           this text\n");
}

static double number(const char* option, const char* text, double low, double high, int whole) {
  char* end;
  errno = 0;
  double value = strtod(text, &end);
  if (errno != 0 || end == text || *end != '\0' || !(value >= low && value <= high) ||
      (whole && value != (double)(long long)value))
    reject("--%s wants a %snumber from %g to %g, not '%s'", option, whole ? "whole " : "", low,
           high, text);
  return value;
}

static void parse_only(Options* o, const char* text) {
  o->starvation = strcmp(text, "starvation") == 0;
  o->distribution = strcmp(text, "distribution") == 0;
  if (!o->starvation && !o->distribution)
    reject("--only is starvation or distribution, not '%s'", text);
}

static Options parse(int argc, char** argv, int rank, int ranks) {
  Options o = {.rounds = 200,
               .interval_us = 2000,
               .samples = 1000,
               .record_mib = 24,
               .target = 1 % ranks,
               .budget_s = 10,
               .starvation = 1,
               .distribution = 1};
  static const struct option known[] = {
      {"rounds", required_argument, NULL, 'r'},   {"interval-us", required_argument, NULL, 'i'},
      {"hold-us", required_argument, NULL, 'o'},  {"target", required_argument, NULL, 't'},
      {"touch", no_argument, NULL, 'c'},          {"samples", required_argument, NULL, 's'},
      {"budget-s", required_argument, NULL, 'b'}, {"record-mib", required_argument, NULL, 'm'},
      {"only", required_argument, NULL, 'y'},     {"pin", no_argument, NULL, 'p'},
      {"help", no_argument, NULL, 'h'},           {NULL, 0, NULL, 0}};
  opterr = 0;
  int c;
  while ((c = getopt_long(argc, argv, ":", known, NULL)) != -1) {
    switch (c) {
      case 'r':
        o.rounds = (long long)number("rounds", optarg, 1, 1e6, 1);
        break;
      case 'i':
        o.interval_us = (long long)number("interval-us", optarg, 0, 1e8, 1);
        break;
      case 'o':
        o.hold_us = (long long)number("hold-us", optarg, 0, 1e8, 1);
        break;
      case 't':
        o.target = (long long)number("target", optarg, 0, ranks - 1, 1);
        break;
      case 'c':
        o.touch = 1;
        break;
      case 's':
        o.samples = (long long)number("samples", optarg, 1, 1e6, 1);
        break;
      case 'b':
        o.budget_s = number("budget-s", optarg, 0.01, 3600, 0);
        break;
      case 'm':
        o.record_mib = (long long)number("record-mib", optarg, 1, 4096, 1);
        break;
      case 'y':
        parse_only(&o, optarg);
        break;
      case 'p':
        o.pin = 1;
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

// Keeps to the CPUs that the launcher allows; a rank that it has already bound stays where it is.
static void pin(const Bench* b) {
  cpu_set_t allowed, one;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < 2) return;
  int skip = b->rank % CPU_COUNT(&allowed);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || skip-- > 0) continue;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) perror("starvation: sched_setaffinity");
    return;
  }
}

static void require_one_host(const Bench* b) {
  MPI_Comm host;
  int local;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
  MPI_Comm_size(host, &local);
  MPI_Comm_free(&host);
  MPI_Allreduce(MPI_IN_PLACE, &local, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (local != b->ranks) reject("all ranks must be on one host");
}

int main(int argc, char** argv) {
  Bench b = {.bad = 0};
  uint64_t* base;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &b.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &b.ranks);
  b.options = parse(argc, argv, b.rank, b.ranks);
  require_one_host(&b);
  if (b.options.pin) pin(&b);
  MPI_Win_allocate(16, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &b.win);
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, b.rank, 0, b.win);
  memset(base, 0, 16);
  MPI_Win_unlock(b.rank, b.win);
  MPI_Barrier(MPI_COMM_WORLD);
  if (b.options.starvation) measure_starvation(&b);
  if (b.options.distribution) {
    measure_distribution(&b, "lock_shared", 0);
    measure_distribution(&b, "lock_mixed", 50);
    measure_distribution(&b, "lock_exclusive", 100);
  }
  MPI_Win_free(&b.win);
  MPI_Allreduce(MPI_IN_PLACE, &b.bad, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (b.bad && b.rank == 0) fprintf(stderr, "starvation: a reader saw half of a write\n");
  MPI_Finalize();
  return b.bad;
}
