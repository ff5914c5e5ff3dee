// SPDX-License-Identifier: Apache-2.0
// Purpose: stands in front of the C library's function that calls main(): the program's world is
// made after its libraries and before its own constructors, and main() runs on a stack in it.
#include <cstdio>
#include <cstdlib>

#include "dsm/pthread/calls.h"
#include "dsm/world/inherited_memory.h"
#include "dsm/world/must.h"

extern "C" int __libc_start_main(int (*main)(int, char**, char**), int argc, char** argv,
                                 void (*init)(), void (*fini)(), void (*loader_fini)(),
                                 void* stack_end);

namespace tombolo::dsm {
namespace {

void at_thread_end() {
  Pthreads& own = *pthreads();
  own.keys.destroy_values();
  own.cancel_enabled = true;
  flush_output();
}

void start_world() {
  const World::HostThreads host{.create = TOMBOLO_HOST(pthread_create),
                                .join = TOMBOLO_HOST(pthread_join),
                                .create_key = TOMBOLO_HOST(pthread_key_create),
                                .set_specific = TOMBOLO_HOST(pthread_setspecific),
                                .exit = TOMBOLO_HOST(exit),
                                .flush = &flush_streams};
  const Status started = World::start(host, &at_thread_end, std::make_unique<InheritedMemories>());
  if (!started.ok()) {
    std::fprintf(stderr, "tombolo: the program does not start: %s\n", started.message().c_str());
    std::_Exit(EXIT_FAILURE);
  }
  cancellation_point = &end_if_cancelled;
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
