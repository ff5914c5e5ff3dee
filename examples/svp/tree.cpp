// SPDX-License-Identifier: Apache-2.0
// A search of an unbalanced tree: counts its nodes. The children of its root are dealt out to the
// processes in small families.
// Alone, or in several processes: tombolo svp run -n 4 ./tree [CHILDREN]
#include <cstdio>
#include <cstdlib>

#include <tombolo/svp.hpp>
#include "examples/svp/at_processes.h"
#include "examples/svp/kernels.h"

namespace svp = tombolo::svp;

namespace {

int search(svp::Job& job, std::uint64_t children) {
  kernels::AtProcesses creator{job};
  const std::uint64_t nodes = kernels::search(creator, job.processes(), children);
  std::uint64_t wanted = 1;
  for (std::uint64_t child = 0; child < children; ++child)
    wanted += kernels::count_below(kernels::Tree::child(kernels::Tree::root, child));
  std::printf("%u processes, %llu nodes: %s\n", job.processes(),
              static_cast<unsigned long long>(nodes), nodes == wanted ? "right" : "wrong");
  return nodes == wanted ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t children = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1000;
  if (children == 0 || children > 100000) {
    std::fprintf(stderr, "tree: from 1 to 100000 children\n");
    return 2;
  }
  return svp::run([children](svp::Job& job) { return search(job, children); });
}
