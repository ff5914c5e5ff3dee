// SPDX-License-Identifier: Apache-2.0
#include "runtime/host_mpi/world_name.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
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
constexpr Option pmi_port{.variable = "PMI_PORT"};  // mpiexec -pmi-port
constexpr Option pmi_id{.variable = "PMI_ID"};      // the rank there
constexpr Option pmi_debug{.variable = "PMI_DEBUG"};
constexpr Option universe_size{.variable = "MPI_UNIVERSE_SIZE"};
constexpr Option appnum{.variable = "MPI_APPNUM"};
// MPICH's own launcher alone sets it; another one may speak otherwise over a socket of this name.
constexpr Option hydra_local{.variable = "MPI_LOCALNRANKS"};

std::optional<int> number_of(const Option& option) {
  const auto number = number_in(text_of(option));
  if (!number || *number > INT32_MAX) return {};
  return static_cast<int>(*number);
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

// A launcher's process may have the same number in another namespace of them.
std::string process_namespace() {
  std::array<char, 64> text{};
  const ssize_t size = readlink("/proc/self/ns/pid", text.data(), text.size());
  return {text.data(), size > 0 ? static_cast<std::size_t>(size) : 0};
}

void name_by_pmi(WorldName& world, int socket, int rank) {
  world.keys = KeyStore::behind(socket);
  if (world.keys.name().empty()) return;
  world.name = "pmi " + world.keys.name();
  world.rank = rank;
  world.size = number_of(pmi_size).value_or(0);
  world.launcher = launcher_of(world.keys.name());
  world.spawned = is_set(pmi_spawned) ? world.size : 0;
}

// All of its processes are on this host. It calls its stores by its own process and the world.
void name_by_forks(WorldName& world, int socket, int rank) {
  name_by_pmi(world, socket, rank);
  if (world.name.empty()) return;
  world.name += " " + process_namespace();
  world.here = world.size;
}

bool is_gforker() { return is_set(pmi_debug) && is_set(universe_size) && is_set(appnum); }

}  // namespace

WorldName world_name() {
  WorldName world;
  world.here = static_cast<int>(processes_here());
  const auto socket = number_of(pmi_socket);
  if (const auto rank = number_of(pmix_rank); rank && is_set(pmix_namespace)) {
    world.rank = *rank;
    world.name = fmt::format("pmix {} {} {}", server_of_pmix(), text_of(pmix_folder),
                             text_of(pmix_namespace));
  } else if (const auto by_pmi = number_of(pmi_rank); socket && by_pmi && is_set(hydra_local)) {
    name_by_pmi(world, *socket, *by_pmi);
  } else if (socket && by_pmi && is_gforker()) {
    name_by_forks(world, *socket, *by_pmi);
  } else if (const auto id = number_of(pmi_id); id && is_set(pmi_port) && is_set(hydra_local)) {
    world.rank = *id;
    world.name = "pmi at " + text_of(pmi_port);  // a port for each world and host
  }
  return world;
}

}  // namespace tombolo::runtime
