// SPDX-License-Identifier: Apache-2.0
// The limits of this host: the bare instructions and system calls that one-sided communication is
// made of, without any library. Two processes (fork) share one mapping; JSON
// objects as those of one_sided, one for each row. Needs no MPI; start it alone.
//
//   faa_alone, faa_contended     atomic fetch-and-add of one process; of two on one line (each)
//   ping_pong_faa, ping_pong     a line there and back by fetch-and-add; by plain loads and stores
//   memcpy_*                     private memory to the mapping
//   put_clwb_*, put_clflushopt_*, put_movnt_*   the same, and written back before it ends
//   get_clflushopt_*             mapping to private memory, after the lines were dropped
//   sum_scattered_*              adds a double to each of an array, first to the even ones, then to
//                                the odd ones; _flushed: as others see it without coherence, that
//                                is, the lines dropped before and the sums streamed, 256 at a time
//   token_*                      a token between two processes on one CPU, there and back
//   system_call, process_vm_writev_8
//
// Rows marked with a batch time many operations at once and give the time of one. Rows that the
// processor lacks instructions for are reported on stderr and skipped.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/futex.h>
#include <regex.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <emmintrin.h>
#endif

enum {
  kLine = 64,
  kDataBytes = 1 << 20,
  kHeadBytes = 4096,
  kMostSamples = 20000,
  kBatch = 1000,
};

// The start of the mapping: one line for each word.
typedef struct {
  _Alignas(kLine) _Atomic uint64_t word;
  _Alignas(kLine) _Atomic uint64_t back;
  _Alignas(kLine) _Atomic uint32_t token;
  _Alignas(kLine) _Atomic uint32_t ready;
  _Alignas(kLine) _Atomic uint32_t stop;
} Head;

typedef struct {
  Head* head;
  unsigned char *data, *private;  // kDataBytes each
  int cpus[2], cpu_count;
  double budget_s, timer_us;
  double samples[kMostSamples];
} Limits;

typedef struct Row Row;
struct Row {
  const char* name;
  int processes;
  int (*run)(Limits*, const Row*);  // number of samples taken; below 0: not possible here
  size_t bytes;
  void (*move)(void* to, void* from, size_t bytes);
  void (*wait)(_Atomic uint32_t* token, uint32_t until);
  int needs;  // a Feature
};

typedef enum { kAnywhere, kClwb, kClflushopt, kX86 } Feature;

static _Noreturn void reject(const char* format, ...) {
  va_list list;
  va_start(list, format);
  fprintf(stderr, "limits: ");
  vfprintf(stderr, format, list);
  fprintf(stderr, "\n");
  va_end(list);
  exit(2);
}

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static void run_on(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) perror("limits: sched_setaffinity");
}

// --- Moving data --------------------------------------------------------------------------------

static void move_plain(void* to, void* from, size_t bytes) { memcpy(to, from, bytes); }

static void sum_plain(void* to, void* from, size_t bytes) {
  volatile double* const sum = to;
  const double* const add = from;
  const size_t n = bytes / sizeof *sum;
  for (size_t odd = 0; odd < 2; ++odd)
    for (size_t i = odd; i < n; i += 2) sum[i] += add[i];
}

#if defined(__x86_64__)

static int has(Feature feature) {
  unsigned a, b = 0, c, d;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) b = 0;
  if (feature == kClwb) return (b >> 24) & 1;
  if (feature == kClflushopt) return (b >> 23) & 1;
  return 1;
}

static void move_clwb(void* to, void* from, size_t bytes) {
  memcpy(to, from, bytes);
  for (size_t i = 0; i < bytes; i += kLine)
    __asm__ volatile("clwb %0" : "+m"(*((volatile char*)to + i)));
  _mm_sfence();
}

static void move_clflushopt(void* to, void* from, size_t bytes) {
  memcpy(to, from, bytes);
  for (size_t i = 0; i < bytes; i += kLine)
    __asm__ volatile("clflushopt %0" : "+m"(*((volatile char*)to + i)));
  _mm_sfence();
}

