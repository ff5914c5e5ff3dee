// SPDX-License-Identifier: Apache-2.0
// Purpose: the rarer calls on streams. Those whose names end in _unlocked are for programs that
// hold a lock of their own, or flockfile().

// The C library's headers have bodies of some of these calls where a compiler optimizes.
#define __NO_INLINE__ 1

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cwchar>

#include "pthreads/calls/streams.h"

extern "C" {
int old_vfscanf(FILE*, const char*, va_list) __asm__("vfscanf");
int old_fscanf(FILE*, const char*, ...) __asm__("fscanf");
char* __fgets_chk(char*, std::size_t, int, FILE*);
std::size_t __fread_chk(void*, std::size_t, std::size_t, std::size_t, FILE*);
int _IO_getc(FILE*);
int _IO_putc(int, FILE*);
int __isoc99_fscanf(FILE*, const char*, ...);
int __isoc99_vfscanf(FILE*, const char*, va_list);
int __isoc99_fwscanf(FILE*, const wchar_t*, ...);
int __isoc99_vfwscanf(FILE*, const wchar_t*, va_list);
}
#undef feof
#undef ferror
#undef getwc
#undef putwc

using tombolo::dsm::Held;

// ---- Lines and characters ----------------------------------------------------------------------

TOMBOLO_PTHREAD_CALL ssize_t getdelim(char** line, std::size_t* room, int delimiter, FILE* stream) {
  const Held held(stream);
  return TOMBOLO_HOST(getdelim)(line, room, delimiter, stream);
}
TOMBOLO_PTHREAD_CALL ssize_t __getdelim(char** line, std::size_t* room, int delimiter,
                                        FILE* stream) {
  const Held held(stream);
  return TOMBOLO_HOST(__getdelim)(line, room, delimiter, stream);
}
TOMBOLO_PTHREAD_CALL ssize_t getline(char** line, std::size_t* room, FILE* stream) {
  const Held held(stream);
  return TOMBOLO_HOST(getline)(line, room, stream);
}
TOMBOLO_PTHREAD_CALL char* __fgets_chk(char* line, std::size_t room, int bytes, FILE* stream) {
  const Held held(stream);
  return TOMBOLO_HOST(__fgets_chk)(line, room, bytes, stream);
}
TOMBOLO_PTHREAD_CALL std::size_t __fread_chk(void* data, std::size_t room, std::size_t bytes,
                                             std::size_t count, FILE* stream) {
  const Held held(stream);
  return TOMBOLO_HOST(__fread_chk)(data, room, bytes, count, stream);
}
TOMBOLO_PTHREAD_CALL int _IO_getc(FILE* stream) {
  const Held held(stream);
  return TOMBOLO_HOST(_IO_getc)(stream);
}
TOMBOLO_PTHREAD_CALL int _IO_putc(int character, FILE* stream) {
  const Held held(stream);
  return TOMBOLO_HOST(_IO_putc)(character, stream);
}
TOMBOLO_PTHREAD_CALL int ungetc(int character, FILE* stream) {
  const Held held(stream);
  return TOMBOLO_HOST(ungetc)(character, stream);
}
TOMBOLO_PTHREAD_CALL int getw(FILE* stream) {
  const Held held(stream);
  return TOMBOLO_HOST(getw)(stream);
}
TOMBOLO_PTHREAD_CALL int putw(int word, FILE* stream) {
  const Held held(stream);
  return TOMBOLO_HOST(putw)(word, stream);
}

// ---- Formats -----------------------------------------------------------------------------------

// Of programs before C99 and C++11, in which %a has another meaning: the headers give the names of
// these to those below.
TOMBOLO_PTHREAD_CALL int old_vfscanf(FILE* stream, const char* format, va_list arguments) {
  const Held held(stream);
  return reinterpret_cast<decltype(&old_vfscanf)>(TOMBOLO_NEXT("vfscanf"))(stream, format,
                                                                           arguments);
}
TOMBOLO_PTHREAD_CALL int old_fscanf(FILE* stream, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int result = old_vfscanf(stream, format, arguments);
  va_end(arguments);
  return result;
}
TOMBOLO_PTHREAD_CALL int __isoc99_vfscanf(FILE* stream, const char* format, va_list arguments) {
  const Held held(stream);
  return TOMBOLO_HOST(__isoc99_vfscanf)(stream, format, arguments);
}
TOMBOLO_PTHREAD_CALL int __isoc99_fscanf(FILE* stream, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int result = __isoc99_vfscanf(stream, format, arguments);
  va_end(arguments);
  return result;
}

// ---- Places and states -------------------------------------------------------------------------

