// SPDX-License-Identifier: Apache-2.0
// Purpose: the calls that open and close streams, and those that write and read them most.
#include <stdio_ext.h>

#include <cstdarg>
#include <cstdio>

#include "pthreads/calls/streams.h"
#include "pthreads/program/program_layout.h"

extern "C" {
void _IO_un_link(FILE*);
int __fprintf_chk(FILE*, int, const char*, ...);
int __vfprintf_chk(FILE*, int, const char*, va_list);
}

namespace tombolo::dsm {
namespace {

std::uint64_t name_of(FILE* stream) { return reinterpret_cast<std::uint64_t>(stream); }

bool change_list(ThreadedProgram& program, std::uint64_t from, std::uint64_t to) {
  ProgramMemory& memory = program.memory();
  const WordIndex first = program.layout().streams();
  for (WordIndex word = first; word < first + ProgramLayout::most_streams; ++word)
    if (memory.load(word) == from && memory.compare_exchange(word, from, to) == from) return true;
  return false;
}

}  // namespace

FILE* opened(FILE* stream) {
  Pthreads* const own = stream != nullptr ? pthreads_for(stream) : nullptr;
  if (own == nullptr) return stream;
  __fsetlocking(stream, FSETLOCKING_BYCALLER);
  if (change_list(own->program, 0, name_of(stream))) _IO_un_link(stream);
  return stream;
}

// The C library closes and opens it: it is in that list again.
FILE* opened_again(FILE* stream) {
  if (stream == nullptr || pthreads_for(stream) == nullptr) return stream;
  __fsetlocking(stream, FSETLOCKING_BYCALLER);
  _IO_un_link(stream);
  return stream;
}

void closes(FILE* stream) {
  Pthreads* const own = pthreads_for(stream);
  if (own == nullptr) return;
  change_list(own->program, name_of(stream), 0);
  own->program.objects().remove(stream);
}

// exit() waits for no thread that waits in a call on a stream, as the C library's does not.
static void flush_if_free(FILE* stream) {
  Pthreads* const own = pthreads_for(stream);
  if (own == nullptr || own->mutexes.try_lock(stream, MutexKind::recursive) != 0) return;
  std::fflush(stream);
  own->mutexes.unlock(stream, MutexKind::recursive);
}

void flush_streams() {
  ThreadedProgram* const program = ThreadedProgram::here();
  if (program == nullptr) return;
  const WordIndex first = program->layout().streams();
  for (WordIndex word = first; word < first + ProgramLayout::most_streams; ++word) {
    auto* const stream = reinterpret_cast<FILE*>(program->memory().load(word));
    if (stream == nullptr) continue;
    if (program->ends())
      flush_if_free(stream);
    else
      std::fflush(stream);
  }
}

}  // namespace tombolo::dsm

using tombolo::dsm::Held;
using tombolo::dsm::opened;
using tombolo::dsm::opened_again;

TOMBOLO_PTHREAD_CALL FILE* fopen(const char* path, const char* mode) {
  return opened(TOMBOLO_HOST(fopen)(path, mode));
}
TOMBOLO_PTHREAD_CALL FILE* fopen64(const char* path, const char* mode) {
  return opened(TOMBOLO_HOST(fopen64)(path, mode));
}
TOMBOLO_PTHREAD_CALL FILE* fdopen(int descriptor, const char* mode) noexcept {
  return opened(TOMBOLO_HOST(fdopen)(descriptor, mode));
}

