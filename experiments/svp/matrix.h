// SPDX-License-Identifier: Apache-2.0
// Purpose: the matrix multiplication of 002 section 6.1.2: a matrix is decomposed into four, which
// makes eight multiplications and four additions of a quarter of the size; the multiplications
// run at remote places, with each row as an argument of its own.
//
// The multiplication of two sub-matrices is the loop over rows, columns and the sum. Two of its
// rows are simulated load by load, through the caches; all others take as long as the second.
// Operands are read, and results written, through the caches once in full, so that a stale line
// makes a wrong result.
//
// Invariants: MXM1 values are small whole numbers, so that sums are exact, and a result is right or
//                 wrong.
// Thread safety: as Cpu.
#pragma once

#include <vector>

#include "experiments/common/experiment.h"
#include "experiments/svp/distribution.h"

namespace tombolo::experiments {

Experiment svp_matrix();
Experiment svp_matrix_two_steps();

struct MatrixRun {
  Scheme scheme = Scheme::direct;
  std::uint64_t size = 128;
  int steps = 1;
  std::uint32_t workers = 1;
  // The second step is taken by so many worker-masters; the workers are theirs.
  std::uint32_t worker_masters = 0;
  // For tests: operands whose lines are dirty, and operations that are left out.
  bool operands_in_caches = false;
  SharedMemory::Care care = {};
};

struct MatrixResult {
  simulator::Duration took;
  bool right = false;
  std::uint64_t most_bytes_used = 0;  // of the master's process
  simulator::Duration distributing;   // until the master's last create returned
  // From the master's first create to its last addition:
  Activity master;
  Activity workers;  // of all of them, but worker-masters
  std::uint32_t worker_cores = 0;
  std::uint64_t sent_bytes = 0;  // by all cores
  simulator::RunResult run;
};

Status multiply_matrices(const Context& context, const MatrixRun& what, MatrixResult* result);

}  // namespace tombolo::experiments
