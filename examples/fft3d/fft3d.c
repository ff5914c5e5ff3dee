// SPDX-License-Identifier: Apache-2.0
// A three-dimensional FFT after the NAS parallel benchmark FT: solves a diffusion equation by one
// forward transform, a multiplication in each iteration, and an inverse transform of the product.
// The checksum of each iteration is compared with the published value (relative error 1e-12).
//
// The grid is cut into slabs along one dimension: by z in space, by y in frequency. Two of the
// three one-dimensional transforms are local; between them and the third all ranks exchange data,
// one z plane after the other, so that planes travel while the next is transformed:
//
//   put-fence, put-pscw   MPI_Put from private memory into the window of the rank that needs it
//   get-fence, get-pscw   the slab is laid into the own window, the others MPI_Get their parts
//   alltoall              two-sided: pack, MPI_Alltoallv, unpack
//
// Layouts (x is contiguous): space [z of this rank][y][x]; window and exchange to frequency
// [z][y of this rank][x]; frequency [y of this rank][z][x].
//
// Memory model: separate. Window memory serves the exchange alone. With put it is only read
// locally, after the epoch; with get it is only stored to locally, before the epoch.
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  double re, im;
} Complex;

enum { kMostIterations = 6 };

typedef struct {
  char name;
  int nx, ny, nz, iterations;
  Complex checksums[kMostIterations];
} Class;

static const Class kClasses[] = {
    {'S',
     64,
     64,
     64,
     6,
     {{5.546087004964e+02, 4.845363331978e+02},
      {5.546385409189e+02, 4.865304269511e+02},
      {5.546148406171e+02, 4.883910722336e+02},
      {5.545423607415e+02, 4.901273169046e+02},
      {5.544255039624e+02, 4.917475857993e+02},
      {5.542683411902e+02, 4.932597244941e+02}}},
    {'W',
     128,
     128,
     32,
     6,
     {{5.673612178944e+02, 5.293246849175e+02},
      {5.631436885271e+02, 5.282149986629e+02},
      {5.594024089970e+02, 5.270996558037e+02},
      {5.560698047020e+02, 5.260027904925e+02},
      {5.530898991250e+02, 5.249400845633e+02},
      {5.504159734538e+02, 5.239212247086e+02}}},
    {'A',
     256,
     256,
     128,
     6,
     {{5.046735008193e+02, 5.114047905510e+02},
      {5.059412319734e+02, 5.098809666433e+02},
      {5.069376896287e+02, 5.098144042213e+02},
      {5.077892868474e+02, 5.101336130759e+02},
      {5.085233095391e+02, 5.104914655194e+02},
      {5.091487099959e+02, 5.107917842803e+02}}},
};

typedef enum { kPutFence, kPutPscw, kGetFence, kGetPscw, kAlltoall, kModes } Mode;
static const char* const kModeNames[] = {"put-fence", "put-pscw", "get-fence", "get-pscw",
                                         "alltoall"};

typedef enum { kToFrequency, kToSpace } Direction;

typedef struct {
  const Class* class;
  int first_mode, last_mode;
  long long repeat;
} Options;

typedef struct {
  int rank, ranks;
  Mode mode;
  size_t nx, ny, nz;
  size_t y0, ly, z0, lz;  // this rank's part in frequency and in space
  Complex* stage;         // where the exchange takes its data from
  Complex* arrived;       // received data, rearranged
  Complex* packed;        // send buffer of alltoall
  Complex* window;
  MPI_Win win;
  MPI_Group everyone;
  Complex *frequency, *plane, *scratch;
  Complex* roots;   // e^(-2 pi i k / n), for the longest dimension n
  double* damping;  // factor of each frequency, for one iteration
  size_t longest;
  double exchange_seconds;
} Solver;