static void move_movnt(void* to, void* from, size_t bytes) {
  size_t i = 0;
  for (; i + 16 <= bytes; i += 16)
    _mm_stream_si128((__m128i*)((char*)to + i), _mm_loadu_si128((__m128i*)((char*)from + i)));
  for (; i + 8 <= bytes; i += 8)
    _mm_stream_si64((long long*)((char*)to + i), *(long long*)((char*)from + i));
  _mm_sfence();
}

static void get_clflushopt(void* to, void* from, size_t bytes) {
  for (size_t i = 0; i < bytes; i += kLine)
    __asm__ volatile("clflushopt %0" : "+m"(*((volatile char*)from + i)));
  _mm_mfence();
  memcpy(to, from, bytes);
}

static void sum_flushed(void* to, void* from, size_t bytes) {
  enum { kTogether = 512 };  // elements; each second one is added to
  double *sum = to, *add = from;
  const size_t n = bytes / sizeof *sum;
  for (size_t odd = 0; odd < 2; ++odd)
    for (size_t first = 0; first < n; first += kTogether) {
      const size_t end = first + kTogether < n ? first + kTogether : n;
      for (size_t i = first; i < end; i += kLine / sizeof *sum)
        __asm__ volatile("clflushopt %0" : "+m"(*(volatile char*)&sum[i]));
      _mm_mfence();
      for (size_t i = first + odd; i < end; i += 2) {
        const double v = sum[i] + add[i];
        long long bits;
        memcpy(&bits, &v, sizeof bits);
        _mm_stream_si64((long long*)&sum[i], bits);
      }
      _mm_sfence();
    }
}

static void relax(void) { _mm_pause(); }

#else

static int has(Feature feature) { return feature == kAnywhere; }
static void move_clwb(void* to, void* from, size_t bytes) { memcpy(to, from, bytes); }
static void move_clflushopt(void* to, void* from, size_t bytes) { memcpy(to, from, bytes); }
static void move_movnt(void* to, void* from, size_t bytes) { memcpy(to, from, bytes); }
static void get_clflushopt(void* to, void* from, size_t bytes) { memcpy(to, from, bytes); }
static void sum_flushed(void* to, void* from, size_t bytes) { memcpy(to, from, bytes); }
static void relax(void) {}

#endif

static int run_put(Limits* l, const Row* row) {
  double deadline = now_us() + 1e6 * l->budget_s, end = 0;
  int n = 0;
  memset(l->data, 0, row->bytes);
  while (n < kMostSamples && (n == 0 || end < deadline)) {
    l->private[0] = (unsigned char)n;
    double start = now_us();
    row->move(l->data, l->private, row->bytes);
    end = now_us();
    l->samples[n++] = end - start;
  }
  return n;
}

static int run_get(Limits* l, const Row* row) {
  double deadline = now_us() + 1e6 * l->budget_s, end = 0;
  int n = 0;
  while (n < kMostSamples && (n == 0 || end < deadline)) {
    double start = now_us();
    row->move(l->private, l->data, row->bytes);
    end = now_us();
    l->samples[n++] = end - start;
  }
  return n;
}

// --- Atomics and lines --------------------------------------------------------------------------

// With `contended`, keeps the batches during which the partner added about as much: on a busy host
// it does not run all the time.
static int add_in_batches(Limits* l, int contended) {
  double deadline = now_us() + 1e6 * l->budget_s, end = 0;
  int n = 0;
  while (n < kMostSamples && end < deadline) {
    uint64_t before = atomic_load(&l->head->word);
    double start = now_us();
    for (int i = 0; i < kBatch; ++i) atomic_fetch_add(&l->head->word, 1);
    end = now_us();
    uint64_t others = atomic_load(&l->head->word) - before - kBatch;
    if (!contended || others > kBatch / 2) l->samples[n++] = (end - start) / kBatch;
  }
  return n;
}

static int run_faa(Limits* l, const Row* row) {
  (void)row;
  return add_in_batches(l, 0);
}

