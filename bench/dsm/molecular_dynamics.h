// SPDX-License-Identifier: Apache-2.0
// Molecular dynamics (003 section 6.1.7): particles with a central pair potential, the velocity
// Verlet method; the energies are summed by a reduction or under a lock. To be included once.
#pragma once
#include <math.h>

#include "bench/dsm/kernel.h"

typedef struct {
  double at[3];
} point_t;

// As in OmpSCR's program: sin(min(d, pi / 2))^2.
static double add_force(const point_t* one, const point_t* other, point_t* force) {
  const double most = 1.5707963267948966;
  double way[3], square = 0;
  for (int i = 0; i < 3; ++i) {
    way[i] = one->at[i] - other->at[i];
    square += way[i] * way[i];
  }
  const double distance = sqrt(square), near = distance < most ? distance : most;
  for (int i = 0; i < 3; ++i) force->at[i] -= way[i] * sin(2 * near) / distance;
  return 0.5 * sin(near) * sin(near);
}

// The energy of the particles of this thread, whose forces are stored.
static double compute(const point_t* at, const point_t* speeds, point_t* forces, size_t n,
                      struct rows mine) {
  double energy = 0;
  for (size_t i = mine.first; i < mine.last; ++i) {
    point_t force = {{0, 0, 0}};
    for (size_t j = 0; j < n; ++j)
      if (j != i) energy += add_force(&at[i], &at[j], &force);
    forces[i] = force;
    for (int k = 0; k < 3; ++k) energy += 0.5 * speeds[i].at[k] * speeds[i].at[k];
  }
  return energy;
}

static void move(point_t* at, point_t* speeds, const point_t* forces, point_t* accelerations,
                 struct rows mine) {
  const double dt = 1e-4;
  for (size_t i = mine.first; i < mine.last; ++i)
    for (int k = 0; k < 3; ++k) {
      at[i].at[k] += speeds[i].at[k] * dt + 0.5 * accelerations[i].at[k] * dt * dt;
      speeds[i].at[k] += 0.5 * dt * (forces[i].at[k] + accelerations[i].at[k]);
      accelerations[i].at[k] = forces[i].at[k];
    }
}

static double molecular_dynamics(const struct kernel* kernel, double* check) {
  const size_t n = kernel->size, bytes = n * sizeof(point_t);
  point_t* const at = shared(bytes);
  point_t* const speeds = shared(bytes);
  point_t* const forces = shared(bytes);
  point_t* const accelerations = shared(bytes);
  double* const slots = shared((size_t)kernel->times * sizeof *slots);
  const struct rows mine = share(n);
  for (size_t i = mine.first; i < mine.last; ++i)
    for (size_t k = 0; k < 3; ++k) at[i].at[k] = (double)((i * (k + 1) * 7919 + k) % 10007) / 1000;
  barrier();
  const double start = now();
  for (int i = 0; i < kernel->times; ++i) {
    const double energy = compute(at, speeds, forces, n, mine);
    *check = total(kernel, energy, &slots[i]);
    move(at, speeds, forces, accelerations, mine);
    barrier();
  }
  return now() - start;
}