TOMBOLO_PTHREAD_CALL FILE* tmpfile() { return opened(TOMBOLO_HOST(tmpfile)()); }
TOMBOLO_PTHREAD_CALL FILE* tmpfile64() { return opened(TOMBOLO_HOST(tmpfile64)()); }
TOMBOLO_PTHREAD_CALL FILE* fmemopen(void* memory, std::size_t bytes, const char* mode) noexcept {
  return opened(TOMBOLO_HOST(fmemopen)(memory, bytes, mode));
}
TOMBOLO_PTHREAD_CALL FILE* open_memstream(char** memory, std::size_t* bytes) noexcept {
  return opened(TOMBOLO_HOST(open_memstream)(memory, bytes));
}
TOMBOLO_PTHREAD_CALL FILE* fopencookie(void* cookie, const char* mode,
                                       cookie_io_functions_t functions) noexcept {
  return opened(TOMBOLO_HOST(fopencookie)(cookie, mode, functions));
}
TOMBOLO_PTHREAD_CALL FILE* freopen(const char* path, const char* mode, FILE* stream) {
  const Held held(stream);
  return opened_again(TOMBOLO_HOST(freopen)(path, mode, stream));
}
TOMBOLO_PTHREAD_CALL FILE* freopen64(const char* path, const char* mode, FILE* stream) {
  const Held held(stream);
  return opened_again(TOMBOLO_HOST(freopen64)(path, mode, stream));
}

TOMBOLO_PTHREAD_CALL int pclose(FILE* stream) {
  tombolo::dsm::closes(stream);
  return TOMBOLO_HOST(pclose)(stream);
}
TOMBOLO_PTHREAD_CALL int fclose(FILE* stream) {
  tombolo::dsm::closes(stream);
  return TOMBOLO_HOST(fclose)(stream);
}

TOMBOLO_PTHREAD_CALL int fflush(FILE* stream) {
  if (stream == nullptr) tombolo::dsm::flush_streams();
  const Held held(stream);
  return TOMBOLO_HOST(fflush)(stream);
}

TOMBOLO_PTHREAD_CALL int vfprintf(FILE* stream, const char* format, va_list arguments) {
  const Held held(stream);
  return TOMBOLO_HOST(vfprintf)(stream, format, arguments);
}

TOMBOLO_PTHREAD_CALL int __vfprintf_chk(FILE* stream, int, const char* format, va_list arguments) {
  return vfprintf(stream, format, arguments);
}

TOMBOLO_PTHREAD_CALL int fprintf(FILE* stream, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int result = vfprintf(stream, format, arguments);
  va_end(arguments);
  return result;
}

TOMBOLO_PTHREAD_CALL int __fprintf_chk(FILE* stream, int, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int result = vfprintf(stream, format, arguments);
  va_end(arguments);
  return result;
}

TOMBOLO_PTHREAD_CALL std::size_t fwrite(const void* data, std::size_t bytes, std::size_t count,
                                        FILE* stream) {
  const Held held(stream);
  return TOMBOLO_HOST(fwrite)(data, bytes, count, stream);
}

TOMBOLO_PTHREAD_CALL std::size_t fread(void* data, std::size_t bytes, std::size_t count,
                                       FILE* stream) {
  const Held held(stream);
  return TOMBOLO_HOST(fread)(data, bytes, count, stream);
}

TOMBOLO_PTHREAD_CALL int fputs(const char* text, FILE* stream) {
  const Held held(stream);
  return TOMBOLO_HOST(fputs)(text, stream);
}

TOMBOLO_PTHREAD_CALL int fputc(int character, FILE* stream) {
  const Held held(stream);
  return TOMBOLO_HOST(fputc)(character, stream);
}
#undef putc
TOMBOLO_PTHREAD_CALL int putc(int character, FILE* stream) { return fputc(character, stream); }

TOMBOLO_PTHREAD_CALL char* fgets(char* line, int bytes, FILE* stream) {
  const Held held(stream);
  return TOMBOLO_HOST(fgets)(line, bytes, stream);
}

TOMBOLO_PTHREAD_CALL int fgetc(FILE* stream) {
  const Held held(stream);
  return TOMBOLO_HOST(fgetc)(stream);
}
#undef getc
TOMBOLO_PTHREAD_CALL int getc(FILE* stream) { return fgetc(stream); }

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