// A second process, on CPU `cpu`, that runs `body` until head->stop is set or body returns.
static pid_t start_partner(Limits* l, const Row* row, int cpu, void (*body)(Limits*, const Row*)) {
  atomic_store(&l->head->word, 0);
  atomic_store(&l->head->back, 0);
  atomic_store(&l->head->token, 0);
  atomic_store(&l->head->ready, 0);
  atomic_store(&l->head->stop, 0);
  fflush(stdout);
  pid_t partner = fork();
  if (partner < 0) {
    perror("limits: fork");
    exit(1);
  }
  if (partner == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    run_on(cpu);
    atomic_store(&l->head->ready, 1);
    body(l, row);
    _exit(0);
  }
  while (atomic_load(&l->head->ready) == 0) sched_yield();
  return partner;
}

static void end_partner(Limits* l, pid_t partner) {
  atomic_store(&l->head->stop, 1);
  waitpid(partner, NULL, 0);
}

static void add_until_stopped(Limits* l, const Row* row) {
  (void)row;
  while (atomic_load_explicit(&l->head->stop, memory_order_relaxed) == 0)
    for (int i = 0; i < kBatch; ++i) atomic_fetch_add(&l->head->word, 1);
}

static int run_faa_contended(Limits* l, const Row* row) {
  if (l->cpu_count < 2) return -1;
  pid_t partner = start_partner(l, row, l->cpus[1], add_until_stopped);
  int n = add_in_batches(l, 1);
  end_partner(l, partner);
  return n;
}

// The partner answers each odd value of the word: by adding one, or in a line of its own.
static void answer(Limits* l, const Row* row) {
  Head* h = l->head;
  int by_add = strcmp(row->name, "ping_pong_faa") == 0;
  for (uint64_t expected = 1; atomic_load_explicit(&h->stop, memory_order_relaxed) == 0;) {
    uint64_t value = by_add ? atomic_fetch_add(&h->word, 0)
                            : atomic_load_explicit(&h->word, memory_order_acquire);
    if (value != expected) continue;
    if (by_add)
      atomic_fetch_add(&h->word, 1);
    else
      atomic_store_explicit(&h->back, expected, memory_order_release);
    expected += 2;
  }
}

static void bounce(Head* h, int by_add, uint64_t odd) {
  if (by_add) {
    atomic_fetch_add(&h->word, 1);
    while (atomic_fetch_add(&h->word, 0) != odd + 1) continue;
  } else {
    atomic_store_explicit(&h->word, odd, memory_order_release);
    while (atomic_load_explicit(&h->back, memory_order_acquire) != odd) continue;
  }
}

static int run_ping_pong(Limits* l, const Row* row) {
  if (l->cpu_count < 2) return -1;
  int by_add = strcmp(row->name, "ping_pong_faa") == 0, n = 0;
  pid_t partner = start_partner(l, row, l->cpus[1], answer);
  double deadline = now_us() + 1e6 * l->budget_s, end = 0;
  for (uint64_t odd = 1; n < kMostSamples && (n == 0 || end < deadline);) {
    double start = now_us();
    for (int i = 0; i < kBatch; ++i, odd += 2) bounce(l->head, by_add, odd);
    end = now_us();
    l->samples[n++] = (end - start) / kBatch;
  }
  end_partner(l, partner);
  return n;
}

// --- A token on one CPU -------------------------------------------------------------------------

static void wait_spinning(_Atomic uint32_t* token, uint32_t until) {
  while (atomic_load(token) != until) relax();
}

static void wait_yielding(_Atomic uint32_t* token, uint32_t until) {
  while (atomic_load(token) != until) sched_yield();
}

static void wait_sleeping(_Atomic uint32_t* token, uint32_t until) {
  uint32_t value;
  while ((value = atomic_load(token)) != until)
    syscall(SYS_futex, token, FUTEX_WAIT, value, NULL, NULL, 0);
}