TOMBOLO_PTHREAD_CALL int fseek(FILE* stream, long offset, int from) {
  const Held held(stream);
  return TOMBOLO_HOST(fseek)(stream, offset, from);
}
TOMBOLO_PTHREAD_CALL int fseeko(FILE* stream, off_t offset, int from) {
  const Held held(stream);
  return TOMBOLO_HOST(fseeko)(stream, offset, from);
}
TOMBOLO_PTHREAD_CALL int fseeko64(FILE* stream, off64_t offset, int from) {
  const Held held(stream);
  return TOMBOLO_HOST(fseeko64)(stream, offset, from);
}
TOMBOLO_PTHREAD_CALL long ftell(FILE* stream) {
  const Held held(stream);
  return TOMBOLO_HOST(ftell)(stream);
}
TOMBOLO_PTHREAD_CALL off_t ftello(FILE* stream) {
  const Held held(stream);
  return TOMBOLO_HOST(ftello)(stream);
}
TOMBOLO_PTHREAD_CALL off64_t ftello64(FILE* stream) {
  const Held held(stream);
  return TOMBOLO_HOST(ftello64)(stream);
}
TOMBOLO_PTHREAD_CALL void rewind(FILE* stream) {
  const Held held(stream);
  TOMBOLO_HOST(rewind)(stream);
}
TOMBOLO_PTHREAD_CALL int fgetpos(FILE* stream, fpos_t* place) {
  const Held held(stream);
  return TOMBOLO_HOST(fgetpos)(stream, place);
}
TOMBOLO_PTHREAD_CALL int fgetpos64(FILE* stream, fpos64_t* place) {
  const Held held(stream);
  return TOMBOLO_HOST(fgetpos64)(stream, place);
}
TOMBOLO_PTHREAD_CALL int fsetpos(FILE* stream, const fpos_t* place) {
  const Held held(stream);
  return TOMBOLO_HOST(fsetpos)(stream, place);
}
TOMBOLO_PTHREAD_CALL int fsetpos64(FILE* stream, const fpos64_t* place) {
  const Held held(stream);
  return TOMBOLO_HOST(fsetpos64)(stream, place);
}
TOMBOLO_PTHREAD_CALL int setvbuf(FILE* stream, char* buffer, int mode, std::size_t bytes) noexcept {
  const Held held(stream);
  return TOMBOLO_HOST(setvbuf)(stream, buffer, mode, bytes);
}
TOMBOLO_PTHREAD_CALL void setbuf(FILE* stream, char* buffer) noexcept {
  const Held held(stream);
  TOMBOLO_HOST(setbuf)(stream, buffer);
}
TOMBOLO_PTHREAD_CALL void setbuffer(FILE* stream, char* buffer, std::size_t bytes) noexcept {
  const Held held(stream);
  TOMBOLO_HOST(setbuffer)(stream, buffer, bytes);
}
TOMBOLO_PTHREAD_CALL void setlinebuf(FILE* stream) noexcept {
  const Held held(stream);
  TOMBOLO_HOST(setlinebuf)(stream);
}
TOMBOLO_PTHREAD_CALL int feof(FILE* stream) noexcept {
  const Held held(stream);
  return TOMBOLO_HOST(feof)(stream);
}
TOMBOLO_PTHREAD_CALL int ferror(FILE* stream) noexcept {
  const Held held(stream);
  return TOMBOLO_HOST(ferror)(stream);
}
TOMBOLO_PTHREAD_CALL void clearerr(FILE* stream) noexcept {
  const Held held(stream);
  TOMBOLO_HOST(clearerr)(stream);
}

// ---- Wide characters ---------------------------------------------------------------------------

TOMBOLO_PTHREAD_CALL int fwide(FILE* stream, int mode) noexcept {
  const Held held(stream);
  return TOMBOLO_HOST(fwide)(stream, mode);
}
TOMBOLO_PTHREAD_CALL wint_t fgetwc(FILE* stream) {
  const Held held(stream);
  return TOMBOLO_HOST(fgetwc)(stream);
}
TOMBOLO_PTHREAD_CALL wint_t getwc(FILE* stream) {
  const Held held(stream);
  return TOMBOLO_HOST(getwc)(stream);
}
TOMBOLO_PTHREAD_CALL wint_t ungetwc(wint_t character, FILE* stream) {
  const Held held(stream);
  return TOMBOLO_HOST(ungetwc)(character, stream);
}
TOMBOLO_PTHREAD_CALL wchar_t* fgetws(wchar_t* line, int count, FILE* stream) {
  const Held held(stream);
  return TOMBOLO_HOST(fgetws)(line, count, stream);
}
TOMBOLO_PTHREAD_CALL wint_t fputwc(wchar_t character, FILE* stream) {
  const Held held(stream);
  return TOMBOLO_HOST(fputwc)(character, stream);
}
TOMBOLO_PTHREAD_CALL wint_t putwc(wchar_t character, FILE* stream) {
  const Held held(stream);
  return TOMBOLO_HOST(putwc)(character, stream);
}
TOMBOLO_PTHREAD_CALL int fputws(const wchar_t* text, FILE* stream) {
  const Held held(stream);
  return TOMBOLO_HOST(fputws)(text, stream);
}
TOMBOLO_PTHREAD_CALL int vfwprintf(FILE* stream, const wchar_t* format, va_list arguments) {
  const Held held(stream);
  return TOMBOLO_HOST(vfwprintf)(stream, format, arguments);
}
TOMBOLO_PTHREAD_CALL int __isoc99_vfwscanf(FILE* stream, const wchar_t* format, va_list arguments) {
  const Held held(stream);
  return TOMBOLO_HOST(__isoc99_vfwscanf)(stream, format, arguments);
}
TOMBOLO_PTHREAD_CALL int fwprintf(FILE* stream, const wchar_t* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int result = vfwprintf(stream, format, arguments);
  va_end(arguments);
  return result;
}
TOMBOLO_PTHREAD_CALL int __isoc99_fwscanf(FILE* stream, const wchar_t* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int result = __isoc99_vfwscanf(stream, format, arguments);
  va_end(arguments);
  return result;
}
