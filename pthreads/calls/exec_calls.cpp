// SPDX-License-Identifier: Apache-2.0
// Purpose: the calls by which another program takes this one's place. Under Pthreads that ends all
// threads, and so it does here: the other processes end first, and then the first one, whose number
// is the program's, makes the call.
//
// Invariants: EXC1 a call that fails for its file returns, and all threads are there: the file is
//                  looked at before. One that fails for another reason comes too late, and ends the
//                  program after a message.
//             EXC2 in a child that vfork() has made the call is the C library's.
// Limits: the first thread's, on one host. Others are refused by name.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "pthreads/calls/calls.h"

using tombolo::dsm::refuse;
using tombolo::dsm::ThreadedProgram;

namespace {

// In a directory, by a path or, with AT_EMPTY_PATH, itself.
struct Place {
  int directory = AT_FDCWD;
  const char* path = "";
  int flags = 0;
};

// 0, or the error of exec().
int error_of(const Place& place) {
  struct stat shape {};
  if (fstatat(place.directory, place.path, &shape, place.flags) != 0) return errno;
  if (!S_ISREG(shape.st_mode)) return EACCES;
  // AT_EMPTY_PATH is not for faccessat() of older kernels.
  const bool itself = *place.path == 0;
  const std::string path =
      itself ? fmt::format("/proc/self/fd/{}", place.directory) : std::string(place.path);
  const int directory = itself ? AT_FDCWD : place.directory;
  return faccessat(directory, path.c_str(), X_OK, AT_EACCESS) == 0 ? 0 : errno;
}

// As execvp() looks for it.
int error_of(const char* file) {
  const std::string_view name = file;
  if (name.empty()) return ENOENT;
  if (name.find('/') != std::string_view::npos) return error_of(Place{.path = file});
  const char* const given = std::getenv("PATH");
  std::string_view folders = given != nullptr ? given : "/bin:/usr/bin";
  int error = ENOENT;
  for (bool more = true; more;) {
    const std::size_t end = folders.find(':');
    more = end != std::string_view::npos;
    const std::string_view folder = folders.substr(0, end);
    const std::string path =
        folder.empty() ? std::string(name) : fmt::format("{}/{}", folder, name);
    const int found = error_of(Place{.path = path.c_str()});
    if (found == 0) return 0;
    if (found == EACCES) error = EACCES;
    folders.remove_prefix(more ? end + 1 : folders.size());
  }
  return error;
}

// `make` is the C library's call.
template <class Looked, class Make>
int become(const char* call, Looked&& looked, Make&& make) {
  ThreadedProgram* const program = ThreadedProgram::here();
  if (program == nullptr || program->is_in_a_child()) return make();
  if (!program->can_become_another()) {
    errno = refuse(call,
                   "on several hosts, and in another thread than the first, this process is not "
                   "the one that would become the other program; posix_spawn and system are there");
    return -1;
  }
  if (const int error = looked(); error != 0) {
    errno = error;
    return -1;
  }
  if (!program->has_processes()) return make();
  program->end_others();
  make();
  const std::string line =
      fmt::format("tombolo: {}: {}; the program's other threads have ended for it\n", call,
                  std::strerror(errno));
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
  _exit(EXIT_FAILURE);
}

// Of a call that lists its arguments, the first of which is named apart: as many, with the null.
std::size_t count_of(const char* first, va_list list) {
  std::size_t count = 1;
  for (const char* text = first; text != nullptr; text = va_arg(list, char*)) ++count;
  return count;
}

void take(char** to, const char* first, va_list& list) {
  *to = const_cast<char*>(first);
  while (*to != nullptr) *++to = va_arg(list, char*);
}

}  // namespace

// ---- With arrays --------------------------------------------------------------------------------

TOMBOLO_PTHREAD_CALL int execve(const char* path, char* const* arguments,
                                char* const* environment) noexcept {
  return become(
      "execve", [=] { return error_of(Place{.path = path}); },
      [=] { return TOMBOLO_HOST(execve)(path, arguments, environment); });
}

TOMBOLO_PTHREAD_CALL int execv(const char* path, char* const* arguments) noexcept {
  return execve(path, arguments, environ);
}

TOMBOLO_PTHREAD_CALL int execvpe(const char* file, char* const* arguments,
                                 char* const* environment) noexcept {
  return become(
      "execvpe", [=] { return error_of(file); },
      [=] { return TOMBOLO_HOST(execvpe)(file, arguments, environment); });
}

TOMBOLO_PTHREAD_CALL int execvp(const char* file, char* const* arguments) noexcept {
  return execvpe(file, arguments, environ);
}

TOMBOLO_PTHREAD_CALL int fexecve(int file, char* const* arguments,
                                 char* const* environment) noexcept {
  return become(
      "fexecve", [=] { return error_of(Place{.directory = file, .flags = AT_EMPTY_PATH}); },
      [=] { return TOMBOLO_HOST(fexecve)(file, arguments, environment); });
}

TOMBOLO_PTHREAD_CALL int execveat(int directory, const char* path, char* const* arguments,
                                  char* const* environment, int flags) noexcept {
  return become(
      "execveat",
      [=] { return error_of(Place{.directory = directory, .path = path, .flags = flags}); },
      [=] { return TOMBOLO_HOST(execveat)(directory, path, arguments, environment, flags); });
}

// ---- With lists, which are on the stack: a child of vfork() has no heap -------------------------

TOMBOLO_PTHREAD_CALL int execl(const char* path, const char* first, ...) noexcept {
  va_list list;
  va_start(list, first);
  auto* const arguments =
      static_cast<char**>(__builtin_alloca(count_of(first, list) * sizeof(char*)));
  va_end(list);
  va_start(list, first);
  take(arguments, first, list);
  va_end(list);
  return execve(path, arguments, environ);
}

TOMBOLO_PTHREAD_CALL int execle(const char* path, const char* first, ...) noexcept {
  va_list list;
  va_start(list, first);
  auto* const arguments =
      static_cast<char**>(__builtin_alloca(count_of(first, list) * sizeof(char*)));
  va_end(list);
  va_start(list, first);
  take(arguments, first, list);
  char* const* const environment = va_arg(list, char* const*);
  va_end(list);
  return execve(path, arguments, environment);
}

TOMBOLO_PTHREAD_CALL int execlp(const char* file, const char* first, ...) noexcept {
  va_list list;
  va_start(list, first);
  auto* const arguments =
      static_cast<char**>(__builtin_alloca(count_of(first, list) * sizeof(char*)));
  va_end(list);
  va_start(list, first);
  take(arguments, first, list);
  va_end(list);
  return execvpe(file, arguments, environ);
}
