// SPDX-License-Identifier: Apache-2.0
// Purpose: the thread functions of matrix.cpp and tree.cpp: plain functions, which run in this
// process, in others, and on any site that knows svp/transport/function.h.
// Thread safety: as their threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "svp/transport/function.h"

namespace kernels {

namespace svp = tombolo::svp;

// A row of c = a * b; a and c are some rows of theirs, b is square.
inline void multiply_row(svp::Index row, svp::InArray<double> a, svp::InArray<double> b,
                         svp::OutArray<double> c, svp::In<std::uint64_t> n) {
  const std::size_t first = static_cast<std::size_t>(row) * n;
  for (std::size_t column = 0; column < n; ++column) c[first + column] = 0;
  for (std::size_t k = 0; k < n; ++k)
    for (std::size_t column = 0; column < n; ++column)
      c[first + column] += a[first + k] * b[k * n + column];
}

// A tree whose shape follows from its root alone: most nodes have no children, few have many.
struct Tree {
  static constexpr std::uint64_t children_of_root = 1000;
  static constexpr std::uint64_t one_in = 5;
  static constexpr std::uint64_t many = 4;

  static std::uint64_t child(std::uint64_t node, std::uint64_t number) {
    std::uint64_t v = node + (number + 1) * 0x9e3779b97f4a7c15;
    v = (v ^ (v >> 30)) * 0xbf58476d1ce4e5b9;
    v = (v ^ (v >> 27)) * 0x94d049bb133111eb;
    return v ^ (v >> 31);
  }
  static std::uint64_t children(std::uint64_t node) { return node % one_in == 0 ? many : 0; }
};

inline std::uint64_t count_below(std::uint64_t node) {
  std::uint64_t nodes = 1;
  for (std::uint64_t i = 0; i < Tree::children(node); ++i)
    nodes += count_below(Tree::child(node, i));
  return nodes;
}
// The nodes below a child of the root.
inline void count_nodes(svp::Index child, svp::In<std::uint64_t> root,
                        svp::OutArray<std::uint64_t> nodes) {
  const auto number = static_cast<std::uint64_t>(child);
  nodes[number] = count_below(Tree::child(root, number));
}

}  // namespace kernels
