// SPDX-License-Identifier: Apache-2.0
// Purpose: unbalanced tree search, after UTS (Olivier and others, LCPC 2006), with a mixing
// function for its SHA-1: T1, a geometric tree of limited depth, and T3, a binomial one whose
// subtrees differ by orders of magnitude. A task is a node. The seeds are those for which the trees
// have the size of theirs: 4,159,510 and 4,139,777 nodes, theirs 4,130,071 and 4,112,897.
// Thread safety: -
#include <atomic>
#include <cmath>
#include <cstdint>
#include <thread>
#include <vector>

#include "svp/bench/contest.h"

#ifdef TOMBOLO_HAS_TBB
#include <tbb/task_group.h>
#endif

namespace tombolo::svp::bench {
namespace {

// splitmix64 (Steele and others, OOPSLA 2014).
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

struct Node {
  std::uint64_t state;
  int depth;
  Node child(long i) const {
    return {mixed(state + static_cast<std::uint64_t>(i) * 0x632BE59BD9B4E019), depth + 1};
  }
  double fraction() const { return static_cast<double>(state >> 11) * 0x1p-53; }
};

struct Geometric {
  int deepest;
  long children(const Node& node) const {
    constexpr double most = 4;  // on average
    if (node.depth >= deepest) return 0;
    return static_cast<long>(std::log(1 - node.fraction()) / std::log(1 - 1 / (1 + most)));
  }
};

struct Binomial {
  long of_root;
  long children(const Node& node) const {
    constexpr double likely = 0.124875;
    if (node.depth == 0) return of_root;
    return node.fraction() < likely ? 8 : 0;
  }
};

template <class Tree>
long plain(const Tree& tree, const Node& node) {
  long nodes = 1;
  const long children = tree.children(node);
  for (long i = 0; i < children; ++i) nodes += plain(tree, node.child(i));
  return nodes;
}

// The sum over the children by halves, as families of two threads: their results need no memory
// of a size that is not known.
template <class Tree>
long by_families(const Tree& tree, const Node& node);
template <class Tree>
long children_by_families(const Tree& tree, const Node& node, long from, long to) {
  if (to - from == 1) return by_families(tree, node.child(from));
  const long middle = from + (to - from) / 2;
  long upper = 0;
  auto family = create([&] { upper = children_by_families(tree, node, middle, to); });
  const long lower = children_by_families(tree, node, from, middle);
  family.sync();
  return lower + upper;
}
template <class Tree>
long by_families(const Tree& tree, const Node& node) {
  const long children = tree.children(node);
  return 1 + (children == 0 ? 0 : children_by_families(tree, node, 0, children));
}

#ifdef TOMBOLO_HAS_TBB
template <class Tree>
long by_tbb(const Tree& tree, const Node& node);
template <class Tree>
long children_by_tbb(const Tree& tree, const Node& node, long from, long to) {
  if (to - from == 1) return by_tbb(tree, node.child(from));
  const long middle = from + (to - from) / 2;
  long upper = 0;
  tbb::task_group group;
  group.run([&] { upper = children_by_tbb(tree, node, middle, to); });
  const long lower = children_by_tbb(tree, node, from, middle);
  group.wait();
  return lower + upper;
}
template <class Tree>
long by_tbb(const Tree& tree, const Node& node) {
  const long children = tree.children(node);
  return 1 + (children == 0 ? 0 : children_by_tbb(tree, node, 0, children));
}
#endif

#ifdef _OPENMP
template <class Tree>
long by_openmp(const Tree& tree, const Node& node);
template <class Tree>
long children_by_openmp(const Tree& tree, const Node& node, long from, long to) {
  if (to - from == 1) return by_openmp(tree, node.child(from));
  const long middle = from + (to - from) / 2;
  long upper = 0;
#pragma omp task shared(upper, tree, node)
  upper = children_by_openmp(tree, node, middle, to);
  const long lower = children_by_openmp(tree, node, from, middle);
#pragma omp taskwait
  return lower + upper;
}
template <class Tree>
long by_openmp(const Tree& tree, const Node& node) {
  const long children = tree.children(node);
  return 1 + (children == 0 ? 0 : children_by_openmp(tree, node, 0, children));
}
#endif

// The limit: as many threads as workers, each of which searches a tree of its own and shares
// nothing.
template <class Tree>
void plain_on_each(const Settings& settings, const Tree& tree, const Node& root, long nodes,
                   const char* name) {
  std::vector<std::jthread> threads;
  for (unsigned i = 0; i < settings.workers; ++i)
    threads.emplace_back([&] { expect(plain(tree, root) == nodes, name); });
}

template <class Tree>
void search(const Settings& settings, const char* name, const Tree& tree, std::uint64_t seed) {
  const Node root{mixed(seed), 0};
  const long nodes = plain(tree, root);
  Contest contest(settings, name, static_cast<double>(nodes));
  contest.add_inside("families", [&, name] {
    in_families(settings, [&] { expect(by_families(tree, root) == nodes, name); });
  });
#ifdef TOMBOLO_HAS_TBB
  contest.add("oneTBB",
              [&, name] { in_tbb(settings, [&] { expect(by_tbb(tree, root) == nodes, name); }); });
#endif
#ifdef _OPENMP
  contest.add("OpenMP", [&, name] {
    in_openmp(settings, [&] { expect(by_openmp(tree, root) == nodes, name); });
  });
#endif
  contest.add("plain recursion", [&, name] { expect(plain(tree, root) == nodes, name); });
  if (settings.workers > 1)
    contest.add(
        "plain, each", [&, name] { plain_on_each(settings, tree, root, nodes, name); },
        static_cast<double>(nodes) * settings.workers);
  contest.measure();
}

}  // namespace

void tree_search(const Settings& settings) {
  search(settings, "tree T1", Geometric{settings.quick ? 6 : 11}, 89);
  search(settings, "tree T3", Binomial{settings.quick ? 200 : 2000}, 79);
}

}  // namespace tombolo::svp::bench
