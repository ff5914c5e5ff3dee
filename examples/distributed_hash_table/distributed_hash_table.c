// SPDX-License-Identifier: Apache-2.0
// A hash table spread over all ranks, after the application in "MPI Passive Target Synchronization
// on a Non-Cache-Coherent Shared-Memory Processor" (section 2.2). The hash of a key names a rank
// and a slot; collisions go to the next slot of the same rank.
//
//   read    shared lock at the rank, MPI_Get of the entry (again while the slot is another key's)
//   write   exclusive lock at the rank, MPI_Get of keys to find the slot, MPI_Put of the entry
//
// Writers insert all keys and then rewrite them with higher versions, while readers look keys up.
// Checked: every entry a reader sees is whole (checksum), its value is the one written for that key
// and version, versions of a key never go back, keys never written are never found, and in the end
// each key is in the table exactly once with its last version.
//
// Memory model: separate. The only local accesses to window memory happen under a lock of the own
// window (exclusive to clear it, shared to count it).
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
  long long entries, reads, writers, updates, value_bytes, seed;
} Options;

typedef struct {
  uint64_t key;  // 0: the slot is empty
  uint64_t version;
  uint64_t checksum;  // over key, version and value
  uint64_t value[];
} Entry;

typedef struct {
  int rank, ranks;
  uint64_t seed;
  size_t value_words, entry_bytes, slots;
  MPI_Win win;
  unsigned char* base;  // this rank's slots
  Entry* seen;          // private copy of the last entry got
} Table;

typedef struct {
  uint64_t reads, found, early, torn, wrong, backwards, lost, ghosts;
} Tally;

static _Noreturn void reject(const char* format, ...) {
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) {
    va_list list;
    va_start(list, format);
    fprintf(stderr, "distributed_hash_table: ");
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
      "usage: distributed_hash_table [options]\n"
      "  --entries N      keys in the table (default 4000)\n"
      "  --reads N        look-ups by each reader (default 20000)\n"
      "  --writers N      ranks that write; the others read (default 1; when no rank is left to\n"
      "                   read, the writers read after writing)\n"
      "  --updates N      times each entry is rewritten after its insertion (default 4)\n"
      "  --value-bytes N  size of a value (default 512; rounded up to a multiple of 8)\n"
      "  --seed N         seed of keys, values and look-ups (default 1)\n"
      "  --help           this text\n");
}

