// SPDX-License-Identifier: Apache-2.0
// Purpose: memory that the program maps is the program's: all its threads have it. New memory comes
// from its heap; of a file the bytes are read into it.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstring>

#include "base/rounding.h"
#include "dsm/pthread/calls.h"
#include "dsm/world/world_layout.h"
#include "host/memory/page.h"
#include "host/memory/raw_calls.h"

using tombolo::dsm::refuse;
using tombolo::dsm::World;

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

void* map_here(World& world, std::size_t bytes, int flags, int file, off_t offset) {
  void* block = nullptr;
  {
    const World::Busy busy(world);
    block = world.heap().allocate(in_pages(bytes), tombolo::host::page_bytes(), true);
  }
  if (block == nullptr) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  if ((flags & MAP_ANONYMOUS) == 0 &&
      !read_whole(file, offset, static_cast<std::byte*>(block), bytes)) {
    world.heap().free(block);
    return MAP_FAILED;
  }
  return block;
}

bool is_for_the_heap(const World* world, int access, int flags, bool& refused) {
  if (world == nullptr || (flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) != 0) return false;
  if ((flags & MAP_ANONYMOUS) != 0) return true;
  if ((flags & MAP_TYPE) == MAP_PRIVATE)
    // The processes that are forked later have it as it is.
    return (access & PROT_WRITE) != 0 || world->has_processes();
  refused = (access & PROT_WRITE) != 0 || world->has_processes();
  return false;
}

}  // namespace

TOMBOLO_PTHREAD_CALL void* mmap(void* at, std::size_t bytes, int access, int flags, int file,
                                off_t offset) noexcept {
  World* const world = World::here();
  bool refused = false;
  if (is_for_the_heap(world, access, flags, refused) && bytes > 0)
    return map_here(*world, bytes, flags, file, offset);
  if (refused) {
    errno = refuse("mmap", "a file that is shared would be mapped in one process only");
    return MAP_FAILED;
  }
  return tombolo::host::raw::map(reinterpret_cast<std::uint64_t>(at), bytes, access, flags, file,
                                 static_cast<std::uint64_t>(offset));
}

TOMBOLO_PTHREAD_CALL void* mmap64(void* at, std::size_t bytes, int access, int flags, int file,
                                  off64_t offset) noexcept {
  return mmap(at, bytes, access, flags, file, offset);
}

TOMBOLO_PTHREAD_CALL int munmap(void* at, std::size_t bytes) noexcept {
  World* const world = World::here();
  if (world == nullptr || !world->owns(at)) return static_cast<int>(syscall(SYS_munmap, at, bytes));
  if (!world->is_block_of(at, in_pages(bytes))) return 0;  // a part: it goes with the rest
  const World::Busy busy(*world);
  world->heap().free(at);
  return 0;
}

TOMBOLO_PTHREAD_CALL void* mremap(void* at, std::size_t had, std::size_t wanted, int flags,
                                  ...) noexcept {
  va_list list;
  va_start(list, flags);
  void* const to = (flags & MREMAP_FIXED) != 0 ? va_arg(list, void*) : nullptr;
  va_end(list);
  World* const world = World::here();
  if (world == nullptr || !world->owns(at))
    return reinterpret_cast<void*>(syscall(SYS_mremap, at, had, wanted, flags, to));
  if (wanted <= had) return at;
  void* const moved =
      (flags & MREMAP_MAYMOVE) != 0 ? map_here(*world, wanted, MAP_ANONYMOUS, -1, 0) : MAP_FAILED;
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
  World* const world = World::here();
  if (world != nullptr && world->owns(at) && advice == MADV_DONTNEED) {
    // Pages of this process alone could not be discarded without their homes.
    if (world->layout().has_pages) return std::memset(at, 0, bytes), 0;
    advice = MADV_REMOVE;
  }
  return static_cast<int>(syscall(SYS_madvise, at, bytes, advice));
}
