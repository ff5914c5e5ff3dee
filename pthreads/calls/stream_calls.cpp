// SPDX-License-Identifier: Apache-2.0
// Purpose: the calls on streams. Most are made from a table, in which a line names the call, by a
// rule: a call on a stream holds its lock, and a call that makes a stream tells of it. Those whose
// names end in _unlocked are left to the C library: their callers hold a lock of their own, or
// flockfile().

// The C library's headers have bodies of some of these calls where a compiler optimizes.
#define __NO_INLINE__ 1

#include <cstdarg>
#include <cstdio>
#include <cwchar>
#include <tuple>

#include "pthreads/calls/streams.h"

// No header declares these.
extern "C" {
int _IO_getc(FILE*);
int _IO_putc(int, FILE*);
char* __fgets_chk(char*, std::size_t, int, FILE*);
std::size_t __fread_chk(void*, std::size_t, std::size_t, std::size_t, FILE*);
int __fprintf_chk(FILE*, int, const char*, ...);
int __vfprintf_chk(FILE*, int, const char*, va_list);
int __isoc99_fscanf(FILE*, const char*, ...);
int __isoc99_vfscanf(FILE*, const char*, va_list);
int __isoc99_fwscanf(FILE*, const wchar_t*, ...);
int __isoc99_vfwscanf(FILE*, const wchar_t*, va_list);
// The headers give these names to the two calls of C99 above. Programs before C99 and C++11 call
// these, in which %a has another meaning.
int old_vfscanf(FILE*, const char*, va_list) __asm__("vfscanf");
int old_fscanf(FILE*, const char*, ...) __asm__("fscanf");
}
#undef feof
#undef ferror
#undef getc
#undef getwc
#undef putc
#undef putwc

namespace tombolo::dsm {
namespace {

// ---- The rules, by which the calls of the table are made ----------------------------------------

// The type of a call of the C library.
template <bool never_throws, class Returned, class... Arguments>
struct Signature {
  using Result = Returned;
  template <std::size_t n>
  using Argument = std::tuple_element_t<n, std::tuple<Arguments...>>;
  static constexpr bool is_noexcept = never_throws;
};
// The call's type is deduced here. A type that an argument of a template names would lose its
// attributes, and compilers warn of that.
template <bool never_throws, class Returned, class... Arguments>
Signature<never_throws, Returned, Arguments...> signature_of(
    Returned (*)(Arguments...) noexcept(never_throws));

template <class... Arguments>
FILE* stream_among(Arguments... arguments) {
  return std::get<FILE*>(std::tuple(arguments...));
}

// The call is made on a stream, whose lock it holds: STC1.
struct Holds {
  template <class Call, class... Arguments>
  static auto make(Call* call, Arguments... arguments) {
    const Held held(stream_among(arguments...));
    return call(arguments...);
  }
};

struct Opens {
  template <class Call, class... Arguments>
  static FILE* make(Call* call, Arguments... arguments) {
    return opened(call(arguments...));
  }
};

struct OpensAgain {
  template <class Call, class... Arguments>
  static FILE* make(Call* call, Arguments... arguments) {
    const Held held(stream_among(arguments...));
    return opened_again(call(arguments...));
  }
};

// The call holds no lock: the stream and its lock are gone afterwards.
struct Closes {
  template <class Call>
  static int make(Call* call, FILE* stream) {
    closes(stream);
    return call(stream);
  }
};

}  // namespace
}  // namespace tombolo::dsm

using tombolo::dsm::Closes;
using tombolo::dsm::Holds;
using tombolo::dsm::Opens;
using tombolo::dsm::OpensAgain;

// ---- Calls of other rules -----------------------------------------------------------------------

// A null pointer stands for all streams here.
TOMBOLO_PTHREAD_CALL int fflush(FILE* stream) {
  if (stream == nullptr) tombolo::dsm::flush_streams();
  return Holds::make(TOMBOLO_HOST(fflush), stream);
}

