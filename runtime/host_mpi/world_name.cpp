// SPDX-License-Identifier: Apache-2.0
#include "runtime/host_mpi/world_name.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/options.h"
#include "runtime/processes/processes_here.h"

namespace tombolo::runtime {
namespace {

constexpr Option pmix_namespace{.variable = "PMIX_NAMESPACE"};
constexpr Option pmix_rank{.variable = "PMIX_RANK"};
constexpr Option pmix_folder{.variable = "PMIX_SERVER_TMPDIR"};  // of the launcher on this host
// The address of its server, by the versions of PMIx that a process may speak.
constexpr Option pmix_servers[] = {{.variable = "PMIX_SERVER_URI41"},
                                   {.variable = "PMIX_SERVER_URI4"},
                                   {.variable = "PMIX_SERVER_URI3"},
                                   {.variable = "PMIX_SERVER_URI2"},
                                   {.variable = "PMIX_SERVER_URI21"}};
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

// A line of PMI 1 and the answer to it; empty if there is none.
std::string ask(int socket, std::string_view line) {
  if (send(socket, line.data(), line.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(line.size()))
    return {};
  std::string answer;
  for (char c = 0; answer.size() < 4096 && read(socket, &c, 1) == 1; answer += c)
    if (c == '\n') return answer;
  return {};
}

// The store of keys, which is the world's own. The launcher answers the MPI's own greeting later as
// if there had been none.
std::string key_store(int socket) {
  constexpr std::string_view before = "kvsname=";
  if (ask(socket, "cmd=init pmi_version=1 pmi_subversion=1\n").empty()) return {};
  const std::string answer = ask(socket, "cmd=get_my_kvsname\n");
  const std::size_t found = answer.find(before);
  if (found == std::string::npos) return {};
  const std::size_t start = found + before.size();
  return answer.substr(start, answer.find_first_of(" \n", start) - start);
}

// A store is called "kvs_PROCESS_WORLD_NUMBER_HOST", by the launcher's first process and its host.
std::string launcher_of(const std::string& store) {
  std::size_t end = 0;
  std::size_t process_end = 0;
  for (int part = 0; part < 4; ++part) {
    end = store.find('_', end == 0 ? 0 : end + 1);
    if (end == std::string::npos) return {};
    if (part == 1) process_end = end;
  }
  return store.substr(0, process_end) + store.substr(end);
}

// Containers that share the network may have the same namespaces and folders, but not the same
// addresses.
std::string server_of_pmix() {
  for (const Option& server : pmix_servers)
    if (is_set(server)) return text_of(server);
  return {};
}

void name_by_pmi(WorldName& world, int socket, int rank) {
  const std::string store = key_store(socket);
  if (store.empty()) return;
  world.name = "pmi " + store;
  world.rank = rank;
  world.launcher = launcher_of(store);
  world.spawned = is_set(pmi_spawned) ? number_of(pmi_size).value_or(0) : 0;
}

}  // namespace

WorldName world_name() {
  WorldName world;
  world.here = static_cast<int>(processes_here());
  if (const auto rank = number_of(pmix_rank); rank && is_set(pmix_namespace)) {
    world.rank = *rank;
    world.name = fmt::format("pmix {} {} {}", server_of_pmix(), text_of(pmix_folder),
                             text_of(pmix_namespace));
  } else if (const auto socket = number_of(pmi_socket), by_pmi = number_of(pmi_rank);
             socket && by_pmi && is_set(hydra_control)) {
    name_by_pmi(world, *socket, *by_pmi);
  }
  return world;
}

}  // namespace tombolo::runtime