static _Noreturn void reject(const char* format, ...) {
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) {
    va_list list;
    va_start(list, format);
    fprintf(stderr, "fft3d: ");
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

static const Class* class_named(const char* text) {
  for (size_t c = 0; c < sizeof kClasses / sizeof *kClasses; ++c)
    if (text[0] == kClasses[c].name && text[1] == '\0') return &kClasses[c];
  reject("--class is one of S, W, A; not '%s'", text);
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
  reject("--mode is one of put-fence, put-pscw, get-fence, get-pscw, alltoall, all; not '%s'",
         text);
}

static void help(void) {
  printf(
      "usage: fft3d [options]\n"
      "  --class C    S (64x64x64), W (128x128x32, default) or A (256x256x128)\n"
      "  --mode MODE  put-fence, put-pscw (default), get-fence, get-pscw, alltoall, or all of "
      "them\n"
      "  --repeat N   times that the whole computation is done (default 12)\n"
      "  --help       this text\n");
}

static Options parse(int argc, char** argv, int rank) {
  Options o = {.class = &kClasses[1], .first_mode = kPutPscw, .last_mode = kPutPscw, .repeat = 12};
  static const struct option known[] = {{"class", required_argument, NULL, 'c'},
                                        {"mode", required_argument, NULL, 'm'},
                                        {"repeat", required_argument, NULL, 'r'},
                                        {"help", no_argument, NULL, 'h'},
                                        {NULL, 0, NULL, 0}};
  opterr = 0;
  int c;
  while ((c = getopt_long(argc, argv, ":", known, NULL)) != -1) {
    switch (c) {
      case 'c':
        o.class = class_named(optarg);
        break;
      case 'm':
        parse_mode(&o, optarg);
        break;
      case 'r':
        o.repeat = number("repeat", optarg, 1, 1 << 20);
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

static size_t first_of(size_t n, int rank, int ranks) { return n * (size_t)rank / (size_t)ranks; }

static size_t count_of(size_t n, int rank, int ranks) {
  return first_of(n, rank + 1, ranks) - first_of(n, rank, ranks);
}

static int owner_of(size_t n, size_t index, int ranks) {
  int rank = (int)(index * (size_t)ranks / n);
  while (first_of(n, rank + 1, ranks) <= index) ++rank;
  return rank;
}

// The generator of the benchmark: x(k+1) = 5^13 x(k) mod 2^46, numbers x / 2^46.
static uint64_t random_step(uint64_t a, uint64_t x) { return (a * x) & ((1ULL << 46) - 1); }

static uint64_t random_jump(uint64_t x, uint64_t steps) {
  uint64_t a = 1220703125;
  for (; steps > 0; steps >>= 1) {
    if (steps & 1) x = random_step(a, x);
    a = random_step(a, a);
  }
  return x;
}

// `batch` interleaved transforms of length n (a power of two), unscaled: Stockham's algorithm,
// which needs no bit reversal. The result is in `data`.
static void transform(const Solver* s, Complex* data, size_t n, size_t batch, int inverse) {
  Complex *from = data, *to = s->scratch;
  for (size_t length = n, stride = batch; length > 1; length /= 2, stride *= 2) {
    size_t half = length / 2;
    for (size_t p = 0; p < half; ++p) {
      Complex w = s->roots[p * (s->longest / length)];
      if (inverse) w.im = -w.im;
      const Complex *a = from + stride * p, *b = from + stride * (p + half);
      Complex *sum = to + stride * 2 * p, *difference = sum + stride;
      for (size_t q = 0; q < stride; ++q) {
        double re = a[q].re - b[q].re, im = a[q].im - b[q].im;
        sum[q] = (Complex){a[q].re + b[q].re, a[q].im + b[q].im};
        difference[q] = (Complex){re * w.re - im * w.im, re * w.im + im * w.re};
      }
    }
    Complex* swap = from;
    from = to;
    to = swap;
  }
  if (from != data) memcpy(data, from, n * batch * sizeof *data);
}

static double since(double start) { return MPI_Wtime() - start; }

// Opens the exchange. Afterwards the caller fills s->stage, in the layout of the sender.
static void exchange_open(Solver* s) {
  double start = MPI_Wtime();
  if (s->mode == kPutFence) MPI_Win_fence(MPI_MODE_NOPRECEDE, s->win);
  if (s->mode == kPutPscw) {
    MPI_Win_post(s->everyone, MPI_MODE_NOSTORE, s->win);
    MPI_Win_start(s->everyone, 0, s->win);
  }
  s->exchange_seconds += since(start);
}

static void put(const Solver* s, size_t from, size_t count, int target, size_t to) {
  if (count > 0)
    MPI_Put(s->stage + from, (int)(2 * count), MPI_DOUBLE, target, (MPI_Aint)(to * sizeof(Complex)),
            (int)(2 * count), MPI_DOUBLE, s->win);
}

static void get(const Solver* s, size_t to, size_t count, int target, size_t from) {
  if (count > 0)
    MPI_Get(s->arrived + to, (int)(2 * count), MPI_DOUBLE, target,
            (MPI_Aint)(from * sizeof(Complex)), (int)(2 * count), MPI_DOUBLE, s->win);
}

// Plane z of s->stage is complete: it may travel.
static void exchange_plane(Solver* s, Direction direction, size_t z) {
  if (s->mode != kPutFence && s->mode != kPutPscw) return;
  double start = MPI_Wtime();
  if (direction == kToSpace) {
    int d = owner_of(s->nz, z, s->ranks);
    size_t local = z - first_of(s->nz, d, s->ranks);
    put(s, z * s->ly * s->nx, s->ly * s->nx, d, (local * s->ny + s->y0) * s->nx);
  } else {
    for (int d = 0; d < s->ranks; ++d) {
      size_t y = first_of(s->ny, d, s->ranks), ly = count_of(s->ny, d, s->ranks);
      put(s, ((z - s->z0) * s->ny + y) * s->nx, ly * s->nx, d, z * ly * s->nx);
    }
  }
  s->exchange_seconds += since(start);
}

static void get_planes(Solver* s, Direction direction) {
  if (direction == kToFrequency) {
    for (size_t z = 0; z < s->nz; ++z) {
      int d = owner_of(s->nz, z, s->ranks);
      size_t local = z - first_of(s->nz, d, s->ranks);
      get(s, z * s->ly * s->nx, s->ly * s->nx, d, (local * s->ny + s->y0) * s->nx);
    }
  } else {
    for (size_t z = s->z0; z < s->z0 + s->lz; ++z)
      for (int d = 0; d < s->ranks; ++d) {
        size_t y = first_of(s->ny, d, s->ranks), ly = count_of(s->ny, d, s->ranks);
        get(s, ((z - s->z0) * s->ny + y) * s->nx, ly * s->nx, d, z * ly * s->nx);
      }
  }
}

// Between the layout [z of a slab][y][x] and one block [z][y][x] for each rank, in rank order.
static void pack(const Solver* s, Complex* slab, Complex* blocks, int unpack) {
  for (int d = 0; d < s->ranks; ++d) {
    size_t y = first_of(s->ny, d, s->ranks), part = count_of(s->ny, d, s->ranks) * s->nx;
    for (size_t z = 0; z < s->lz; ++z, blocks += part) {
      Complex* row = slab + (z * s->ny + y) * s->nx;
      memcpy(unpack ? row : blocks, unpack ? blocks : row, part * sizeof *slab);
    }
  }
}

static void exchange_two_sided(Solver* s, Direction direction) {
  size_t ranks = (size_t)s->ranks;
  int* counts = malloc(4 * ranks * sizeof(int));
  int *space = counts, *space_at = counts + ranks;
  int *frequency = counts + 2 * ranks, *frequency_at = counts + 3 * ranks;
  for (int d = 0, at = 0, fat = 0; d < s->ranks; at += space[d], fat += frequency[d], ++d) {
    space[d] = (int)(2 * s->lz * count_of(s->ny, d, s->ranks) * s->nx);
    frequency[d] = (int)(2 * count_of(s->nz, d, s->ranks) * s->ly * s->nx);
    space_at[d] = at;
    frequency_at[d] = fat;
  }
  if (direction == kToFrequency) {
    pack(s, s->stage, s->packed, 0);
    MPI_Alltoallv(s->packed, space, space_at, MPI_DOUBLE, s->arrived, frequency, frequency_at,
                  MPI_DOUBLE, MPI_COMM_WORLD);
  } else {
    MPI_Alltoallv(s->stage, frequency, frequency_at, MPI_DOUBLE, s->packed, space, space_at,
                  MPI_DOUBLE, MPI_COMM_WORLD);
    pack(s, s->arrived, s->packed, 1);
  }
  free(counts);
}

// On return s->arrived holds this rank's data in the layout of the receiver.
static void exchange_close(Solver* s, Direction direction) {
  double start = MPI_Wtime();
  switch (s->mode) {
    case kPutFence:
      MPI_Win_fence(MPI_MODE_NOSUCCEED | MPI_MODE_NOSTORE, s->win);
      break;
    case kGetFence:
      MPI_Win_fence(MPI_MODE_NOPRECEDE | MPI_MODE_NOPUT, s->win);
      get_planes(s, direction);
      MPI_Win_fence(MPI_MODE_NOSUCCEED | MPI_MODE_NOSTORE, s->win);
      break;
    case kGetPscw:
      MPI_Win_post(s->everyone, MPI_MODE_NOPUT, s->win);
      MPI_Win_start(s->everyone, 0, s->win);
      get_planes(s, direction);  // and then as with put
      // fall through
    case kPutPscw:
      MPI_Win_complete(s->win);
      MPI_Win_wait(s->win);
      break;
    default:
      exchange_two_sided(s, direction);
  }
  s->exchange_seconds += since(start);
}

static void to_frequency(Solver* s) {
  exchange_open(s);
  uint64_t x = random_jump(314159265, 2 * s->nx * s->ny * s->z0);
  for (size_t z = 0; z < s->lz; ++z) {
    Complex* plane = s->stage + z * s->ny * s->nx;
    double* numbers = (double*)plane;
    for (size_t n = 0; n < 2 * s->nx * s->ny; ++n) {
      x = random_step(1220703125, x);
      numbers[n] = ldexp((double)x, -46);
    }
    for (size_t y = 0; y < s->ny; ++y) transform(s, plane + y * s->nx, s->nx, 1, 0);
    transform(s, plane, s->ny, s->nx, 0);
    exchange_plane(s, kToFrequency, s->z0 + z);
  }
  exchange_close(s, kToFrequency);
  for (size_t y = 0; y < s->ly; ++y) {
    Complex* plane = s->frequency + y * s->nz * s->nx;
    for (size_t z = 0; z < s->nz; ++z)
      memcpy(plane + z * s->nx, s->arrived + (z * s->ly + y) * s->nx, s->nx * sizeof *plane);
    transform(s, plane, s->nz, s->nx, 0);
  }
}

// One iteration: damps the frequencies and leaves their inverse transform, without its last two
// dimensions, in s->arrived.
static void to_space(Solver* s) {
  exchange_open(s);
  for (size_t y = 0; y < s->ly; ++y) {
    Complex* plane = s->frequency + y * s->nz * s->nx;
    const double* damping = s->damping + y * s->nz * s->nx;
    for (size_t n = 0; n < s->nz * s->nx; ++n) {
      plane[n].re *= damping[n];
      plane[n].im *= damping[n];
      s->plane[n] = plane[n];
    }
    transform(s, s->plane, s->nz, s->nx, 1);
    for (size_t z = 0; z < s->nz; ++z)
      memcpy(s->stage + (z * s->ly + y) * s->nx, s->plane + z * s->nx, s->nx * sizeof *plane);
  }
  for (size_t z = 0; z < s->nz; ++z) exchange_plane(s, kToSpace, z);
  exchange_close(s, kToSpace);
}

// The checksum: 1024 elements of the inverse transform, whose last two dimensions are done here.
static Complex checksum(Solver* s) {
  Complex sum = {0, 0};
  for (size_t z = 0; z < s->lz; ++z) {
    memcpy(s->plane, s->arrived + z * s->ny * s->nx, s->ny * s->nx * sizeof *s->plane);
    transform(s, s->plane, s->ny, s->nx, 1);
    for (size_t y = 0; y < s->ny; ++y) transform(s, s->plane + y * s->nx, s->nx, 1, 1);
    for (size_t j = 1; j <= 1024; ++j) {
      if (5 * j % s->nz != s->z0 + z) continue;
      const Complex* element = &s->plane[3 * j % s->ny * s->nx + j % s->nx];
      sum.re += element->re;
      sum.im += element->im;
    }
  }
  MPI_Allreduce(MPI_IN_PLACE, &sum, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  double points = (double)(s->nx * s->ny * s->nz);
  return (Complex){sum.re / points, sum.im / points};
}

static size_t most(size_t a, size_t b) { return a > b ? a : b; }

static double square_of_frequency(size_t index, size_t n) {
  double k = (double)((index + n / 2) % n) - (double)(n / 2);
  return k * k;
}

static void prepare_tables(Solver* s) {
  const double pi = acos(-1.0);
  for (size_t k = 0; k < s->longest; ++k) {
    double angle = 2 * pi * (double)k / (double)s->longest;
    s->roots[k] = (Complex){cos(angle), -sin(angle)};
  }
  double* damping = s->damping;
  for (size_t y = s->y0; y < s->y0 + s->ly; ++y)
    for (size_t z = 0; z < s->nz; ++z)
      for (size_t x = 0; x < s->nx; ++x)
        *damping++ = exp(-4e-6 * pi * pi *
                         (square_of_frequency(x, s->nx) + square_of_frequency(y, s->ny) +
                          square_of_frequency(z, s->nz)));
}

static void* memory(size_t bytes) {
  void* p = malloc(bytes > 0 ? bytes : 1);
  if (p == NULL) {
    fprintf(stderr, "fft3d: no memory for %zu bytes\n", bytes);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return p;
}

static void setup(Solver* s, const Class* class, Mode mode) {
  memset(s, 0, sizeof *s);
  MPI_Comm_rank(MPI_COMM_WORLD, &s->rank);
  MPI_Comm_size(MPI_COMM_WORLD, &s->ranks);
  s->mode = mode;
  s->nx = (size_t) class->nx;
  s->ny = (size_t) class->ny;
  s->nz = (size_t) class->nz;
  s->y0 = first_of(s->ny, s->rank, s->ranks);
  s->ly = count_of(s->ny, s->rank, s->ranks);
  s->z0 = first_of(s->nz, s->rank, s->ranks);
  s->lz = count_of(s->nz, s->rank, s->ranks);
  size_t slab = most(s->lz * s->ny, s->nz * s->ly) * s->nx * sizeof(Complex);
  size_t plane = most(s->nz, s->ny) * s->nx * sizeof(Complex);
  s->longest = most(s->nx, most(s->ny, s->nz));
  s->roots = memory(s->longest * sizeof(Complex));
  s->damping = memory(s->ly * s->nz * s->nx * sizeof(double));
  s->frequency = memory(s->ly * s->nz * s->nx * sizeof(Complex));
  s->plane = memory(plane);
  s->scratch = memory(plane);
  prepare_tables(s);
  MPI_Comm_group(MPI_COMM_WORLD, &s->everyone);
  if (mode == kAlltoall) {
    s->stage = memory(slab);
    s->arrived = memory(slab);
    s->packed = memory(slab);
    return;
  }
  MPI_Win_allocate((MPI_Aint)slab, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &s->window, &s->win);
  int puts = mode == kPutFence || mode == kPutPscw;
  s->stage = puts ? memory(slab) : s->window;
  s->arrived = puts ? s->window : memory(slab);
}

static void teardown(Solver* s) {
  if (s->stage != s->window) free(s->stage);
  if (s->arrived != s->window) free(s->arrived);
  if (s->mode != kAlltoall) MPI_Win_free(&s->win);
  MPI_Group_free(&s->everyone);
  free(s->packed);
  free(s->roots);
  free(s->damping);
  free(s->frequency);
  free(s->plane);
  free(s->scratch);
}

static double relative_error(double value, double expected) {
  return fabs((value - expected) / expected);
}

// The whole computation once. Returns the seconds; *good becomes 0 when a checksum is off.
static double solve(Solver* s, const Class* class, int print, int* good) {
  Complex sums[kMostIterations];
  MPI_Barrier(MPI_COMM_WORLD);
  double start = MPI_Wtime();
  to_frequency(s);
  for (int i = 0; i < class->iterations; ++i) {
    to_space(s);
    sums[i] = checksum(s);
  }
  double seconds = since(start);
  for (int i = 0; i < class->iterations; ++i) {
    const Complex* expected = &class->checksums[i];
    int right = relative_error(sums[i].re, expected->re) <= 1e-12 &&
                relative_error(sums[i].im, expected->im) <= 1e-12;
    *good = *good && right;
    if (print && s->rank == 0)
      printf("T=%d checksum=%.12e %.12e %s\n", i + 1, sums[i].re, sums[i].im,
             right ? "as published" : "WRONG");
  }
  return seconds;
}

int main(int argc, char** argv) {
  int rank, good = 1;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  Options o = parse(argc, argv, rank);
  double points = (double)o.class->nx * o.class->ny * o.class->nz;
  double operations = points * (14.8157 + 7.19641 * log(points) +
                                (5.23518 + 7.21113 * log(points)) * o.class->iterations);
  double seconds = 0, mflops = 0;
  Solver s;
  for (int m = o.first_mode; m <= o.last_mode; ++m) {
    double sum = 0;
    setup(&s, o.class, (Mode)m);
    for (long long r = 0; r < o.repeat; ++r)
      sum += solve(&s, o.class, m == o.first_mode && r == 0, &good);
    mflops = 1e-6 * operations * (double)o.repeat / sum;
    seconds += sum;
    if (rank == 0)
      printf("mode=%-9s mflops=%.1f exchange=%.3f total=%.3f (seconds on rank 0)\n", kModeNames[m],
             mflops, s.exchange_seconds, sum);
    teardown(&s);
  }
  MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (rank == 0)
    printf("RESULT %s class=%c grid=%dx%dx%d ranks=%d repeat=%lld mflops=%.1f seconds=%.3f\n",
           good ? "ok" : "WRONG", o.class->name, o.class->nx, o.class->ny, o.class->nz, s.ranks,
           o.repeat, mflops, seconds);
  MPI_Finalize();
  return good ? 0 : 1;
}
