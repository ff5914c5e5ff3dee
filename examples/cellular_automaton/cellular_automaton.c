// SPDX-License-Identifier: Apache-2.0
// A two-dimensional cellular automaton on a torus, after "Software-Managed Cache Coherence for MPI
// One-Sided Communication" (section 4.4.5): cells of two states, nine-point stencil, rows divided
// among the ranks. In each step a rank computes its first and last row, hands them to its two
// neighbours as ghost rows for the next step, computes the inner rows meanwhile, and completes.
//
//   two-sided   MPI_Irecv, MPI_Isend, MPI_Waitall
//   fence       MPI_Put, MPI_Win_fence
//   pscw        MPI_Win_post, MPI_Win_start, MPI_Put, MPI_Win_complete, MPI_Win_wait
//   lock        MPI_Win_lock, MPI_Put, MPI_Win_unlock, and empty messages that say "it is there"
//
// The state after the last step is compared with a computation by rank 0 alone (order-independent
// hash over all living cells, and their number).
//
// Memory model: separate. The window holds ghost rows only, two for each parity of the step; it is
// never stored to locally, and the rows that are read in a step are not those that are put to.
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum { kTwoSided, kFence, kPscw, kLock, kModes } Mode;
static const char* const kModeNames[] = {"two-sided", "fence", "pscw", "lock"};

typedef struct {
  long long rows, columns, steps, seed;
  int first_mode, last_mode;
} Options;

typedef struct {
  uint64_t hash, alive;
} Digest;

typedef struct {
  double compute, communicate, synchronize, total;
} Times;

typedef struct {
  Mode mode;
  int rank, up, down;  // neighbours: `up` owns the rows before ours
  size_t columns, stride, rows, first_row;
  uint8_t* grid[2];  // rows x stride each; column 0 and columns+1 repeat the far ends
  uint8_t* ghosts;   // [parity][0: above, 1: below][stride]; in the window unless two-sided
  MPI_Win win;
  MPI_Group neighbours;
  MPI_Request requests[4];
  Times times;
} Automaton;