static void pass_token(const Row* row, _Atomic uint32_t* token, uint32_t value) {
  atomic_store(token, value);
  if (row->wait == wait_sleeping) syscall(SYS_futex, token, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void return_tokens(Limits* l, const Row* row) {
  for (;;) {
    row->wait(&l->head->token, 1);
    uint32_t last = atomic_load(&l->head->stop);
    pass_token(row, &l->head->token, 0);
    if (last) return;
  }
}

static int run_token(Limits* l, const Row* row) {
  pid_t partner = start_partner(l, row, l->cpus[0], return_tokens);
  double deadline = now_us() + 1e6 * l->budget_s, end = 0;
  int n = 0;
  while (n < kMostSamples && (n == 0 || end < deadline)) {
    double start = now_us();
    pass_token(row, &l->head->token, 1);
    row->wait(&l->head->token, 0);
    end = now_us();
    l->samples[n++] = end - start;
  }
  atomic_store(&l->head->stop, 1);
  pass_token(row, &l->head->token, 1);
  end_partner(l, partner);
  return n;
}

// --- System calls -------------------------------------------------------------------------------

static int run_system_call(Limits* l, const Row* row) {
  (void)row;
  double deadline = now_us() + 1e6 * l->budget_s, end = 0;
  int n = 0;
  while (n < kMostSamples && (n == 0 || end < deadline)) {
    double start = now_us();
    for (int i = 0; i < kBatch; ++i) syscall(SYS_getppid);
    end = now_us();
    l->samples[n++] = (end - start) / kBatch;
  }
  return n;
}

static void sleep_until_stopped(Limits* l, const Row* row) {
  (void)row;
  struct timespec millisecond = {0, 1000000};
  while (atomic_load(&l->head->stop) == 0) nanosleep(&millisecond, NULL);
}

// Into the private memory of the partner, which has it at the same address.
static int run_process_vm_writev(Limits* l, const Row* row) {
  pid_t partner = start_partner(l, row, l->cpus[l->cpu_count > 1], sleep_until_stopped);
  struct iovec vector = {l->private, row->bytes};
  double deadline = now_us() + 1e6 * l->budget_s, end = 0;
  int n = 0, good = 1;
  while (good && n < kMostSamples && (n == 0 || end < deadline)) {
    double start = now_us();
    good = process_vm_writev(partner, &vector, 1, &vector, 1, 0) == (ssize_t)row->bytes;
    end = now_us();
    l->samples[n++] = end - start;
  }
  end_partner(l, partner);
  return good ? n : -1;
}

// --- Rows ---------------------------------------------------------------------------------------

// Name, processes, run, bytes, move, wait, needs.
static const Row kRows[] = {
    {"faa_alone", 1, run_faa, 8, NULL, NULL, kAnywhere},
    {"faa_contended", 2, run_faa_contended, 8, NULL, NULL, kAnywhere},
    {"ping_pong_faa", 2, run_ping_pong, 8, NULL, NULL, kAnywhere},
    {"ping_pong", 2, run_ping_pong, 8, NULL, NULL, kAnywhere},
    {"memcpy_8", 1, run_put, 8, move_plain, NULL, kAnywhere},
    {"memcpy_4k", 1, run_put, 4 << 10, move_plain, NULL, kAnywhere},
    {"memcpy_64k", 1, run_put, 64 << 10, move_plain, NULL, kAnywhere},
    {"memcpy_1m", 1, run_put, 1 << 20, move_plain, NULL, kAnywhere},
    {"put_clwb_8", 1, run_put, 8, move_clwb, NULL, kClwb},
    {"put_clwb_4k", 1, run_put, 4 << 10, move_clwb, NULL, kClwb},
    {"put_clwb_64k", 1, run_put, 64 << 10, move_clwb, NULL, kClwb},
    {"put_clwb_1m", 1, run_put, 1 << 20, move_clwb, NULL, kClwb},
    {"put_clflushopt_8", 1, run_put, 8, move_clflushopt, NULL, kClflushopt},
    {"put_clflushopt_4k", 1, run_put, 4 << 10, move_clflushopt, NULL, kClflushopt},
    {"put_clflushopt_64k", 1, run_put, 64 << 10, move_clflushopt, NULL, kClflushopt},
    {"put_clflushopt_1m", 1, run_put, 1 << 20, move_clflushopt, NULL, kClflushopt},
    {"put_movnt_8", 1, run_put, 8, move_movnt, NULL, kX86},
    {"put_movnt_4k", 1, run_put, 4 << 10, move_movnt, NULL, kX86},
    {"put_movnt_64k", 1, run_put, 64 << 10, move_movnt, NULL, kX86},
    {"put_movnt_1m", 1, run_put, 1 << 20, move_movnt, NULL, kX86},
    {"get_clflushopt_8", 1, run_get, 8, get_clflushopt, NULL, kClflushopt},
    {"get_clflushopt_4k", 1, run_get, 4 << 10, get_clflushopt, NULL, kClflushopt},
    {"get_clflushopt_64k", 1, run_get, 64 << 10, get_clflushopt, NULL, kClflushopt},
    {"get_clflushopt_1m", 1, run_get, 1 << 20, get_clflushopt, NULL, kClflushopt},
    {"sum_scattered_8k", 1, run_put, 8 << 10, sum_plain, NULL, kAnywhere},
    {"sum_scattered_flushed_8k", 1, run_put, 8 << 10, sum_flushed, NULL, kClflushopt},
    {"token_spin", 2, run_token, 4, NULL, wait_spinning, kAnywhere},
    {"token_yield", 2, run_token, 4, NULL, wait_yielding, kAnywhere},
    {"token_futex", 2, run_token, 4, NULL, wait_sleeping, kAnywhere},
    {"system_call", 1, run_system_call, 0, NULL, NULL, kAnywhere},
    {"process_vm_writev_8", 2, run_process_vm_writev, 8, NULL, NULL, kAnywhere},
};
enum { kRowCount = sizeof kRows / sizeof *kRows };

static int compare(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static double quantile(const double* sorted, int n, double q) {
  return sorted[(size_t)(q * (double)(n - 1) + 0.5)];
}

static int is_batched(const Row* row) {
  return row->run == run_faa || row->run == run_faa_contended || row->run == run_ping_pong ||
         row->run == run_system_call;
}

static void run_row(Limits* l, const Row* row) {
  if (!has((Feature)row->needs)) {
    fprintf(stderr, "limits: %s skipped: this processor lacks the instruction\n", row->name);
    return;
  }
  int n = row->run(l, row);
  if (n <= 0) {
    fprintf(
        stderr, "limits: %s skipped: %s\n", row->name,
        l->cpu_count < 2 ? "it wants two CPUs" : "no sample; host too busy, or the kernel refuses");
    return;
  }
  double sum = 0;
  qsort(l->samples, (size_t)n, sizeof *l->samples, compare);
  for (int i = 0; i < n; ++i) sum += l->samples[i];
  printf(
      "{\"row\":\"%s\",\"flavor\":\"bare\",\"ranks\":%d,\"unit\":\"us\",\"median\":%.4f,"
      "\"q1\":%.4f,\"q3\":%.4f,\"p99\":%.4f,\"max\":%.4f,\"mean\":%.4f,\"samples\":%d,"
      "\"timer_us\":%.4f,\"batch\":%d}\n",
      row->name, row->processes, quantile(l->samples, n, 0.5), quantile(l->samples, n, 0.25),
      quantile(l->samples, n, 0.75), quantile(l->samples, n, 0.99), l->samples[n - 1], sum / n, n,
      l->timer_us, is_batched(row) ? kBatch : 1);
  fflush(stdout);
}

// --- Setting up ---------------------------------------------------------------------------------

static void map_memory(Limits* l, const char* pool) {
  size_t bytes = kHeadBytes + kDataBytes;
  int flags = MAP_SHARED | (pool == NULL ? MAP_ANONYMOUS : 0), file = -1;
  if (pool != NULL && (file = open(pool, O_RDWR)) < 0) reject("%s: %s", pool, strerror(errno));
  unsigned char* map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, file, 0);
  if (map == MAP_FAILED) reject("no mapping of %zu bytes: %s", bytes, strerror(errno));
  if (file >= 0) close(file);
  l->head = (Head*)map;
  l->data = map + kHeadBytes;
  void* private = NULL;
  if (posix_memalign(&private, 4096, kDataBytes) != 0) reject("no memory");
  l->private = private;
  memset(l->data, 1, kDataBytes);
  memset(l->private, 2, kDataBytes);
}

static void find_cpus(Limits* l) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) reject("sched_getaffinity failed");
  for (int cpu = 0; cpu < CPU_SETSIZE && l->cpu_count < 2; ++cpu)
    if (CPU_ISSET(cpu, &allowed)) l->cpus[l->cpu_count++] = cpu;
  run_on(l->cpus[0]);
}

