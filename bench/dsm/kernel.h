// SPDX-License-Identifier: Apache-2.0
// The kernels' common parts. To be included once.
#pragma once
#include "bench/dsm/team.h"

#include <stdint.h>

struct kernel {
  const char* program;
  const char* variant;
  size_t size;
  int times;
  double (*run)(const struct kernel*, double* check);  // the seconds
};

struct rows {
  size_t first, last;
};

// Of `n`, those of this thread.
static struct rows share(size_t n) {
  const size_t i = self(), all = threads();
  return (struct rows){n * i / all, n * (i + 1) / all};
}

// The sum of all threads' values: by a reduction, or of `slot` under a lock.
static double total(const struct kernel* kernel, double value, double* slot) {
  if (strcmp(kernel->variant, "lock") != 0) {
    const double all = sum(value);
    barrier();  // a reduction orders no stores
    return all;
  }
  lock(0);
  record(slot, sizeof *slot);
  *slot += value;
  unlock(0);
  barrier();
  return *slot;
}
