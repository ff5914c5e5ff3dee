// SPDX-License-Identifier: Apache-2.0
// LU factorization of one thread in memory that its cache does not hold (003 section 6.2.4, figure
// 6.20). To be included once.
//
// By columns of blocks, left-looking, with partial pivoting: a column is brought up to date by all
// columns before it, which are read once, and is then factored, so that only it is written. Each
// column keeps the order of rows that it was factored in, as in LINPACK.
#pragma once
#include "bench/dsm/kernel.h"

enum { kWidth = 256, kBase = 16, kLanes = 4, kStrip = 2 * kLanes, kHeight = 4 };
typedef double lanes_t __attribute__((vector_size(kLanes * sizeof(double)), aligned(8)));

// `rows` rows of `c` less `a` times a strip of b; rows are kWidth apart, those of the strip kStrip.
static inline __attribute__((always_inline)) void strip_update(size_t rows, size_t depth,
                                                               const double* a, const double* strip,
                                                               double* c) {
  lanes_t sums[kHeight][2];
  for (size_t i = 0; i < rows; ++i) {
    sums[i][0] = *(const lanes_t*)(c + i * kWidth);
    sums[i][1] = *(const lanes_t*)(c + i * kWidth + kLanes);
  }
  for (size_t k = 0; k < depth; ++k) {
    const lanes_t left = *(const lanes_t*)(strip + k * kStrip);
    const lanes_t right = *(const lanes_t*)(strip + k * kStrip + kLanes);
    for (size_t i = 0; i < rows; ++i) {
      sums[i][0] -= a[i * kWidth + k] * left;
      sums[i][1] -= a[i * kWidth + k] * right;
    }
  }
  for (size_t i = 0; i < rows; ++i) {
    *(lanes_t*)(c + i * kWidth) = sums[i][0];
    *(lanes_t*)(c + i * kWidth + kLanes) = sums[i][1];
  }
}

// c (rows x columns) less a (rows x depth) times b (depth x columns), none of them the same memory.
static void update(size_t rows, size_t columns, size_t depth, const double* a, const double* b,
                   double* c) {
  static double strips[kWidth * kWidth] __attribute__((aligned(64)));  // of b, one by one
  for (size_t x = 0; x < columns; ++x)
    for (size_t k = 0; k < depth; ++k)
      strips[x / kStrip * kStrip * depth + k * kStrip + x % kStrip] = b[k * kWidth + x];
  size_t y = 0;
  for (; y + kHeight <= rows; y += kHeight)
    for (size_t x = 0; x < columns; x += kStrip)
      strip_update(kHeight, depth, a + y * kWidth, strips + x * depth, c + y * kWidth + x);
  for (; y < rows; ++y)
    for (size_t x = 0; x < columns; x += kStrip)
      strip_update(1, depth, a + y * kWidth, strips + x * depth, c + y * kWidth + x);
}

// `x` (n x columns) becomes the solution of l x = x; l has ones in its diagonal.
static void solve_lower(size_t n, size_t columns, const double* l, double* x) {
  if (n > kBase) {
    const size_t half = n / 2;
    solve_lower(half, columns, l, x);
    update(n - half, columns, half, l + half * kWidth, x, x + half * kWidth);
    solve_lower(n - half, columns, l + half * kWidth + half, x + half * kWidth);
    return;
  }
  for (size_t i = 1; i < n; ++i)
    for (size_t k = 0; k < i; ++k)
      for (size_t j = 0; j < columns; ++j)
        x[i * kWidth + j] -= l[i * kWidth + k] * x[k * kWidth + j];
}

static void swap(double* one, double* other) {
  const double value = *one;
  *one = *other;
  *other = value;
}

static void exchange_rows(double* column, size_t first, size_t other) {
  for (size_t x = 0; first != other && x < kWidth; ++x)
    swap(&column[first * kWidth + x], &column[other * kWidth + x]);
}

static size_t largest_below(const double* column, size_t n, size_t y, size_t x) {
  size_t best = y;
  for (size_t i = y + 1; i < n; ++i)
    if (__builtin_fabs(column[i * kWidth + x]) > __builtin_fabs(column[best * kWidth + x]))
      best = i;
  return best;
}

