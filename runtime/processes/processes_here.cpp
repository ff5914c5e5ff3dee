// SPDX-License-Identifier: Apache-2.0
#include "runtime/processes/processes_here.h"

#include <algorithm>
#include <string_view>

#include "base/options.h"

namespace tombolo::runtime {
namespace {

// Of Slurm's list "4(x2),3": four on each of the nodes 0 and 1, three on node 2. 0 if it is none.
std::uint64_t on_node(std::string_view list, std::uint64_t node) {
  while (!list.empty()) {
    std::string_view item = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), item.size() + 1));
    std::uint64_t nodes = 1;
    if (const std::size_t times = item.find("(x"); times != item.npos && item.ends_with(')')) {
      nodes = number_in(item.substr(times + 2, item.size() - times - 3)).value_or(0);
      item = item.substr(0, times);
    }
    const std::uint64_t processes = number_in(item).value_or(0);
    if (processes == 0 || nodes == 0) return 0;
    if (node < nodes) return processes;
    node -= nodes;
  }
  return 0;
}

std::uint64_t in_slurms_step() {
  const auto node = number_in(text_of({.variable = "SLURM_NODEID"}));
  return node ? on_node(text_of({.variable = "SLURM_STEP_TASKS_PER_NODE"}), *node) : 0;
}

}  // namespace

std::uint32_t processes_here() {
  constexpr std::uint64_t more_than_any_host = 1'000'000;
  const auto said = [](std::string_view variable) {
    return number_in(text_of({.variable = variable})).value_or(0);
  };
  for (const std::uint64_t count : {said("MPI_LOCALNRANKS"), said("OMPI_COMM_WORLD_LOCAL_SIZE"),
                                    in_slurms_step(), said("SLURM_NTASKS_PER_NODE")})
    if (count > 0 && count < more_than_any_host) return static_cast<std::uint32_t>(count);
  return 1;
}

}  // namespace tombolo::runtime
