// SPDX-License-Identifier: Apache-2.0
#include "pthreads/program/own_streams.h"

#include "dsm/allocator/private_heap.h"

namespace tombolo::dsm {
namespace {

void give_buffer(std::FILE* stream, const ProgramFacts& facts) {
  if (!facts.owns(stream->_IO_buf_base)) return;
  constexpr int no_buffer_to_free = 1;  // _IO_USER_BUF
  constexpr int by_line = 0x200;        // _IO_LINE_BUF
  constexpr int writes = 0x800;         // _IO_CURRENTLY_PUTTING
  const std::ptrdiff_t bytes = stream->_IO_buf_end - stream->_IO_buf_base;
  auto* const buffer = static_cast<char*>(PrivateHeap::allocate(static_cast<std::size_t>(bytes)));
  if (buffer == nullptr) return;
  stream->_IO_buf_base = buffer;
  stream->_IO_buf_end = buffer + bytes;
  stream->_IO_read_base = stream->_IO_read_ptr = stream->_IO_read_end = buffer;
  stream->_IO_write_base = stream->_IO_write_ptr = stream->_IO_write_end = buffer;
  // Else the C library would write each part of the first line by itself.
  if ((stream->_flags & (by_line | writes)) == writes) stream->_IO_write_end = buffer + bytes;
  stream->_flags |= no_buffer_to_free;
}

}  // namespace

void give_own_buffers(const ProgramFacts& facts) {
  give_buffer(stdout, facts);
  give_buffer(stderr, facts);
}

void write_by_line(std::FILE* stream) {
  constexpr std::size_t bytes = 65536;
  auto* const buffer = static_cast<char*>(PrivateHeap::allocate(bytes));
  if (buffer != nullptr) std::setvbuf(stream, buffer, _IOLBF, bytes);
}

}  // namespace tombolo::dsm
