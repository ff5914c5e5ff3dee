// SPDX-License-Identifier: Apache-2.0
#include "runtime/host_mpi/world_name.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/options.h"
#include "host/processes/ancestors.h"
#include "host/processes/process.h"
#include "runtime/processes/processes_here.h"

namespace tombolo::runtime {
namespace {

constexpr Option pmix_namespace{.variable = "PMIX_NAMESPACE"};
constexpr Option pmix_rank{.variable = "PMIX_RANK"};
constexpr Option pmix_folder{.variable = "PMIX_SERVER_TMPDIR"};  // of the launcher on this host
constexpr Option pmi_socket{.variable = "PMI_FD"};
constexpr Option pmi_rank{.variable = "PMI_RANK"};
constexpr Option pmi_size{.variable = "PMI_SIZE"};
constexpr Option pmi_spawned{.variable = "PMI_SPAWNED"};
constexpr Option hydra_control{.variable = "HYDI_CONTROL_FD"};  // MPICH's own launcher alone

std::optional<int> number_of(const Option& option) {
  const auto number = number_in(text_of(option));
  if (!number || *number > INT32_MAX) return {};
  return static_cast<int>(*number);
}

std::string named(int pid) {
  const host::ProcessName process = host::process_named(pid);
  return fmt::format("{} {}", process.pid, process.started);
}

// The process that has made the socket of PMI; 0 if the kernel does not tell.
int other_end(int socket) {
  ucred peer{};
  socklen_t bytes = sizeof peer;
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 ? peer.pid : 0;
}

// A line of PMI 1 and the answer to it; empty if there is none.
std::string ask(int socket, std::string_view line) {
  if (write(socket, line.data(), line.size()) != static_cast<ssize_t>(line.size())) return {};
  std::string answer;
  for (char c = 0; answer.size() < 4096 && read(socket, &c, 1) == 1; answer += c)
    if (c == '\n') return answer;
  return {};
}

// One process of MPICH's launcher may serve several worlds, which it tells apart by their stores of
// keys. It answers the MPI's own greeting afterwards as if there had been none.
std::string key_store(int socket) {
  constexpr std::string_view before = "kvsname=";
  if (ask(socket, "cmd=init pmi_version=1 pmi_subversion=1\n").empty()) return {};
  const std::string answer = ask(socket, "cmd=get_my_kvsname\n");
  const std::size_t found = answer.find(before);
  if (found == std::string::npos) return {};
  const std::size_t start = found + before.size();
  return answer.substr(start, answer.find_first_of(" \n", start) - start);
}

void name_by_pmi(WorldName& world, int socket, int rank) {
  const int server = other_end(socket);
  if (server == 0) return;
  world.rank = rank;
  const bool spawned = is_set(pmi_spawned);
  if (is_set(hydra_control)) {
    world.launcher = named(host::parent_of(server));
    world.spawned = spawned ? number_of(pmi_size).value_or(0) : 0;
  }
  if (!spawned)
    world.name = fmt::format("pmi {}", named(server));
  else if (const std::string store = is_set(hydra_control) ? key_store(socket) : ""; !store.empty())
    world.name = fmt::format("pmi {} {}", named(server), store);
}

}  // namespace

WorldName world_name() {
  WorldName world;
  world.here = static_cast<int>(processes_here());
  if (const auto rank = number_of(pmix_rank); rank && is_set(pmix_namespace)) {
    world.rank = *rank;
    world.name = fmt::format("pmix {} {}", text_of(pmix_folder), text_of(pmix_namespace));
  } else if (const auto socket = number_of(pmi_socket), by_pmi = number_of(pmi_rank);
             socket && by_pmi) {
    name_by_pmi(world, *socket, *by_pmi);
  }
  return world;
}

}  // namespace tombolo::runtime
