// SPDX-License-Identifier: Apache-2.0
// Purpose: matrices of doubles in the simulated memory of a core, by rows that lie apart, and the
// product and the sum of two of them.
// Thread safety: as Cpu.
#pragma once

#include <vector>

#include "experiments/svp/distribution.h"

namespace tombolo::experiments {

// A matrix, or a part of one: a column of pointers to its rows (002 Figure 6.2).
struct Matrix {
  std::uint64_t size = 0;
  std::vector<scc::View> rows = {};

  // All rows in one block, which is given back by its first row.
  static Status allocate(Node& node, std::uint64_t size, Matrix* matrix);
  void free(Node& node) const { node.free(rows.front()); }
  // One of the four parts.
  Matrix part(std::uint64_t row, std::uint64_t column) const;

  std::vector<double> read_row(Node& node, std::uint64_t row) const;
  void write_row(Node& node, std::uint64_t row, const std::vector<double>& values) const;
};

void multiply(Node& node, const Matrix& a, const Matrix& b, const Matrix& c);
void add(Node& node, const Matrix& a, const Matrix& b, const Matrix& c);

}  // namespace tombolo::experiments