static void measure_timer(Limits* l) {
  enum { kReads = 1001 };
  for (int i = 0; i < kReads; ++i) {
    double start = now_us();
    l->samples[i] = now_us() - start;
  }
  qsort(l->samples, kReads, sizeof *l->samples, compare);
  for (int i = kReads / 4; i < 3 * kReads / 4; ++i) l->timer_us += l->samples[i];
  l->timer_us /= 3 * kReads / 4 - kReads / 4;  // of the middle half
}

static void help(void) {
  printf(
      "usage: limits [options]\n"
      "  --rows REGEX   only rows whose name matches (extended regular expression)\n"
      "  --list         print the rows and stop\n"
      "  --budget-s S   most seconds for a row (default 0.5)\n"
      "  --pool PATH    map this file or device of at least 1028 KiB instead of ordinary shared\n"
      "                 memory; its first 1028 KiB are overwritten\n"
      "  --help         this text\n");
}

struct chosen {
  const char* pattern;  // of the rows' names
  const char* pool;
  double budget_s;
  int list;
};

static struct chosen parse(int argc, char** argv) {
  struct chosen chosen = {.pattern = "", .budget_s = 0.5};
  static const struct option known[] = {
      {"rows", required_argument, NULL, 'r'},     {"list", no_argument, NULL, 'l'},
      {"budget-s", required_argument, NULL, 'b'}, {"pool", required_argument, NULL, 'p'},
      {"help", no_argument, NULL, 'h'},           {NULL, 0, NULL, 0}};
  int c;
  opterr = 0;
  while ((c = getopt_long(argc, argv, ":", known, NULL)) != -1) {
    char* end = NULL;
    switch (c) {
      case 'r':
        chosen.pattern = optarg;
        break;
      case 'l':
        chosen.list = 1;
        break;
      case 'p':
        chosen.pool = optarg;
        break;
      case 'b':
        chosen.budget_s = strtod(optarg, &end);
        if (end == optarg || *end != '\0' || !(chosen.budget_s > 0 && chosen.budget_s <= 3600))
          reject("--budget-s wants a number above 0, up to 3600, not '%s'", optarg);
        break;
      case 'h':
        help();
        exit(0);
      case ':':
        reject("option %s lacks its value (see --help)", argv[optind - 1]);
      default:
        reject("unknown option %s (see --help)", argv[optind - 1]);
    }
  }
  if (optind < argc) reject("unexpected argument '%s' (see --help)", argv[optind]);
  return chosen;
}

int main(int argc, char** argv) {
  static Limits limits;
  const struct chosen chosen = parse(argc, argv);
  int matching = 0;
  limits.budget_s = chosen.budget_s;
  regex_t regex;
  if (regcomp(&regex, chosen.pattern, REG_EXTENDED | REG_NOSUB) != 0)
    reject("--rows: '%s' is not a regular expression", chosen.pattern);
  if (!chosen.list) {
    map_memory(&limits, chosen.pool);
    find_cpus(&limits);
    measure_timer(&limits);
  }
  for (int r = 0; r < kRowCount; ++r) {
    if (regexec(&regex, kRows[r].name, 0, NULL, 0) != 0) continue;
    ++matching;
    if (chosen.list)
      printf("%s\n", kRows[r].name);
    else
      run_row(&limits, &kRows[r]);
  }
  regfree(&regex);
  free(limits.private);
  if (matching == 0) reject("--rows: no row matches '%s' (see --list)", chosen.pattern);
  return 0;
}