static _Noreturn void reject(const char* format, ...) {
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) {
    va_list list;
    va_start(list, format);
    fprintf(stderr, "cellular_automaton: ");
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

static void parse_mode(Options* o, const char* text) {
  o->first_mode = 0;
  o->last_mode = kModes - 1;
  if (strcmp(text, "all") == 0) return;
  for (int m = 0; m < kModes; ++m)
    if (strcmp(text, kModeNames[m]) == 0) {
      o->first_mode = o->last_mode = m;
      return;
    }
  reject("--mode is one of two-sided, fence, pscw, lock, all; not '%s'", text);
}

static void help(void) {
  printf(
      "usage: cellular_automaton [options]\n"
      "  --mode MODE    two-sided, fence, pscw (default), lock, or all of them in turn\n"
      "  --rows N       rows of the grid, at least one for each rank (default 1200)\n"
      "  --columns N    cells in a row (default 2046)\n"
      "  --steps N      steps (default 200)\n"
      "  --seed N       seed of the first state (default 1)\n"
      "  --help         this text\n");
}

static Options parse(int argc, char** argv, int rank, int ranks) {
  Options o = {.rows = 1200,
               .columns = 2046,
               .steps = 200,
               .seed = 1,
               .first_mode = kPscw,
               .last_mode = kPscw};
  static const struct option known[] = {{"mode", required_argument, NULL, 'm'},
                                        {"rows", required_argument, NULL, 'r'},
                                        {"columns", required_argument, NULL, 'c'},
                                        {"steps", required_argument, NULL, 't'},
                                        {"seed", required_argument, NULL, 's'},
                                        {"help", no_argument, NULL, 'h'},
                                        {NULL, 0, NULL, 0}};
  opterr = 0;
  int c;
  while ((c = getopt_long(argc, argv, ":", known, NULL)) != -1) {
    switch (c) {
      case 'm':
        parse_mode(&o, optarg);
        break;
      case 'r':
        o.rows = number("rows", optarg, 1, 1 << 24);
        break;
      case 'c':
        o.columns = number("columns", optarg, 1, 1 << 24);
        break;
      case 't':
        o.steps = number("steps", optarg, 0, 1 << 30);
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
  if (o.rows < ranks) reject("%lld rows are too few for %d ranks", o.rows, ranks);
  return o;
}

static uint64_t mix(uint64_t z) {
  z += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

static void wrap(uint8_t* row, size_t columns) {
  row[0] = row[columns];
  row[columns + 1] = row[1];
}

static void first_state(uint8_t* grid, size_t first_row, size_t rows, const Options* o) {
  size_t columns = (size_t)o->columns;
  for (size_t r = 0; r < rows; ++r) {
    uint8_t* row = grid + r * (columns + 2);
    for (size_t c = 1; c <= columns; ++c)
      row[c] = mix((uint64_t)o->seed ^ mix((first_row + r) * columns + c)) >> 63;
    wrap(row, columns);
  }
}

// The next state of one row from itself and the rows above and below. The rule is Vichniac's
// twisted majority: of nine cells, 4 or more than 5 living ones make a living one.
static void next_row(uint8_t* out, const uint8_t* above, const uint8_t* row, const uint8_t* below,
                     size_t columns) {
  for (size_t c = 1; c <= columns; ++c) {
    unsigned sum = 0;
    for (size_t k = c - 1; k <= c + 1; ++k) sum += (unsigned)above[k] + row[k] + below[k];
    out[c] = (sum == 4) | (sum > 5);
  }
  wrap(out, columns);
}

static Digest digest(const uint8_t* grid, size_t first_row, size_t rows, size_t columns) {
  Digest d = {0, 0};
  for (size_t r = 0; r < rows; ++r)
    for (size_t c = 1; c <= columns; ++c)
      if (grid[r * (columns + 2) + c] != 0) {
        d.hash += mix((first_row + r) * columns + c);
        ++d.alive;
      }
  return d;
}

static Digest serial(const Options* o) {
  size_t rows = (size_t)o->rows, columns = (size_t)o->columns, stride = columns + 2;
  uint8_t* grid = malloc(rows * stride);
  uint8_t* next = malloc(rows * stride);
  first_state(grid, 0, rows, o);
  for (long long t = 0; t < o->steps; ++t) {
    for (size_t r = 0; r < rows; ++r)
      next_row(next + r * stride, grid + (r + rows - 1) % rows * stride, grid + r * stride,
               grid + (r + 1) % rows * stride, columns);
    uint8_t* swap = grid;
    grid = next;
    next = swap;
  }
  Digest d = digest(grid, 0, rows, columns);
  free(grid);
  free(next);
  return d;
}

static uint8_t* ghost(const Automaton* a, int parity, int below) {
  return a->ghosts + (size_t)(2 * parity + below) * a->stride;
}

static void put_ghost(const Automaton* a, const uint8_t* row, int target, int parity, int below) {
  int bytes = (int)a->stride;
  MPI_Put(row, bytes, MPI_UINT8_T, target, (MPI_Aint)(2 * parity + below) * bytes, bytes,
          MPI_UINT8_T, a->win);
}

static void open_exchange(Automaton* a, int parity) {
  double start = MPI_Wtime();
  int bytes = (int)a->stride;
  if (a->mode == kTwoSided) {
    MPI_Irecv(ghost(a, parity, 0), bytes, MPI_UINT8_T, a->up, 0, MPI_COMM_WORLD, &a->requests[0]);
    MPI_Irecv(ghost(a, parity, 1), bytes, MPI_UINT8_T, a->down, 1, MPI_COMM_WORLD, &a->requests[1]);
    a->times.communicate += MPI_Wtime() - start;
  } else if (a->mode == kPscw) {
    MPI_Win_post(a->neighbours, MPI_MODE_NOSTORE, a->win);
    a->times.synchronize += MPI_Wtime() - start;
  }
}

// One row to one neighbour: it becomes its ghost row `below` (1) or above (0) its own rows.
static void send_row(Automaton* a, const uint8_t* row, int target, int parity, int below) {
  double start = MPI_Wtime(), between = start;
  if (a->mode == kTwoSided) {
    MPI_Isend(row, (int)a->stride, MPI_UINT8_T, target, below, MPI_COMM_WORLD,
              &a->requests[2 + below]);
  } else if (a->mode == kLock) {
    MPI_Win_lock(MPI_LOCK_SHARED, target, 0, a->win);
    between = MPI_Wtime();
    put_ghost(a, row, target, parity, below);
    double put = MPI_Wtime();
    MPI_Win_unlock(target, a->win);
    a->times.communicate += put - between;
    a->times.synchronize += between - start + (MPI_Wtime() - put);
    return;
  } else {
    put_ghost(a, row, target, parity, below);
  }
  a->times.communicate += MPI_Wtime() - start;
}

static void send_rows(Automaton* a, const uint8_t* grid, int parity) {
  if (a->mode == kPscw) {
    double start = MPI_Wtime();
    MPI_Win_start(a->neighbours, 0, a->win);
    a->times.synchronize += MPI_Wtime() - start;
  }
  send_row(a, grid, a->up, parity, 1);
  send_row(a, grid + (a->rows - 1) * a->stride, a->down, parity, 0);
}

// On return the ghost rows of `parity` are here, and the neighbours have read those of the other.
static void close_exchange(Automaton* a) {
  double start = MPI_Wtime();
  switch (a->mode) {
    case kTwoSided:
      MPI_Waitall(4, a->requests, MPI_STATUSES_IGNORE);
      break;
    case kFence:
      MPI_Win_fence(MPI_MODE_NOSTORE, a->win);
      break;
    case kPscw:
      MPI_Win_complete(a->win);
      MPI_Win_wait(a->win);
      break;
    default:
      MPI_Sendrecv(NULL, 0, MPI_BYTE, a->up, 2, NULL, 0, MPI_BYTE, a->down, 2, MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE);
      MPI_Sendrecv(NULL, 0, MPI_BYTE, a->down, 3, NULL, 0, MPI_BYTE, a->up, 3, MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE);
  }
  a->times.synchronize += MPI_Wtime() - start;
}

// A lock of the own window makes the puts of others visible to local loads.
static void own_window(Automaton* a, int locked) {
  if (a->mode != kLock) return;
  double start = MPI_Wtime();
  if (locked)
    MPI_Win_lock(MPI_LOCK_SHARED, a->rank, 0, a->win);
  else
    MPI_Win_unlock(a->rank, a->win);
  a->times.synchronize += MPI_Wtime() - start;
}

static void compute(Automaton* a, int from, size_t row) {
  size_t stride = a->stride;
  const uint8_t* grid = a->grid[from];
  const uint8_t* above = row > 0 ? grid + (row - 1) * stride : ghost(a, from, 0);
  const uint8_t* below = row + 1 < a->rows ? grid + (row + 1) * stride : ghost(a, from, 1);
  next_row(a->grid[1 - from] + row * stride, above, grid + row * stride, below, a->columns);
}

static void step(Automaton* a, int from) {
  int to = 1 - from;
  open_exchange(a, to);
  own_window(a, 1);
  double start = MPI_Wtime();
  compute(a, from, 0);
  if (a->rows > 1) compute(a, from, a->rows - 1);
  a->times.compute += MPI_Wtime() - start;
  own_window(a, 0);
  send_rows(a, a->grid[to], to);
  start = MPI_Wtime();
  for (size_t r = 1; r + 1 < a->rows; ++r) compute(a, from, r);
  a->times.compute += MPI_Wtime() - start;
  close_exchange(a);
}

static void setup(Automaton* a, const Options* o, Mode mode) {
  int ranks;
  memset(a, 0, sizeof *a);
  MPI_Comm_rank(MPI_COMM_WORLD, &a->rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  a->mode = mode;
  a->up = (a->rank + ranks - 1) % ranks;
  a->down = (a->rank + 1) % ranks;
  a->columns = (size_t)o->columns;
  a->stride = a->columns + 2;
  a->first_row = (size_t)(a->rank * o->rows / ranks);
  a->rows = (size_t)((a->rank + 1) * o->rows / ranks) - a->first_row;
  for (int g = 0; g < 2; ++g) a->grid[g] = malloc(a->rows * a->stride);
  first_state(a->grid[0], a->first_row, a->rows, o);
  a->win = MPI_WIN_NULL;
  a->neighbours = MPI_GROUP_NULL;
  if (mode == kTwoSided) {
    a->ghosts = malloc(4 * a->stride);
    return;
  }
  MPI_Win_allocate((MPI_Aint)(4 * a->stride), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &a->ghosts,
                   &a->win);
  MPI_Group world;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  int members[2] = {a->up, a->down};
  MPI_Group_incl(world, a->up == a->down ? 1 : 2, members, &a->neighbours);
  MPI_Group_free(&world);
  if (mode == kFence) MPI_Win_fence(MPI_MODE_NOPRECEDE, a->win);
}

static void teardown(Automaton* a) {
  if (a->mode == kFence) MPI_Win_fence(MPI_MODE_NOSUCCEED, a->win);
  if (a->mode == kTwoSided) {
    free(a->ghosts);
  } else {
    MPI_Group_free(&a->neighbours);
    MPI_Win_free(&a->win);
  }
  free(a->grid[0]);
  free(a->grid[1]);
}

static Digest evolve(const Options* o, Mode mode, Times* times) {
  Automaton a;
  setup(&a, o, mode);
  open_exchange(&a, 0);  // the ghost rows of the first state
  send_rows(&a, a.grid[0], 0);
  close_exchange(&a);
  a.times = (Times){0};
  MPI_Barrier(MPI_COMM_WORLD);
  double start = MPI_Wtime();
  for (long long t = 0; t < o->steps; ++t) step(&a, (int)(t & 1));
  MPI_Barrier(MPI_COMM_WORLD);
  a.times.total = MPI_Wtime() - start;
  *times = a.times;
  Digest d = digest(a.grid[o->steps & 1], a.first_row, a.rows, a.columns);
  MPI_Allreduce(MPI_IN_PLACE, &d, 2, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  teardown(&a);
  return d;
}

int main(int argc, char** argv) {
  int rank, ranks, good = 1;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  Options o = parse(argc, argv, rank, ranks);
  Digest found[kModes];
  double seconds = 0;
  for (int m = o.first_mode; m <= o.last_mode; ++m) {
    Times t;
    found[m] = evolve(&o, (Mode)m, &t);
    seconds += t.total;
    if (rank == 0)
      printf(
          "mode=%-9s alive=%llu hash=%016llx compute=%.3f communicate=%.3f synchronize=%.3f "
          "total=%.3f (seconds on rank 0)\n",
          kModeNames[m], (unsigned long long)found[m].alive, (unsigned long long)found[m].hash,
          t.compute, t.communicate, t.synchronize, t.total);
  }
  if (rank == 0) {
    Digest expected = serial(&o);
    for (int m = o.first_mode; m <= o.last_mode; ++m)
      good = good && found[m].hash == expected.hash && found[m].alive == expected.alive;
    printf(
        "RESULT %s ranks=%d rows=%lld columns=%lld steps=%lld serial_alive=%llu "
        "serial_hash=%016llx seconds=%.3f\n",
        good ? "ok" : "WRONG", ranks, o.rows, o.columns, o.steps,
        (unsigned long long)expected.alive, (unsigned long long)expected.hash, seconds);
  }
  MPI_Bcast(&good, 1, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Finalize();
  return good ? 0 : 1;
}
