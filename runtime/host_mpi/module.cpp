// SPDX-License-Identifier: Apache-2.0
#include "runtime/host_mpi/module.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "host/processes/ancestors.h"
#include "runtime/host_mpi/launched.h"

namespace tombolo::runtime {
namespace {

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

// A program of MPI has its library.
bool is_loaded() { return dlsym(RTLD_DEFAULT, "PMPI_Init_thread") != nullptr; }

bool started_by_an_mpi() {
  return std::ranges::any_of(host::programs_of_ancestors(), [](const std::string& program) {
    return std::ranges::any_of(kinds, [&](const Kind& kind) { return starts(kind, program); });
  });
}

// The folder of the library or program that has the address.
std::filesystem::path folder_of(const void* address) {
  Dl_info info{};
  if (dladdr(address, &info) == 0) return {};
  std::error_code error;
  const std::filesystem::path named = info.dli_fname;
  // Of the program itself the linker knows only its first argument.
  const bool library = named.filename().string().find(".so") != std::string::npos;
  return (library ? named : std::filesystem::read_symlink("/proc/self/exe", error)).parent_path();
}

}  // namespace

Status load_library(const OwnLibrary& library, void*& out) {
  void* loaded = nullptr;
  std::string why;
  for (const std::string& path :
       {(folder_of(library.beside) / library.file).string(), library.file}) {
    loaded = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (loaded != nullptr) break;
    if (why.empty()) why = dlerror();
  }
  out = loaded == nullptr ? nullptr : dlsym(loaded, library.entry);
  if (out != nullptr) return {};
  return Status::unsupported(fmt::format("{} cannot load its module: {}", library.user, why));
}

Status load_mpi(const MpiModule& module) {
  if (is_loaded()) return {};
  const std::string named = text_of(*module.library);
  std::string why;
  for (const std::string& path : named.empty() ? candidates() : std::vector{named}) {
    // Global: the MPI loads parts of its own that look for its names.
    if (dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL) != nullptr) return {};
    if (why.empty()) why = dlerror();
  }
  if (!named.empty())
    return Status::bad_configuration(
        fmt::format("{} names no library: {}", module.library->variable, why));
  return Status::unsupported(
      fmt::format("{} found no MPI library ({}); start the program by mpiexec, and name the "
                  "library by {} if it "
                  "is not beside it",
                  module.user, why, module.library->variable));
}

Status load_module(const MpiModule& module, void*& out) {
  TOMBOLO_TRY(load_mpi(module));
  const bool openmpi = dlsym(RTLD_DEFAULT, "ompi_mpi_comm_world") != nullptr;
  std::string file = fmt::format("libtombolo_{}_{}.so", module.name, openmpi ? "openmpi" : "mpich");
  return load_library({.user = module.user,
                       .file = std::move(file),
                       .entry = module.entry,
                       .beside = module.beside},
                      out);
}

Status check_found(const MpiModule& module, int size) {
  const int tasks = tasks_of_srun();
  if (size > 1 || tasks <= 1 || started_by_an_mpi()) return {};
  return Status::bad_configuration(fmt::format(
      "srun has started {} processes, and each is alone for this MPI: let them find each other by "
      "srun --mpi=pmi2 with MPICH, --mpi=pmix with Open MPI; {} names the MPI's library",
      tasks, module.library->variable));
}

}  // namespace tombolo::runtime
