// SPDX-License-Identifier: Apache-2.0
// Purpose: the system calls that go through the C library's syscall(), as those of raw_calls.h do,
// answered by the test: watched, refused, shortened, or with something done in their middle. This
// program's own syscall() stands in the place of the library's.
//
//   Answering answering([&](const Call& call) {
//     return call.number == SYS_pwrite64 ? refuse(ENOSPC) : pass(call);
//   });
//
// To be included by one file of a program.
// Thread safety: an answer is that of one thread's calls.
#pragma once

#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <utility>

namespace tombolo::host::testing {

struct Call {
  long number;
  std::array<long, 6> arguments;
  // One that is an int, whose upper half is anything.
  int int_at(std::size_t i) const { return static_cast<int>(arguments[i]); }
};

// As syscall() returns.
inline long refuse(int error) {
  errno = error;
  return -1;
}

inline long pass(const Call& call) {
  static const auto kernel = reinterpret_cast<long (*)(long, ...)>(dlsym(RTLD_NEXT, "syscall"));
  const auto& a = call.arguments;
  return kernel(call.number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

struct Answer {
  long (*function)(void* object, const Call& call) = nullptr;
  void* object = nullptr;
};
inline thread_local constinit Answer the_answer;

// From here to its end `f` answers this thread's calls. Those of `f` itself go to the kernel.
template <class F>
class Answering {
 public:
  explicit Answering(F f) : f_(std::move(f)) {
    pass({SYS_getpid, {}});  // the first one looks a name up, which may allocate
    the_answer = {[](void* object, const Call& call) { return (*static_cast<F*>(object))(call); },
                  &f_};
  }
  ~Answering() { the_answer = {}; }
  Answering(const Answering&) = delete;
  Answering& operator=(const Answering&) = delete;

 private:
  F f_;
};

}  // namespace tombolo::host::testing

// Takes six arguments, as the library's does, however few there are.
extern "C" [[gnu::used, gnu::no_sanitize_address]] inline long syscall(long number, ...) noexcept {
  using namespace tombolo::host::testing;
  Call call{number, {}};
  va_list arguments;
  va_start(arguments, number);
  for (long& each : call.arguments) each = va_arg(arguments, long);
  va_end(arguments);
  const Answer answer = std::exchange(the_answer, {});
  if (answer.function == nullptr) return pass(call);
  const long result = answer.function(answer.object, call);
  the_answer = answer;
  return result;
}