// The lock that these take stays until the other one is called.
TOMBOLO_PTHREAD_CALL void flockfile(FILE* stream) noexcept {
  tombolo::dsm::Pthreads* const own = tombolo::dsm::pthreads_for(stream);
  if (own == nullptr) return TOMBOLO_HOST(flockfile)(stream);
  own->mutexes.lock(stream, tombolo::dsm::MutexKind::recursive);
}
TOMBOLO_PTHREAD_CALL void funlockfile(FILE* stream) noexcept {
  tombolo::dsm::Pthreads* const own = tombolo::dsm::pthreads_for(stream);
  if (own == nullptr) return TOMBOLO_HOST(funlockfile)(stream);
  own->mutexes.unlock(stream, tombolo::dsm::MutexKind::recursive);
}

// The symbol has another name than the function.
TOMBOLO_PTHREAD_CALL int old_vfscanf(FILE* stream, const char* format, va_list arguments) {
  auto* const next = reinterpret_cast<decltype(&old_vfscanf)>(TOMBOLO_NEXT("vfscanf"));
  return Holds::make(next, stream, format, arguments);
}

// The C library's checks of the format are not made.
TOMBOLO_PTHREAD_CALL int __vfprintf_chk(FILE* stream, int, const char* format, va_list arguments) {
  return vfprintf(stream, format, arguments);
}

// No function passes on the arguments of another one whose number varies: these call the one that
// takes them as a list.
#define TOMBOLO_VARIADIC_CALL(name, with_list, ...)          \
  TOMBOLO_PTHREAD_CALL int name(__VA_ARGS__, ...) {          \
    va_list arguments;                                       \
    va_start(arguments, format);                             \
    const int result = with_list(stream, format, arguments); \
    va_end(arguments);                                       \
    return result;                                           \
  }
TOMBOLO_VARIADIC_CALL(fprintf, vfprintf, FILE* stream, const char* format)
TOMBOLO_VARIADIC_CALL(__fprintf_chk, vfprintf, FILE* stream, int, const char* format)
TOMBOLO_VARIADIC_CALL(old_fscanf, old_vfscanf, FILE* stream, const char* format)
TOMBOLO_VARIADIC_CALL(__isoc99_fscanf, __isoc99_vfscanf, FILE* stream, const char* format)
TOMBOLO_VARIADIC_CALL(fwprintf, vfwprintf, FILE* stream, const wchar_t* format)
TOMBOLO_VARIADIC_CALL(__isoc99_fwscanf, __isoc99_vfwscanf, FILE* stream, const wchar_t* format)

// ---- The table ----------------------------------------------------------------------------------

// A line of the table names the rule and the call, behind the number of its arguments: the
// preprocessor counts none.
#define TOMBOLO_SIGNATURE(name) decltype(::tombolo::dsm::signature_of(&::name))
#define TOMBOLO_ARGUMENT(name, n) TOMBOLO_SIGNATURE(name)::Argument<n>
#define TOMBOLO_CALL(rule, name, parameters, ...)                                \
  TOMBOLO_PTHREAD_CALL TOMBOLO_SIGNATURE(name)::Result name parameters noexcept( \
      TOMBOLO_SIGNATURE(name)::is_noexcept) {                                    \
    return rule::make(TOMBOLO_HOST(name) __VA_OPT__(, ) __VA_ARGS__);            \
  }
#define TOMBOLO_CALL_0(rule, name) TOMBOLO_CALL(rule, name, ())
#define TOMBOLO_CALL_1(rule, name) TOMBOLO_CALL(rule, name, (TOMBOLO_ARGUMENT(name, 0) a), a)
#define TOMBOLO_CALL_2(rule, name) \
  TOMBOLO_CALL(rule, name, (TOMBOLO_ARGUMENT(name, 0) a, TOMBOLO_ARGUMENT(name, 1) b), a, b)
#define TOMBOLO_CALL_3(rule, name)                                                                \
  TOMBOLO_CALL(                                                                                   \
      rule, name,                                                                                 \
      (TOMBOLO_ARGUMENT(name, 0) a, TOMBOLO_ARGUMENT(name, 1) b, TOMBOLO_ARGUMENT(name, 2) c), a, \
      b, c)
#define TOMBOLO_CALL_4(rule, name)                                         \
  TOMBOLO_CALL(rule, name,                                                 \
               (TOMBOLO_ARGUMENT(name, 0) a, TOMBOLO_ARGUMENT(name, 1) b,  \
                TOMBOLO_ARGUMENT(name, 2) c, TOMBOLO_ARGUMENT(name, 3) d), \
               a, b, c, d)
