// SPDX-License-Identifier: Apache-2.0
#include "dsm/transport/mpi/load.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/options.h"
#include "host/processes/ancestors.h"
#include "runtime/options/dsm_options.h"

namespace tombolo::dsm {
namespace {

using Make = bool (*)(std::unique_ptr<OneSided>*, Status*);

// An MPI whose launcher may have started this process.
struct Kind {
  // Parts of the names of the programs that start processes on each host.
  std::array<std::string_view, 3> launchers;
  // Of the library; Debian has one of its own for MPICH.
  std::array<const char*, 2> names;
};
constexpr std::array kinds{
    Kind{.launchers = {"hydra", "mpiexec.mpich", "mpirun.mpich"},
         .names = {"libmpi.so.12", "libmpich.so.12"}},
    Kind{.launchers = {"prte", "orte", "openmpi"}, .names = {"libmpi.so.40", "libmpi.so.40"}},
};

bool starts(const Kind& kind, std::string_view program) {
  const std::string_view name = program.substr(program.rfind('/') + 1);
  return std::ranges::any_of(kind.launchers,
                             [name](auto part) { return name.find(part) != name.npos; });
}

// Of the launcher's kind, beside it and by the linker's own means; a process of another kind's
// launcher would be a job of its own. Of any kind where no launcher is known.
std::vector<std::string> candidates() {
  std::vector<std::string> found;
  for (const std::string& program : host::programs_of_ancestors())
    for (const Kind& kind : kinds) {
      if (!starts(kind, program)) continue;
      const auto libraries = std::filesystem::path(program).parent_path().parent_path() / "lib";
      for (const char* name : kind.names)
        if (std::error_code error; std::filesystem::exists(libraries / name, error))
          found.push_back((libraries / name).string());
      found.insert(found.end(), kind.names.begin(), kind.names.end());
      return found;
    }
  for (const Kind& kind : kinds) found.insert(found.end(), kind.names.begin(), kind.names.end());
  return found;
}

Status load_host(void*& out) {
  const std::string named = text_of(runtime::dsm_mpi_option);
  std::string why;
  for (const std::string& path : named.empty() ? candidates() : std::vector{named}) {
    // Global: the MPI loads parts of its own that look for its names.
    out = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (out != nullptr) return {};
    if (why.empty()) why = dlerror();
  }
  if (!named.empty())
    return Status::bad_configuration(fmt::format("TOMBOLO_DSM_MPI names no library: {}", why));
  return Status::unsupported(fmt::format(
      "transport mpi found no MPI library ({}); start the program by mpiexec, and name the library "
      "by TOMBOLO_DSM_MPI if it is not beside it",
      why));
}

bool started_by_an_mpi() {
  return std::ranges::any_of(host::programs_of_ancestors(), [](const std::string& program) {
    return std::ranges::any_of(kinds, [&](const Kind& kind) { return starts(kind, program); });
  });
}

// A process that srun has started, and whose MPI does not understand it, is a job by itself.
Status check_tasks(int size) {
  constexpr Option srun{.variable = "SLURM_STEP_NUM_TASKS"};
  const std::uint64_t tasks = number_in(text_of(srun)).value_or(1);
  if (size > 1 || tasks <= 1 || started_by_an_mpi()) return {};
  return Status::bad_configuration(fmt::format(
      "srun has started {} processes, and each is alone for this MPI: let them find each other by "
      "srun --mpi=pmi2 with MPICH, --mpi=pmix with Open MPI; TOMBOLO_DSM_MPI names the MPI's "
      "library",
      tasks));
}

// The folder of the library that this code is in.
std::filesystem::path folder_of_ours() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&load_one_sided), &info) == 0) return {};
  return std::filesystem::path(info.dli_fname).parent_path();
}

}  // namespace

Status load_one_sided(std::unique_ptr<OneSided>& out) {
  void* mpi = nullptr;
  TOMBOLO_TRY(load_host(mpi));
  const bool openmpi = dlsym(mpi, "ompi_mpi_comm_world") != nullptr;
  const auto path =
      folder_of_ours() / fmt::format("libtombolo_dsm_{}.so", openmpi ? "openmpi" : "mpich");
  void* const module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  const auto make =
      module == nullptr ? nullptr : reinterpret_cast<Make>(dlsym(module, "tombolo_dsm_one_sided"));
  if (make == nullptr)
    return Status::unsupported(fmt::format("transport mpi cannot load its module: {}", dlerror()));
  Status status;
  make(&out, &status);
  if (status.ok()) status = check_tasks(out->size());
  return status;
}

}  // namespace tombolo::dsm
