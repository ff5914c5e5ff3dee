// SPDX-License-Identifier: Apache-2.0
// Purpose: fills the table of the host MPI's functions and checks that it is the MPI we were built
// for.
// Invariants: the table is published once, complete, and never changes afterwards.
// Thread safety: see host.h.
#include "host/mpi/host.h"

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>

#include "base/check.h"

namespace tombolo::mpi {
namespace detail {

const Host* host_table = nullptr;

const Host& load_host() {
  static std::mutex mutex;
  static Host table;
  static const Host empty;
  const std::lock_guard lock(mutex);
  if (host_table != nullptr) return *host_table;
  if (find_symbol("PMPI_Init") == nullptr) return empty;
#define TOMBOLO_HOST_FUNCTION(function) \
  table.function = reinterpret_cast<decltype(table.function)>(find_symbol("PMPI_" #function));
#include "host/mpi/functions.inc"
#undef TOMBOLO_HOST_FUNCTION
  __atomic_store_n(&host_table, &table, __ATOMIC_RELEASE);
  return table;
}

void stop_without(const char* name) {
  const std::string why = fmt::format(
      "{} is not defined by the MPI library of this process; is it of the kind that this build of "
      "libtombolo_mpi is for?",
      name);
  stop(__FILE__, __LINE__, "the host MPI has the function", why);
}

}  // namespace detail

namespace {

enum class Abi { mpich, openmpi, standard };

constexpr Abi ours =
#if defined(TOMBOLO_MPI_ABI)
    Abi::standard;
#elif defined(OPEN_MPI)
    Abi::openmpi;
#else
    Abi::mpich;
#endif

const char* text(Abi abi) {
  switch (abi) {
    case Abi::mpich:
      return "MPICH";
    case Abi::openmpi:
      return "Open MPI";
    case Abi::standard:
      break;
  }
  return "the MPI-5 standard ABI";
}

// Libraries that use the standard ABI for their handles say so by MPI_Abi_get_version; others lack
// the function or answer -1.
Abi abi_of_host() {
  if (find_symbol("ompi_mpi_comm_world") != nullptr) return Abi::openmpi;
  using Version = int (*)(int*, int*);
  const auto version = reinterpret_cast<Version>(find_symbol("PMPI_Abi_get_version"));
  int major = -1;
  int minor = -1;
  if (version != nullptr && version(&major, &minor) == MPI_SUCCESS && major >= 1)
    return Abi::standard;
  return Abi::mpich;
}

}  // namespace

Status check_host() {
  if (find_symbol("PMPI_Init") == nullptr)
    return Status::unsupported("no MPI library is loaded in this process");
  const Abi found = abi_of_host();
  if (found == ours) return {};
  return Status::bad_configuration(
      fmt::format("this libtombolo_mpi was built for {}, but the program's MPI library has the "
                  "handles of {}; preload the library built for it",
                  text(ours), text(found)));
}

void need_host() {
  static const Status fits = check_host();
  if (fits.ok()) return;
  std::fprintf(stderr, "tombolo: %s\n", fits.message().c_str());
  std::_Exit(1);
}

}  // namespace tombolo::mpi