#define TOMBOLO_CALL_5(rule, name)                                                            \
  TOMBOLO_CALL(                                                                               \
      rule, name,                                                                             \
      (TOMBOLO_ARGUMENT(name, 0) a, TOMBOLO_ARGUMENT(name, 1) b, TOMBOLO_ARGUMENT(name, 2) c, \
       TOMBOLO_ARGUMENT(name, 3) d, TOMBOLO_ARGUMENT(name, 4) e),                             \
      a, b, c, d, e)

// clang-format off
TOMBOLO_CALL_2(Opens, fopen) TOMBOLO_CALL_2(Opens, fopen64) TOMBOLO_CALL_2(Opens, fdopen)
TOMBOLO_CALL_0(Opens, tmpfile) TOMBOLO_CALL_0(Opens, tmpfile64)
TOMBOLO_CALL_3(Opens, fmemopen) TOMBOLO_CALL_2(Opens, open_memstream)
TOMBOLO_CALL_3(Opens, fopencookie)
TOMBOLO_CALL_3(OpensAgain, freopen) TOMBOLO_CALL_3(OpensAgain, freopen64)
TOMBOLO_CALL_1(Closes, fclose) TOMBOLO_CALL_1(Closes, pclose)
// Bytes, characters and lines.
TOMBOLO_CALL_4(Holds, fwrite) TOMBOLO_CALL_4(Holds, fread) TOMBOLO_CALL_5(Holds, __fread_chk)
TOMBOLO_CALL_2(Holds, fputc) TOMBOLO_CALL_2(Holds, putc)
TOMBOLO_CALL_2(Holds, _IO_putc) TOMBOLO_CALL_2(Holds, putw)
TOMBOLO_CALL_1(Holds, fgetc) TOMBOLO_CALL_1(Holds, getc)
TOMBOLO_CALL_1(Holds, _IO_getc) TOMBOLO_CALL_1(Holds, getw)
TOMBOLO_CALL_2(Holds, ungetc)
TOMBOLO_CALL_2(Holds, fputs) TOMBOLO_CALL_3(Holds, fgets) TOMBOLO_CALL_4(Holds, __fgets_chk)
TOMBOLO_CALL_4(Holds, getdelim) TOMBOLO_CALL_4(Holds, __getdelim) TOMBOLO_CALL_3(Holds, getline)
// Wide characters.
TOMBOLO_CALL_2(Holds, fputwc) TOMBOLO_CALL_2(Holds, putwc)
TOMBOLO_CALL_1(Holds, fgetwc) TOMBOLO_CALL_1(Holds, getwc)
TOMBOLO_CALL_2(Holds, ungetwc) TOMBOLO_CALL_2(Holds, fputws)
TOMBOLO_CALL_3(Holds, fgetws) TOMBOLO_CALL_2(Holds, fwide)
// Formats.
TOMBOLO_CALL_3(Holds, vfprintf) TOMBOLO_CALL_3(Holds, vfwprintf)
TOMBOLO_CALL_3(Holds, __isoc99_vfscanf) TOMBOLO_CALL_3(Holds, __isoc99_vfwscanf)
// Places.
TOMBOLO_CALL_3(Holds, fseek) TOMBOLO_CALL_3(Holds, fseeko)
TOMBOLO_CALL_3(Holds, fseeko64) TOMBOLO_CALL_1(Holds, rewind)
TOMBOLO_CALL_1(Holds, ftell) TOMBOLO_CALL_1(Holds, ftello) TOMBOLO_CALL_1(Holds, ftello64)
TOMBOLO_CALL_2(Holds, fgetpos) TOMBOLO_CALL_2(Holds, fgetpos64)
TOMBOLO_CALL_2(Holds, fsetpos) TOMBOLO_CALL_2(Holds, fsetpos64)
// Buffers and states.
TOMBOLO_CALL_4(Holds, setvbuf) TOMBOLO_CALL_2(Holds, setbuf)
TOMBOLO_CALL_3(Holds, setbuffer) TOMBOLO_CALL_1(Holds, setlinebuf)
TOMBOLO_CALL_1(Holds, feof) TOMBOLO_CALL_1(Holds, ferror) TOMBOLO_CALL_1(Holds, clearerr)
