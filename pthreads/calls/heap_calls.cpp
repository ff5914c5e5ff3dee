// SPDX-License-Identifier: Apache-2.0
// Purpose: the heap of the program and its libraries, in the program's memory; and the runtime's
// own, which is each process's.
#include <malloc.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>

#include "base/rounding.h"
#include "dsm/allocator/private_heap.h"
#include "host/memory/page.h"
#include "pthreads/calls/calls.h"

namespace tombolo::dsm {
namespace {

constexpr std::size_t usual_alignment = 16;

bool power_of_2(std::size_t n) { return n != 0 && (n & (n - 1)) == 0; }

// Null and ENOMEM if there is none left.
void* get(std::size_t bytes, std::size_t alignment, bool zero) {
  void* block = nullptr;
  if (ThreadedProgram* const program = ThreadedProgram::here(); program != nullptr) {
    const ThreadedProgram::Busy busy(*program);
    block = program->heap().allocate(bytes, alignment, zero);
  } else {
    // A library's constructor.
    block = PrivateHeap::allocate(bytes, alignment);
    if (zero && block != nullptr) std::memset(block, 0, bytes);
  }
  if (block == nullptr) errno = ENOMEM;
  return block;
}

std::size_t usable(const void* block) {
  if (PrivateHeap::has(block)) return PrivateHeap::usable(block);
  return ThreadedProgram::here()->heap().usable(block);
}

void give_back(void* block) {
  if (block == nullptr) return;
  if (PrivateHeap::has(block)) return PrivateHeap::free(block);
  ThreadedProgram* const program = ThreadedProgram::here();
  if (program == nullptr) return;  // of the program, and this process's own part of it ends
  const ThreadedProgram::Busy busy(*program);
  program->heap().free(block);
}

void* change(void* block, std::size_t bytes) {
  const std::size_t had = usable(block);
  // Not much too large for it, either.
  if (bytes <= had && bytes >= had / 4) return block;
  void* const moved = get(bytes, usual_alignment, false);
  if (moved == nullptr) return nullptr;
  std::memcpy(moved, block, std::min(had, bytes));
  give_back(block);
  return moved;
}

}  // namespace
}  // namespace tombolo::dsm

using tombolo::dsm::change;
using tombolo::dsm::get;
using tombolo::dsm::give_back;
using tombolo::dsm::usual_alignment;

TOMBOLO_PTHREAD_CALL void* malloc(std::size_t bytes) { return get(bytes, usual_alignment, false); }

TOMBOLO_PTHREAD_CALL void free(void* block) {
  const int error = errno;
  give_back(block);
  errno = error;
}

TOMBOLO_PTHREAD_CALL void* calloc(std::size_t count, std::size_t bytes) {
  std::size_t all = 0;
  if (__builtin_mul_overflow(count, bytes, &all)) {
    errno = ENOMEM;
    return nullptr;
  }
  return get(all, usual_alignment, true);
}

TOMBOLO_PTHREAD_CALL void* realloc(void* block, std::size_t bytes) {
  if (block == nullptr) return malloc(bytes);
  if (bytes == 0) {
    free(block);
    return nullptr;
  }
  return change(block, bytes);
}

TOMBOLO_PTHREAD_CALL void* reallocarray(void* block, std::size_t count, std::size_t bytes) {
  std::size_t all = 0;
  if (!__builtin_mul_overflow(count, bytes, &all)) return realloc(block, all);
  errno = ENOMEM;
  return nullptr;
}

TOMBOLO_PTHREAD_CALL void* memalign(std::size_t alignment, std::size_t bytes) {
  if (tombolo::dsm::power_of_2(alignment)) return get(bytes, alignment, false);
  errno = EINVAL;
  return nullptr;
}

TOMBOLO_PTHREAD_CALL void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  return memalign(alignment, bytes);
}

TOMBOLO_PTHREAD_CALL int posix_memalign(void** out, std::size_t alignment, std::size_t bytes) {
  if (!tombolo::dsm::power_of_2(alignment) || alignment % sizeof(void*) != 0) return EINVAL;
  const int error = errno;
  void* const block = get(bytes, alignment, false);
  errno = error;
  if (block == nullptr) return ENOMEM;
  *out = block;
  return 0;
}

TOMBOLO_PTHREAD_CALL void* valloc(std::size_t bytes) {
  return get(bytes, tombolo::host::page_bytes(), false);
}

TOMBOLO_PTHREAD_CALL void* pvalloc(std::size_t bytes) {
  const std::size_t page = tombolo::host::page_bytes();
  return get(tombolo::round_up(bytes, page), page, false);
}

TOMBOLO_PTHREAD_CALL std::size_t malloc_usable_size(void* block) {
  return block == nullptr ? 0 : tombolo::dsm::usable(block);
}

// There is room for no heap behind the program's variables: its memory lies there.
TOMBOLO_PTHREAD_CALL void* sbrk(std::intptr_t) noexcept {
  errno = ENOMEM;
  return reinterpret_cast<void*>(-1);
}

// The runtime's own: not exported.

void* operator new(std::size_t bytes) {
  void* const block = tombolo::dsm::PrivateHeap::allocate(bytes);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  void* const block =
      tombolo::dsm::PrivateHeap::allocate(bytes, static_cast<std::size_t>(alignment));
  if (block == nullptr) throw std::bad_alloc();
  return block;
}
void operator delete(void* block) noexcept { tombolo::dsm::PrivateHeap::free(block); }
void operator delete(void* block, std::size_t) noexcept { tombolo::dsm::PrivateHeap::free(block); }
void operator delete(void* block, std::align_val_t) noexcept {
  tombolo::dsm::PrivateHeap::free(block);
}
void operator delete(void* block, std::size_t, std::align_val_t) noexcept {
  tombolo::dsm::PrivateHeap::free(block);
}
