// SPDX-License-Identifier: Apache-2.0
// Purpose: implements host/mpi/symbols.h with the dynamic loader.
// Invariants: SY1 (see there), by comparing the object a symbol came from with our own; no library
// is ever loaded, only those already in the process are asked.
// Thread safety: the loader's own.
#include "host/mpi/symbols.h"

#include <dlfcn.h>
#include <link.h>

#include <string>
#include <string_view>
#include <vector>

namespace tombolo::mpi {
namespace {

const void* object_of(const void* address) {
  Dl_info info{};
  return dladdr(address, &info) != 0 ? info.dli_fbase : nullptr;
}

void* not_ours(void* symbol) {
  static const void* const us = object_of(reinterpret_cast<const void*>(&find_symbol));
  return symbol != nullptr && object_of(symbol) != us ? symbol : nullptr;
}

bool is_mpi_library(std::string_view path) {
  const std::string_view file = path.substr(path.rfind('/') + 1);
#if defined(TOMBOLO_MPI_ABI)
  return file.starts_with("libmpi_abi.");
#else
  return file.starts_with("libmpi.") || file.starts_with("libmpich.") ||
         file.starts_with("libmpi_") || file.starts_with("libpmpi");
#endif
}

int collect(dl_phdr_info* info, std::size_t, void* list) {
  if (is_mpi_library(info->dlpi_name))
    static_cast<std::vector<std::string>*>(list)->emplace_back(info->dlpi_name);
  return 0;
}

void* find_in_private_libraries(const char* name) {
  std::vector<std::string> paths;
  dl_iterate_phdr(&collect, &paths);
  for (const std::string& path : paths) {
    void* library = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) continue;
    void* symbol = not_ours(dlsym(library, name));
    dlclose(library);
    if (symbol != nullptr) return symbol;
  }
  return nullptr;
}

}  // namespace

void* find_symbol(const char* name) {
  // The global scope first: a program may hold its own copy of an object of the library (a copy
  // relocation), and then all libraries use that copy.
  if (void* symbol = not_ours(dlsym(RTLD_DEFAULT, name)); symbol != nullptr) return symbol;
  if (void* symbol = not_ours(dlsym(RTLD_NEXT, name)); symbol != nullptr) return symbol;
  return find_in_private_libraries(name);
}

}  // namespace tombolo::mpi
