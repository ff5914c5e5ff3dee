// SPDX-License-Identifier: Apache-2.0
// Purpose: the one function of the library libtombolo_pthread_hosts.so, which the preloaded library
// loads with transport mpi. It makes the team of the servers that a launcher has started. The
// library allocates on the runtime's own heap, as the preloaded one does: malloc() gives memory
// that all processes of the program share.
// Thread safety: the function is called once, before anything else of this library.
#include <cstddef>
#include <memory>
#include <new>

#include "pthreads/hosts/launched_servers.h"

namespace {

constinit tombolo::dsm::TeamRuntime* the_runtime = nullptr;

void* get(std::size_t bytes, std::size_t alignment) {
  void* const block = the_runtime->allocate(bytes, alignment);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

}  // namespace

void* operator new(std::size_t bytes) { return get(bytes, __STDCPP_DEFAULT_NEW_ALIGNMENT__); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return get(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* block) noexcept { the_runtime->free(block); }
void operator delete(void* block, std::size_t) noexcept { the_runtime->free(block); }
void operator delete(void* block, std::align_val_t) noexcept { the_runtime->free(block); }
void operator delete(void* block, std::size_t, std::align_val_t) noexcept {
  the_runtime->free(block);
}

extern "C" __attribute__((visibility("default"))) void tombolo_pthread_make_launched_team(
    tombolo::dsm::OneSided* job, tombolo::dsm::TeamRuntime* runtime,
    std::unique_ptr<tombolo::dsm::LaunchedTeam>* out) {
  the_runtime = runtime;
  *out = std::make_unique<tombolo::dsm::LaunchedServers>(*job, *runtime);
}
