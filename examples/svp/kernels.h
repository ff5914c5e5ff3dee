// SPDX-License-Identifier: Apache-2.0
// Purpose: the families of matrix.cpp and tree.cpp. Their thread functions are plain functions,
// which run in this process, in others, and on any site that has their functions. The parts
// that create the families are templates over the creator:
//
//   creator.create(place, range, svp::remote<&f>, args...)   a family, behind a pointer
//   creator.sync(*family)                                    with a complaint if it is not done
//
// Thread safety: as their threads.
#pragma once

#include <tombolo/svp.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

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

// The operands of n * n elements.
inline double left_element(std::size_t i) { return static_cast<double>(i % 17); }
inline double right_element(std::size_t i) { return static_cast<double>(i % 23) - 11; }

// c = a * b, in as many families as there are places, with a thread for each row.
template <class Creator>
void multiply(Creator& creator, unsigned places, std::uint64_t n, std::span<const double> a,
              std::span<const double> b, std::span<double> c) {
  const auto create = [&](unsigned place) {
    const std::uint64_t row = n * place / places;
    const std::uint64_t rows = n * (place + 1) / places - row;
    return creator.create(place, svp::Range{.limit = static_cast<svp::Index>(rows)},
                          svp::remote<&multiply_row>, a.subspan(row * n, rows * n), b,
                          c.subspan(row * n, rows * n), n);
  };
  std::vector<decltype(create(0))> families;
  for (unsigned place = 0; place < places; ++place) families.push_back(create(place));
  for (auto& family : families) creator.sync(*family);
}

// Of all elements, in their order.
inline std::uint64_t digest_of(std::span<const double> elements) {
  std::uint64_t digest = 0xcbf29ce484222325;
  for (const double element : elements)
    digest = (digest ^ std::bit_cast<std::uint64_t>(element)) * 0x100000001b3;
  return digest;
}

// A tree whose shape follows from its root alone: most nodes have no children, few have many.
struct Tree {
  static constexpr std::uint64_t root = 4711;
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

// The nodes of a tree whose root has so many children, which are dealt out in small families.
template <class Creator>
std::uint64_t search(Creator& creator, unsigned places, std::uint64_t children) {
  constexpr std::uint64_t in_a_family = 25;
  // Each family fills the nodes of its own children; indices count from the first of all.
  std::vector<std::vector<std::uint64_t>> below;
  for (std::uint64_t first = 0; first < children; first += in_a_family)
    below.emplace_back(children);
  const auto create = [&](std::size_t number) {
    const std::uint64_t first = number * in_a_family;
    const std::uint64_t limit = std::min(first + in_a_family, children);
    return creator.create(static_cast<unsigned>(number % places),
                          svp::Range{.start = static_cast<svp::Index>(first),
                                     .limit = static_cast<svp::Index>(limit)},
                          svp::remote<&count_nodes>, Tree::root,
                          std::span<std::uint64_t>(below[number]));
  };
  std::vector<decltype(create(0))> families;
  for (std::size_t number = 0; number < below.size(); ++number) families.push_back(create(number));
  for (auto& family : families) creator.sync(*family);
  std::uint64_t nodes = 1;
  for (std::uint64_t child = 0; child < children; ++child)
    nodes += below[child / in_a_family][child];
  return nodes;
}

}  // namespace kernels
