// SPDX-License-Identifier: Apache-2.0
// Purpose: thread functions that tests run at places of all kinds: a multiplication of matrices by
// rows, and a search in an unbalanced tree.
// Thread safety: plain functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "svp/transport/function.h"

namespace tombolo::svp::testing {

// Row i of c = a b, where b is square.
inline void multiply_row(Index i, InArray<double> a, InArray<double> b, OutArray<double> c) {
  std::size_t n = 0;
  while (n * n < b.size()) ++n;
  const std::size_t row = static_cast<std::size_t>(i) * n;
  for (std::size_t j = 0; j < n; ++j) {
    double sum = 0;
    for (std::size_t k = 0; k < n; ++k) sum += a[row + k] * b[k * n + j];
    c[row + j] = sum;
  }
}

// The nodes of a tree whose node decides by its number how many children it has: 0 to 4, fewer
// further down.
inline std::uint64_t nodes_below(std::uint64_t node, std::uint32_t depth) {
  std::uint64_t mixed = (node + 1) * 0x9e3779b97f4a7c15;
  mixed ^= mixed >> 29;
  mixed *= 0xbf58476d1ce4e5b9;
  mixed ^= mixed >> 32;
  const std::uint64_t children = depth == 0 ? 0 : mixed % 5;
  std::uint64_t nodes = 1;
  for (std::uint64_t child = 0; child < children; ++child)
    nodes += nodes_below(mixed + child, depth - 1);
  return nodes;
}

// Thread i searches the tree below root + i.
inline void search_tree(Index i, In<std::uint64_t> root, In<std::uint32_t> depth,
                        OutArray<std::uint64_t> nodes) {
  nodes[static_cast<std::size_t>(i)] = nodes_below(*root + static_cast<std::uint64_t>(i), *depth);
}

}  // namespace tombolo::svp::testing
