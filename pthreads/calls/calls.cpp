// SPDX-License-Identifier: Apache-2.0
#include "pthreads/calls/calls.h"

#include <cerrno>
#include <cstdio>
#include <memory>
#include <set>
#include <string>

#include "pthreads/program/program_layout.h"

namespace tombolo::dsm {
namespace {

constinit Pthreads* of_this_process = nullptr;

}  // namespace

Pthreads::Pthreads(ThreadedProgram& made)
    : program(made),
      mutexes(made.memory(), made.objects()),
      robust_mutexes(made.memory(), made.objects(), mutexes),
      conditions(made.memory(), made.objects(), mutexes),
      semaphores(made.memory(), made.objects()),
      readers_writer_locks(made.memory(), made.objects()),
      barriers(made.memory(), made.objects()),
      once(made.memory(), made.objects()),
      keys(made.memory(), made.layout().keys()),
      waited(made.observer()) {}

Pthreads* pthreads() {
  ThreadedProgram* const program = ThreadedProgram::here();
  return program == nullptr ? nullptr : &pthreads_of(*program);
}

Pthreads& pthreads_of(ThreadedProgram& program) {
  static constinit ProgramMemory* known = nullptr;
  if (known != &program.memory()) {
    // The objects that a fork has left here are the first process's.
    known = &program.memory();
    of_this_process = new Pthreads(program);
  }
  return *of_this_process;
}

int refuse(const char* call, const char* why) {
  static std::set<std::string> told;
  if (told.insert(call).second)
    std::fprintf(stderr, "tombolo: %s is refused in a program whose threads run in processes: %s\n",
                 call, why);
  return ENOTSUP;
}

void end_if_cancelled() {
  Pthreads* const own = pthreads();
  if (own == nullptr || !own->cancel_enabled || own->program.is_first()) return;
  if (own->program.threads().cancel_asked(own->program.self()))
    TOMBOLO_HOST(pthread_exit)(PTHREAD_CANCELED);
}

}  // namespace tombolo::dsm
