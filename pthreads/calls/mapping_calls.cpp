// SPDX-License-Identifier: Apache-2.0
// Purpose: memory that the program maps is the program's: all its threads have it. New memory comes
// from its heap, or lies in the place of memory that is mapped; of a file the bytes are read.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstring>

#include "base/rounding.h"
#include "host/memory/page.h"
#include "host/memory/raw_calls.h"
#include "pthreads/calls/calls.h"
#include "pthreads/program/program_layout.h"

using tombolo::dsm::refuse;
using tombolo::dsm::ThreadedProgram;
using tombolo::host::AddressRange;

namespace {

// mmap rounds up to whole pages.
std::size_t in_pages(std::size_t bytes) {
  return tombolo::round_up(bytes, tombolo::host::page_bytes());
}

bool read_whole(int file, off_t offset, std::byte* to, std::size_t bytes) {
  for (std::size_t done = 0; done < bytes;) {
    const long read = tombolo::host::raw::read(file, to + done, bytes - done,
                                               static_cast<std::uint64_t>(offset) + done);
    if (read < 0) return false;
    if (read == 0) return true;  // the rest of the last page is zero
    done += static_cast<std::size_t>(read);
  }
  return true;
}

AddressRange range_of(const void* at, std::size_t bytes) {
  const auto low = reinterpret_cast<std::uint64_t>(at);
  return {low, low + in_pages(bytes)};
}

bool is_aligned(const void* at) {
  return reinterpret_cast<std::uint64_t>(at) % tombolo::host::page_bytes() == 0;
}

bool is_of_the_program(ThreadedProgram& program, const AddressRange& range) {
  const auto low = reinterpret_cast<std::uint64_t>(program.memory().memory().data());
  return range.overlaps({low, low + program.memory().memory().size()});
}

void give_back(const AddressRange& pages) {
  tombolo::host::raw::advise(reinterpret_cast<void*>(pages.low), pages.bytes(), MADV_REMOVE);
}

void unmap_here(ThreadedProgram& program, const AddressRange& range) {
  const ThreadedProgram::Busy busy(program);
  // Pages of this process alone could not be discarded without their homes.
  program.mappings().unmap(range, program.layout().has_pages ? nullptr : &give_back);
}

bool fill(void* at, std::size_t bytes, int flags, int file, off_t offset) {
  return (flags & MAP_ANONYMOUS) != 0 ||
         read_whole(file, offset, static_cast<std::byte*>(at), bytes);
}

void* map_here(ThreadedProgram& program, std::size_t bytes, int flags, int file, off_t offset) {
  void* block = nullptr;
  {
    const ThreadedProgram::Busy busy(program);
    block = program.mappings().map(in_pages(bytes));
  }
  if (block == nullptr) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  if (fill(block, bytes, flags, file, offset)) return block;
  const int error = errno;
  unmap_here(program, range_of(block, bytes));
  errno = error;
  return MAP_FAILED;
}

// In the place of memory that is mapped already.
void* map_again(ThreadedProgram& program, void* at, std::size_t bytes, int flags, int file,
                off_t offset) {
  if (!is_aligned(at)) {
    errno = EINVAL;
    return MAP_FAILED;
  }
  bool held = false;
  {
    const ThreadedProgram::Busy busy(program);
    held = program.mappings().holds(range_of(at, bytes));
  }
  if (!held) {
    errno = refuse("mmap at a fixed address",
                   "other memory of the program than that of mmap stays where it is, and at other "
                   "addresses it would be mapped in one process only");
    return MAP_FAILED;
  }
  if (program.layout().has_pages)
    std::memset(at, 0, in_pages(bytes));
  else
    give_back(range_of(at, bytes));
  return fill(at, bytes, flags, file, offset) ? at : MAP_FAILED;
}

// How a call of mmap() is served.
enum class Service { by_the_heap, in_place, by_the_kernel, refused };

Service service_of(ThreadedProgram* program, const AddressRange& range, int access, int flags) {
  if (program == nullptr || range.empty()) return Service::by_the_kernel;
  const bool is_anonymous = (flags & MAP_ANONYMOUS) != 0;
  // The processes that are forked later have it as it is.
  const bool is_the_same_in_all = (access & PROT_WRITE) == 0 && !program->has_processes();
  if (!is_anonymous && (flags & MAP_TYPE) != MAP_PRIVATE)
    return is_the_same_in_all ? Service::by_the_kernel : Service::refused;
  const bool is_fixed = (flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) != 0;
  if (is_fixed && is_of_the_program(*program, range))
    // It is mapped: the kernel says so.
    return (flags & MAP_FIXED_NOREPLACE) != 0 ? Service::by_the_kernel : Service::in_place;
  if (!is_anonymous && is_the_same_in_all) return Service::by_the_kernel;
  return is_fixed ? Service::in_place : Service::by_the_heap;
}

}  // namespace

