// SPDX-License-Identifier: Apache-2.0
#include "pthreads/calls/streams.h"

#include <stdio_ext.h>

#include "pthreads/program/program_layout.h"

// No header declares it.
extern "C" void _IO_un_link(FILE*);

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
