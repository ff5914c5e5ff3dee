// SPDX-License-Identifier: Apache-2.0
// Purpose: finds the host MPI whose launcher has started this process, and loads it with a module
// of ours that speaks its handles: libtombolo_NAME_mpich.so or libtombolo_NAME_openmpi.so.
//
// The library is the one that the program has loaded; else that of the user's setting; else the one
// beside the launcher among the processes that have started this one; else the one that the dynamic
// linker finds. The module lies beside the library or program of ours that asks for it; else the
// linker finds it.
// Thread safety: one thread at a time.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/options.h"
#include "base/status.h"

namespace tombolo::runtime {

struct MpiModule {
  std::string_view name{};          // "dsm"
  std::string_view user{};          // of texts: "transport mpi"
  const Option* library = nullptr;  // names the library of an MPI
  const char* entry = nullptr;      // the function of the module that is wanted
  const void* beside = nullptr;     // an address in the library or program that asks
};

// A library of ours that a program or another library loads when it is needed.
struct OwnLibrary {
  std::string_view user{};       // of texts
  std::string file{};            // its name
  const char* entry = nullptr;   // the function of it that is wanted
  const void* beside = nullptr;  // an address in the library or program that asks
};
// `out`: the function. Errors: unsupported (it is not there).
Status load_library(const OwnLibrary& library, void*& out);

// Loads that MPI alone.
Status load_mpi(const MpiModule& module);

// `out`: the module's function. Errors: unsupported (no MPI, no module for it), bad_configuration
// (the setting names no MPI).
Status load_module(const MpiModule& module, void*& out);

// After the MPI was initialized: bad_configuration for a process that srun has started, and whose
// MPI does not understand it: it would be a job by itself.
Status check_found(const MpiModule& module, int size);

// `out`: a part that the module's function makes, with MPI initialized; its size() is the number of
// processes. Errors: those of load_module and check_found, and the function's own.
template <class Part>
Status make_by(const MpiModule& module, std::unique_ptr<Part>& out) {
  using Make = bool (*)(std::unique_ptr<Part>*, Status*);
  void* make = nullptr;
  TOMBOLO_TRY(load_module(module, make));
  Status status;
  reinterpret_cast<Make>(make)(&out, &status);
  if (status.ok()) status = check_found(module, out->size());
  return status;
}

}  // namespace tombolo::runtime