// The columns x to x + width of a column of blocks, from row y on, of n rows.
static void factor(double* column, size_t n, size_t y, size_t x, size_t width, size_t* pivots) {
  if (width > kBase) {
    const size_t half = width / 2;
    double* const corner = column + y * kWidth + x;
    factor(column, n, y, x, half, pivots);
    solve_lower(half, width - half, corner, corner + half);
    update(n - y - half, width - half, half, corner + half * kWidth, corner + half,
           corner + half * kWidth + half);
    factor(column, n, y + half, x + half, width - half, pivots);
    return;
  }
  for (size_t k = 0; k < width; ++k) {
    pivots[y + k] = largest_below(column, n, y + k, x + k);
    exchange_rows(column, y + k, pivots[y + k]);
    const double* const row = column + (y + k) * kWidth + x;
    for (size_t i = y + k + 1; i < n; ++i) {
      double* const other = column + i * kWidth + x;
      const double part = other[k] /= row[k];
      for (size_t j = k + 1; j < width; ++j) other[j] -= part * row[j];
    }
  }
}

// Column j of blocks, brought up to date and factored.
static void factor_column(double* matrix, size_t n, size_t j, size_t* pivots) {
  double* const column = matrix + j * kWidth * n;
  for (size_t k = 0; k < j; ++k) {
    const size_t first = k * kWidth, below = first + kWidth;
    const double* const before = matrix + first * n;
    for (size_t i = first; i < below; ++i) exchange_rows(column, i, pivots[i]);
    solve_lower(kWidth, kWidth, before + first * kWidth, column + first * kWidth);
    update(n - below, kWidth, kWidth, before + below * kWidth, column + first * kWidth,
           column + below * kWidth);
  }
  factor(column, n, j * kWidth, 0, kWidth, pivots);
}

// `b` becomes the solution. Each column of blocks is read twice, in the order of its rows.
static void solve(const double* matrix, size_t n, const size_t* pivots, double* b) {
  for (size_t j = 0; j < n; j += kWidth) {
    const double* const column = matrix + j * n;
    for (size_t i = j; i < j + kWidth; ++i) swap(&b[i], &b[pivots[i]]);
    for (size_t i = j; i < n; ++i)
      for (size_t x = 0; x < kWidth && j + x < i; ++x) b[i] -= column[i * kWidth + x] * b[j + x];
  }
  for (size_t j = n; j > 0; j -= kWidth) {
    const size_t first = j - kWidth;
    const double* const column = matrix + first * n;
    for (size_t i = j; i-- > first;) {
      for (size_t x = i - first + 1; x < kWidth; ++x) b[i] -= column[i * kWidth + x] * b[first + x];
      b[i] /= column[i * kWidth + i - first];
    }
    for (size_t i = 0; i < first; ++i)
      for (size_t x = 0; x < kWidth; ++x) b[i] -= column[i * kWidth + x] * b[first + x];
  }
}

// `size` x `size` numbers of a fixed seed, and a right side for the solution of ones, whose sum is
// the check. One thread: the others wait.
static double lu(const struct kernel* kernel, double* check) {
  const size_t n = kernel->size;
  if (n == 0 || n % kWidth != 0) {
    fprintf(stderr, "lu: a size of %zu; a multiple of %d is needed\n", n, kWidth);
    exit(2);
  }
  double* const matrix = shared(n * n * sizeof *matrix);
  double seconds = 0;
  *check = 0;
  if (self() == 0) {
    double* const b = calloc(n, sizeof *b);
    size_t* const pivots = calloc(n, sizeof *pivots);
    uint64_t state = 1;
    for (size_t i = 0; i < n * n; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      matrix[i] = (double)(state >> 11) / (double)(1ull << 53) - 0.5;
      b[i / kWidth % n] += matrix[i];
    }
    const double start = now();
    for (size_t j = 0; j < n / kWidth; ++j) factor_column(matrix, n, j, pivots);
    seconds = now() - start;
    solve(matrix, n, pivots, b);
    for (size_t i = 0; i < n; ++i) *check += b[i];
    free(b);
    free(pivots);
  }
  barrier();
  return seconds;
}
