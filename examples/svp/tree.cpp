// SPDX-License-Identifier: Apache-2.0
// A search of an unbalanced tree: counts its nodes. The children of its root are dealt out to the
// processes in small families.
// Alone, or in several processes: tombolo svp run -n 4 ./tree
#include <cstdio>
#include <memory>
#include <span>
#include <vector>

#include "examples/svp/kernels.h"
#include "svp/svp.h"

namespace svp = tombolo::svp;

namespace {

constexpr std::uint64_t root = 4711;
constexpr svp::Index in_a_family = 25;

int search(svp::Job& job) {
  std::vector<std::uint64_t> below(kernels::Tree::children_of_root);
  // Each family fills the nodes of its own children; indices count from the first of all.
  const auto create = [&](unsigned process, svp::Index first, std::span<std::uint64_t> counts) {
    return svp::create(job.place(process), {.start = first, .limit = first + in_a_family},
                       svp::remote<&kernels::count_nodes>, root, counts);
  };
  using Family = decltype(create(0, 0, {}));
  std::vector<std::unique_ptr<Family>> families;
  std::vector<std::vector<std::uint64_t>> counts;
  const auto all = static_cast<svp::Index>(below.size());
  for (svp::Index first = 0; first < all; first += in_a_family) counts.emplace_back(below.size());
  for (svp::Index first = 0; first < all; first += in_a_family) {
    const auto number = static_cast<std::size_t>(first / in_a_family);
    const auto process = static_cast<unsigned>(number) % job.processes();
    families.emplace_back(new Family(create(process, first, counts[number])));
  }
  for (std::size_t number = 0; number < families.size(); ++number) {
    families[number]->sync().rethrow();
    for (svp::Index i = 0; i < in_a_family; ++i) {
      const std::size_t child = number * in_a_family + static_cast<std::size_t>(i);
      below[child] = counts[number][child];
    }
  }
  std::uint64_t nodes = 1;
  std::uint64_t wanted = 1;
  for (std::uint64_t child = 0; child < below.size(); ++child) {
    nodes += below[child];
    wanted += kernels::count_below(kernels::Tree::child(root, child));
  }
  std::printf("%u processes, %llu nodes: %s\n", job.processes(),
              static_cast<unsigned long long>(nodes), nodes == wanted ? "right" : "wrong");
  return nodes == wanted ? 0 : 1;
}

}  // namespace

int main() { return svp::run(search); }
