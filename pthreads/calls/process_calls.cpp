// SPDX-License-Identifier: Apache-2.0
// Purpose: calls that are about the whole process: under Pthreads the program is one.
#include <dlfcn.h>
#include <linux/futex.h>
#include <pty.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "pthreads/calls/streams.h"

using tombolo::dsm::Pthreads;
using tombolo::dsm::pthreads;
using tombolo::dsm::refuse;
using tombolo::dsm::ThreadedProgram;

TOMBOLO_PTHREAD_CALL void exit(int status) noexcept {
  if (ThreadedProgram* const program = ThreadedProgram::here(); program != nullptr)
    program->exit(status);
  TOMBOLO_HOST(exit)(status);
  __builtin_unreachable();
}

// ---- Other programs: the new process reads these of this one's memory before it runs one --------

namespace {

// Of the C library, with the texts that they name.
void read_actions(const posix_spawn_file_actions_t* actions) {
  constexpr std::size_t words_of_one = 4;
  if (actions == nullptr || actions->__actions == nullptr) return;
  const auto* const words = reinterpret_cast<char* const*>(actions->__actions);
  const ThreadedProgram& program = *ThreadedProgram::here();
  for (std::size_t i = 0; i < static_cast<std::size_t>(actions->__used) * words_of_one; ++i)
    if (char* const word = words[i]; program.owns(word)) tombolo::dsm::read_text(word);
}

// Another program gets descriptors of its parent. 0, or an error's number after one message.
int refused_here(const char* call) {
  ThreadedProgram* const program = ThreadedProgram::here();
  if (program == nullptr || program->starts_programs()) return 0;
  return refuse(call,
                "in a thread on another host the new program would not have the program's "
                "descriptors; the first thread can start it");
}

void read_all(const char* file, const posix_spawn_file_actions_t* actions,
              const posix_spawnattr_t* attributes, char* const* arguments,
              char* const* environment) {
  if (ThreadedProgram::here() == nullptr) return;
  tombolo::dsm::read_text(file);
  tombolo::dsm::read_texts(arguments);
  tombolo::dsm::read_texts(environment);
  read_actions(actions);
  const auto* const bytes = reinterpret_cast<const volatile char*>(attributes);
  for (std::size_t i = 0; bytes != nullptr && i < sizeof *attributes; ++i)
    static_cast<void>(bytes[i]);
}

}  // namespace

TOMBOLO_PTHREAD_CALL int posix_spawn(pid_t* process, const char* file,
                                     const posix_spawn_file_actions_t* actions,
                                     const posix_spawnattr_t* attributes, char* const* arguments,
                                     char* const* environment) {
  if (const int error = refused_here("posix_spawn"); error != 0) return error;
  read_all(file, actions, attributes, arguments, environment);
  return TOMBOLO_HOST(posix_spawn)(process, file, actions, attributes, arguments, environment);
}
TOMBOLO_PTHREAD_CALL int posix_spawnp(pid_t* process, const char* file,
                                      const posix_spawn_file_actions_t* actions,
                                      const posix_spawnattr_t* attributes, char* const* arguments,
                                      char* const* environment) {
  if (const int error = refused_here("posix_spawnp"); error != 0) return error;
  read_all(file, actions, attributes, arguments, environment);
  return TOMBOLO_HOST(posix_spawnp)(process, file, actions, attributes, arguments, environment);
}
TOMBOLO_PTHREAD_CALL int system(const char* command) {
  if (const int error = refused_here("system"); error != 0) {
    errno = error;
    return -1;
  }
  read_all(command, nullptr, nullptr, nullptr, environ);
  return TOMBOLO_HOST(system)(command);
}
TOMBOLO_PTHREAD_CALL FILE* popen(const char* command, const char* mode) {
  if (const int error = refused_here("popen"); error != 0) {
    errno = error;
    return nullptr;
  }
  read_all(command, nullptr, nullptr, nullptr, environ);
  return tombolo::dsm::opened(TOMBOLO_HOST(popen)(command, mode));
}

TOMBOLO_PTHREAD_CALL pid_t getpid() noexcept {
  ThreadedProgram* const program = ThreadedProgram::here();
  return program != nullptr ? program->process() : TOMBOLO_HOST(getpid)();
}

// The child would share the program's memory, not get a copy.
TOMBOLO_PTHREAD_CALL pid_t fork() noexcept {
  if (ThreadedProgram::here() == nullptr) return TOMBOLO_HOST(fork)();
  errno = refuse("fork",
                 "the child would change its parent's memory; posix_spawn, system and popen "
                 "are there");
  return -1;
}

TOMBOLO_PTHREAD_CALL pid_t _Fork() noexcept {
  return ThreadedProgram::here() == nullptr ? TOMBOLO_HOST(_Fork)() : fork();
}
TOMBOLO_PTHREAD_CALL int daemon(int stays, int keeps) noexcept {
  return ThreadedProgram::here() == nullptr ? TOMBOLO_HOST(daemon)(stays, keeps) : fork();
}
TOMBOLO_PTHREAD_CALL int forkpty(int* file, char* name, const termios* modes,
                                 const winsize* size) noexcept {
  return ThreadedProgram::here() == nullptr ? TOMBOLO_HOST(forkpty)(file, name, modes, size)
                                            : fork();
}

namespace {

// The text of the program's next dlerror().
constinit const char* of_dlopen = nullptr;

}  // namespace

TOMBOLO_PTHREAD_CALL void* dlopen(const char* file, int flags) noexcept {
  Pthreads* const own = pthreads();
  if (own != nullptr && file != nullptr && own->program.has_processes()) {
    const char* const why =
        "after the first pthread_create, and between hosts, a library would be loaded in one "
        "process only";
    errno = refuse("dlopen", why);
    of_dlopen = why;
    return nullptr;
  }
  of_dlopen = nullptr;
  return TOMBOLO_HOST(dlopen)(file, flags);
}

TOMBOLO_PTHREAD_CALL char* dlerror() noexcept {
  const char* const own = std::exchange(of_dlopen, nullptr);
  return own != nullptr ? const_cast<char*>(own) : TOMBOLO_HOST(dlerror)();
}

// Code that sleeps on a word by the kernel's call, as the C++ library does for atomic variables,
// says that all threads are of one process.
TOMBOLO_PTHREAD_CALL long syscall(long number, ...) noexcept {
  va_list list;
  va_start(list, number);
  const long a = va_arg(list, long);
  long b = va_arg(list, long);
  const long c = va_arg(list, long);
  const long d = va_arg(list, long);
  const long e = va_arg(list, long);
  const long f = va_arg(list, long);
  va_end(list);
  ThreadedProgram* const program = ThreadedProgram::here();
  if (number == SYS_futex && program != nullptr && program->owns(reinterpret_cast<const void*>(a)))
    b &= ~long{FUTEX_PRIVATE_FLAG};
  return TOMBOLO_HOST(syscall)(number, a, b, c, d, e, f);
}