TOMBOLO_PTHREAD_CALL void* mmap(void* at, std::size_t bytes, int access, int flags, int file,
                                off_t offset) noexcept {
  ThreadedProgram* const program = ThreadedProgram::here();
  switch (service_of(program, range_of(at, bytes), access, flags)) {
    case Service::by_the_heap:
      return map_here(*program, bytes, flags, file, offset);
    case Service::in_place:
      return map_again(*program, at, bytes, flags, file, offset);
    case Service::refused:
      errno = refuse("mmap", "a file that is shared would be mapped in one process only");
      return MAP_FAILED;
    default:
      return tombolo::host::raw::map(reinterpret_cast<std::uint64_t>(at), bytes, access, flags,
                                     file, static_cast<std::uint64_t>(offset));
  }
}

TOMBOLO_PTHREAD_CALL void* mmap64(void* at, std::size_t bytes, int access, int flags, int file,
                                  off64_t offset) noexcept {
  return mmap(at, bytes, access, flags, file, offset);
}

TOMBOLO_PTHREAD_CALL int munmap(void* at, std::size_t bytes) noexcept {
  ThreadedProgram* const program = ThreadedProgram::here();
  if (program == nullptr || !program->owns(at))
    return static_cast<int>(syscall(SYS_munmap, at, bytes));
  if (bytes == 0 || !is_aligned(at)) {
    errno = EINVAL;
    return -1;
  }
  unmap_here(*program, range_of(at, bytes));
  return 0;
}

TOMBOLO_PTHREAD_CALL void* mremap(void* at, std::size_t had, std::size_t wanted, int flags,
                                  ...) noexcept {
  va_list list;
  va_start(list, flags);
  void* const to = (flags & MREMAP_FIXED) != 0 ? va_arg(list, void*) : nullptr;
  va_end(list);
  ThreadedProgram* const program = ThreadedProgram::here();
  if (program == nullptr || !program->owns(at))
    return reinterpret_cast<void*>(syscall(SYS_mremap, at, had, wanted, flags, to));
  if ((flags & (MREMAP_FIXED | MREMAP_DONTUNMAP)) != 0) {
    errno = refuse("mremap to a fixed address", "memory of the program stays where it is");
    return MAP_FAILED;
  }
  if (in_pages(wanted) <= in_pages(had)) {
    const auto low = reinterpret_cast<std::uint64_t>(at);
    unmap_here(*program, {low + in_pages(wanted), low + in_pages(had)});
    return at;
  }
  void* const moved =
      (flags & MREMAP_MAYMOVE) != 0 ? map_here(*program, wanted, MAP_ANONYMOUS, -1, 0) : MAP_FAILED;
  if (moved == MAP_FAILED) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  std::memcpy(moved, at, had);
  munmap(at, had);
  return moved;
}

// Private memory is zero after it was discarded; memory that processes share is not.
TOMBOLO_PTHREAD_CALL int madvise(void* at, std::size_t bytes, int advice) noexcept {
  ThreadedProgram* const program = ThreadedProgram::here();
  if (program != nullptr && program->owns(at) && advice == MADV_DONTNEED) {
    // Pages of this process alone could not be discarded without their homes.
    if (program->layout().has_pages) return std::memset(at, 0, bytes), 0;
    advice = MADV_REMOVE;
  }
  return static_cast<int>(syscall(SYS_madvise, at, bytes, advice));
}
