// SPDX-License-Identifier: Apache-2.0
// Purpose: stands in front of the C library's function that calls main(): the program's world is
// made after its libraries and before its own constructors, and main() runs on a stack in it.
#include <dlfcn.h>
#include <sys/single_threaded.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "dsm/pthread/calls.h"
#include "dsm/servers/settings.h"
#include "dsm/threads/instrumented_code.h"
#include "dsm/world/inherited_memory.h"
#include "dsm/world/must.h"
#include "dsm/world/paged_memories.h"
#include "dsm/world/world_layout.h"
#include "host/memory/memory_room.h"
#include "runtime/options/dsm_options.h"
#include "runtime/options/options.h"

extern "C" int __libc_start_main(int (*main)(int, char**, char**), int argc, char** argv,
                                 void (*init)(), void (*fini)(), void (*loader_fini)(),
                                 void* stack_end);

// The runtime's own: the program's may lie in its memory, whose pages the runtime closes.
char __libc_single_threaded = 0;

namespace tombolo::dsm {
namespace {

void at_thread_end() {
  Pthreads& own = *pthreads();
  own.keys.destroy_values();
  own.robust_mutexes.owner_ends();
  own.cancel_enabled = true;
  flush_output();
}

// A page cannot be had: by a handler of a signal.
void give_up(const Status& why) {
  const std::string line = "tombolo: " + why.message() + "\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
  _exit(EXIT_FAILURE);
}

Status choose_kind(std::unique_ptr<ProgramMemories>& out) {
  Settings settings;
  settings.cache_bytes = 0;
  TOMBOLO_TRY(read_settings(settings));
  runtime::Options options = runtime::read_environment();
  WantedRecords records{.statistics = options.statistics,
                        .trace = text_of(runtime::dsm_trace_option)};
  if (settings.transport == TransportKind::map) {
    if (!options.complaints.empty()) return Status::bad_configuration(options.complaints.front());
    out = std::make_unique<InheritedMemories>(std::move(records));
    return {};
  }
  if (settings.transport == TransportKind::mpi)
    return Status::unsupported(
        "transport mpi is not there for programs of Pthreads: the processes of their threads are "
        "made by the first one, on its own host; use map or window");
  if (settings.protocol == ProtocolKind::sequential)
    return Status::unsupported(
        "protocol sequential is not there for programs of Pthreads with transport window: other "
        "threads would take pages away that a system call of the program is using; use regional, "
        "or transport map, where all stores are seen at once");
  // All of the processes' caches have memory.
  constexpr std::uint64_t most_cached = std::uint64_t{256} << 20;
  if (settings.cache_bytes == 0)
    settings.cache_bytes = std::min(most_cached, host::memory_room().bytes / 64);
  out = std::make_unique<PagedMemories>(PagedMemories::Settings{.options = std::move(options),
                                                                .records = std::move(records),
                                                                .cache_bytes = settings.cache_bytes,
                                                                .give_up = &give_up});
  return {};
}

// Null for memory that all processes map.
ProgramMemory* cached_memory_of(const void* address) {
  World* const world = World::here();
  const bool caches = world != nullptr && world->layout().has_pages && world->owns(address);
  return caches ? &world->memory() : nullptr;
}

// Its parts that were compiled with store instrumentation.
void serve_program() {
  const WorldLayout& layout = World::here()->layout();
  serve_instrumented_code({.memory_of = &cached_memory_of,
                           .first_lock = layout.atomics(),
                           .locks = WorldLayout::atomic_locks,
                           .check = &must});
  spans_have_changed = &tell_instrumented_code;
}

void start_world() {
  const World::HostThreads host{
      .create = TOMBOLO_HOST(pthread_create),
      .join = TOMBOLO_HOST(pthread_join),
      .create_key = TOMBOLO_HOST(pthread_key_create),
      .set_specific = TOMBOLO_HOST(pthread_setspecific),
      .exit = TOMBOLO_HOST(exit),
      .flush = &flush_streams,
      .single_threaded = static_cast<char*>(dlsym(RTLD_DEFAULT, "__libc_single_threaded"))};
  std::unique_ptr<ProgramMemories> kind;
  Status started = choose_kind(kind);
  if (started.ok()) started = World::start(host, &at_thread_end, std::move(kind));
  if (!started.ok()) {
    std::fprintf(stderr, "tombolo: the program does not start: %s\n", started.message().c_str());
    std::_Exit(EXIT_FAILURE);
  }
  cancellation_point = &end_if_cancelled;
  serve_program();
  // Programs that it starts are no part of it.
  unsetenv("LD_PRELOAD");
}

struct Program {
  int (*main)(int, char**, char**);
  int argc;
  char** argv;
  void (*init)();
  void (*fini)();
  void (*loader_fini)();
  void* stack_end;
};

}  // namespace
}  // namespace tombolo::dsm

TOMBOLO_PTHREAD_CALL int __libc_start_main(int (*main)(int, char**, char**), int argc, char** argv,
                                           void (*init)(), void (*fini)(), void (*loader_fini)(),
                                           void* stack_end) {
  using tombolo::dsm::Program;
  tombolo::dsm::start_world();
  Program program{main, argc, argv, init, fini, loader_fini, stack_end};
  const auto call = [](void* object) {
    const Program& p = *static_cast<Program*>(object);
    TOMBOLO_HOST(__libc_start_main)
    (p.main, p.argc, p.argv, p.init, p.fini, p.loader_fini, p.stack_end);
  };
  tombolo::dsm::World::here()->run_on_first_stack(call, &program);
  std::abort();  // it does not return
}