static Options parse(int argc, char** argv, int rank, int ranks) {
  Options o = {
      .entries = 4000, .reads = 20000, .writers = 1, .updates = 4, .value_bytes = 64, .seed = 1};
  static const struct option known[] = {{"entries", required_argument, NULL, 'e'},
                                        {"reads", required_argument, NULL, 'r'},
                                        {"writers", required_argument, NULL, 'w'},
                                        {"updates", required_argument, NULL, 'u'},
                                        {"value-bytes", required_argument, NULL, 'v'},
                                        {"seed", required_argument, NULL, 's'},
                                        {"help", no_argument, NULL, 'h'},
                                        {NULL, 0, NULL, 0}};
  opterr = 0;
  int c;
  while ((c = getopt_long(argc, argv, ":", known, NULL)) != -1) {
    switch (c) {
      case 'e':
        o.entries = number("entries", optarg, 1, 1LL << 31);
        break;
      case 'r':
        o.reads = number("reads", optarg, 0, 1LL << 40);
        break;
      case 'w':
        o.writers = number("writers", optarg, 1, 1 << 20);
        break;
      case 'u':
        o.updates = number("updates", optarg, 0, 1 << 20);
        break;
      case 'v':
        o.value_bytes = number("value-bytes", optarg, 1, 1 << 24);
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
  if (o.writers > ranks) o.writers = ranks;
  return o;
}

static uint64_t mix(uint64_t z) {  // SplitMix64: distinct inputs give distinct outputs
  z += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// Key of an index. Indices below `entries` are written, those above never are.
static uint64_t key_of(const Table* t, uint64_t index) {
  uint64_t key = mix(index + (t->seed << 40));
  return key != 0 ? key : 1;
}

static uint64_t value_word(uint64_t key, uint64_t version, size_t word) {
  return mix(key ^ (version << 48) ^ word);
}

static uint64_t checksum_of(const Table* t, const Entry* e) {
  uint64_t sum = mix(e->key) + 3 * mix(e->version);
  for (size_t w = 0; w < t->value_words; ++w) sum = (sum << 7 | sum >> 57) ^ (e->value[w] * 5);
  return sum;
}

static void place(const Table* t, uint64_t key, int* rank, size_t* slot) {
  uint64_t hash = mix(key ^ 0x5bd1e995u);
  *rank = (int)(hash % (uint64_t)t->ranks);
  *slot = (size_t)(hash / (uint64_t)t->ranks % t->slots);
}

static void create(Table* t, const Options* o) {
  MPI_Comm_rank(MPI_COMM_WORLD, &t->rank);
  MPI_Comm_size(MPI_COMM_WORLD, &t->ranks);
  t->seed = (uint64_t)o->seed;
  t->value_words = (size_t)(o->value_bytes + 7) / 8;
  t->entry_bytes = sizeof(Entry) + 8 * t->value_words;
  t->slots = 2 * (size_t)((o->entries + t->ranks - 1) / t->ranks) + 64;
  t->seen = malloc(t->entry_bytes);
  MPI_Aint bytes = (MPI_Aint)(t->slots * t->entry_bytes);
  MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &t->base, &t->win);
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, t->rank, 0, t->win);
  memset(t->base, 0, (size_t)bytes);
  MPI_Win_unlock(t->rank, t->win);
  MPI_Barrier(MPI_COMM_WORLD);
}

static MPI_Aint at(const Table* t, size_t slot) { return (MPI_Aint)(slot * t->entry_bytes); }

// Copies the entry of `key` to t->seen; 0 when the key is not in the table.
static int lookup(Table* t, uint64_t key) {
  int target;
  size_t slot;
  place(t, key, &target, &slot);
  int bytes = (int)t->entry_bytes;
  MPI_Win_lock(MPI_LOCK_SHARED, target, 0, t->win);
  t->seen->key = 0;
  for (size_t probe = 0; probe < t->slots; ++probe) {
    MPI_Get(t->seen, bytes, MPI_BYTE, target, at(t, slot), bytes, MPI_BYTE, t->win);
    MPI_Win_flush(target, t->win);
    if (t->seen->key == 0 || t->seen->key == key) break;
    slot = (slot + 1) % t->slots;
  }
  MPI_Win_unlock(target, t->win);
  return t->seen->key == key;
}

// Writes one version of `key`. Returns the seconds that the put and the unlock took.
static double store(Table* t, uint64_t key, uint64_t version, Entry* e) {
  int target;
  size_t slot;
  place(t, key, &target, &slot);
  e->key = key;
  e->version = version;
  for (size_t w = 0; w < t->value_words; ++w) e->value[w] = value_word(key, version, w);
  e->checksum = checksum_of(t, e);
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, t->win);
  size_t probe = 0;
  for (; probe < t->slots; ++probe) {
    uint64_t there;
    MPI_Get(&there, 8, MPI_BYTE, target, at(t, slot), 8, MPI_BYTE, t->win);
    MPI_Win_flush(target, t->win);
    if (there == 0 || there == key) break;
    slot = (slot + 1) % t->slots;
  }
  if (probe == t->slots) {
    fprintf(stderr, "distributed_hash_table: rank %d has no free slot left\n", target);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  double start = MPI_Wtime();
  int bytes = (int)t->entry_bytes;
  MPI_Put(e, bytes, MPI_BYTE, target, at(t, slot), bytes, MPI_BYTE, t->win);
  MPI_Win_unlock(target, t->win);
  return MPI_Wtime() - start;
}

// Writer `self` of `writers`: all its keys, once for each version. Returns the number of writes.
static size_t write_all(Table* t, const Options* o, double** puts) {
  size_t mine = (size_t)((o->entries - t->rank + o->writers - 1) / o->writers), n = 0;
  Entry* e = malloc(t->entry_bytes);
  *puts = malloc((mine * (size_t)(o->updates + 1) + 1) * sizeof(double));
  for (long long version = 1; version <= o->updates + 1; ++version)
    for (long long i = t->rank; i < o->entries; i += o->writers)
      (*puts)[n++] = store(t, key_of(t, (uint64_t)i), (uint64_t)version, e);
  free(e);
  return n;
}

// Judges the entry in t->seen. `last` is the highest version of this key that was seen so far.
static void judge(const Table* t, uint64_t key, uint32_t* last, Tally* tally) {
  const Entry* e = t->seen;
  if (e->checksum != checksum_of(t, e)) {
    ++tally->torn;
    return;
  }
  for (size_t w = 0; w < t->value_words; ++w)
    if (e->value[w] != value_word(key, e->version, w)) {
      ++tally->wrong;
      break;
    }
  if (e->version < *last) ++tally->backwards;
  *last = (uint32_t)e->version;
}

static void read_at_random(Table* t, const Options* o, uint32_t* last, Tally* tally) {
  uint64_t state = mix((uint64_t)o->seed ^ ((uint64_t)t->rank << 32));
  for (long long r = 0; r < o->reads; ++r) {
    state = mix(state);
    uint64_t index = (state >> 8) % (uint64_t)o->entries;
    ++tally->reads;
    if ((state & 7) == 0) {  // one in eight asks for a key that is never written
      tally->ghosts += (uint64_t)lookup(t, key_of(t, (uint64_t)o->entries + index));
    } else if (lookup(t, key_of(t, index))) {
      ++tally->found;
      judge(t, key_of(t, index), &last[index], tally);
    } else if (last[index] != 0) {
      ++tally->lost;
    } else {
      ++tally->early;  // not inserted yet
    }
  }
}

// After all writes: this rank's share of the keys must be there with their last version, and the
// occupied slots of all ranks must be as many as there are keys.
static void verify(Table* t, const Options* o, uint32_t* last, Tally* tally) {
  for (long long i = t->rank; i < o->entries; i += t->ranks) {
    uint64_t key = key_of(t, (uint64_t)i);
    if (!lookup(t, key)) {
      ++tally->lost;
      continue;
    }
    judge(t, key, &last[i], tally);
    if (t->seen->version != (uint64_t)o->updates + 1) ++tally->lost;
  }
  long long occupied = 0;
  MPI_Win_lock(MPI_LOCK_SHARED, t->rank, 0, t->win);
  for (size_t slot = 0; slot < t->slots; ++slot) {
    uint64_t key;
    memcpy(&key, t->base + slot * t->entry_bytes, sizeof key);
    occupied += key != 0;
  }
  MPI_Win_unlock(t->rank, t->win);
  MPI_Allreduce(MPI_IN_PLACE, &occupied, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (occupied != o->entries) ++tally->lost;
}

static int compare(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static int run(Table* t, const Options* o) {
  Tally tally = {0};
  uint32_t* last = calloc((size_t)o->entries, sizeof *last);
  double* puts = NULL;
  size_t writes = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  double start = MPI_Wtime();
  if (t->rank < o->writers) writes = write_all(t, o, &puts);
  if (t->rank >= o->writers || o->writers == t->ranks) read_at_random(t, o, last, &tally);
  MPI_Barrier(MPI_COMM_WORLD);
  double seconds = MPI_Wtime() - start;
  verify(t, o, last, &tally);

  uint64_t* sums = (uint64_t*)&tally;
  MPI_Allreduce(MPI_IN_PLACE, sums, sizeof tally / 8, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  int good = tally.torn + tally.wrong + tally.backwards + tally.lost + tally.ghosts == 0;
  if (t->rank == 0) {
    qsort(puts, writes, sizeof *puts, compare);
    printf(
        "RESULT %s ranks=%d entries=%lld writers=%lld value_bytes=%lld reads=%llu found=%llu "
        "early=%llu torn=%llu wrong=%llu backwards=%llu lost=%llu ghosts=%llu put_unlock_us=%.3f "
        "reads_per_second=%.0f seconds=%.3f\n",
        good ? "ok" : "WRONG", t->ranks, o->entries, o->writers, o->value_bytes,
        (unsigned long long)tally.reads, (unsigned long long)tally.found,
        (unsigned long long)tally.early, (unsigned long long)tally.torn,
        (unsigned long long)tally.wrong, (unsigned long long)tally.backwards,
        (unsigned long long)tally.lost, (unsigned long long)tally.ghosts,
        writes > 0 ? 1e6 * puts[writes / 2] : 0.0, (double)tally.reads / seconds, seconds);
  }
  free(puts);
  free(last);
  return good;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  Table table;
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  Options options = parse(argc, argv, rank, ranks);
  create(&table, &options);
  int good = run(&table, &options);
  MPI_Win_free(&table.win);
  free(table.seen);
  MPI_Finalize();
  return good ? 0 : 1;
}
