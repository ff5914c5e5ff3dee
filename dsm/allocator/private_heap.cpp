// SPDX-License-Identifier: Apache-2.0
#include "dsm/allocator/private_heap.h"

#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

namespace tombolo::dsm {
namespace {

constexpr std::size_t room_bytes = std::size_t{1} << 30;
constexpr std::size_t head_bytes = 16;
constexpr unsigned classes = 31;

// Powers of 2. Constant-initialized: libraries allocate before constructors have run.
struct Room {
  std::atomic_flag busy;
  std::byte* start = nullptr;
  std::size_t used = 0;
  std::array<std::byte*, classes> free = {};
};
constinit Room room;

// The caller's stack may be pages of the program's memory, and a page fault takes blocks of this
// heap. None comes while the heap is busy, if the pages that the calls below store to are open:
// they stay so as long as no other page is missed.
[[gnu::noinline]] void open_stack() {
  constexpr std::size_t deepest = 1024;
  [[maybe_unused]] volatile std::byte below[deepest];
  below[0] = std::byte{0};
  below[deepest - 1] = below[0];
}

class Busy {
 public:
  Busy() {
    open_stack();
    // Another thread of the process: one of a host MPI's, or that which lets it answer.
    while (room.busy.test_and_set(std::memory_order_acquire)) sched_yield();
  }
  ~Busy() { room.busy.clear(std::memory_order_release); }
};

unsigned class_of(std::size_t bytes) {
  return static_cast<unsigned>(std::bit_width(std::max<std::size_t>(bytes, 32) - 1));
}

std::byte* take(unsigned size_class) {
  if (std::byte* const first = room.free[size_class]; first != nullptr) {
    room.free[size_class] = *reinterpret_cast<std::byte**>(first);
    return first;
  }
  if (room.start == nullptr) {
    void* const start = mmap(nullptr, room_bytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED) return nullptr;
    room.start = static_cast<std::byte*>(start);
  }
  const std::size_t bytes = std::size_t{1} << size_class;
  if (bytes > room_bytes - room.used) return nullptr;
  std::byte* const found = room.start + room.used;
  room.used += bytes;
  return found;
}

// In front of each block: where its memory starts, and the class of that.
struct Head {
  std::byte* start;
  std::uint64_t size_class;
};
static_assert(sizeof(Head) == head_bytes);

Head& head_of(void* block) { return *(static_cast<Head*>(block) - 1); }

}  // namespace

void* PrivateHeap::allocate(std::size_t bytes, std::size_t alignment) {
  alignment = std::max(alignment, head_bytes);
  if (bytes > room_bytes / 2 || alignment > room_bytes / 2) return nullptr;
  const unsigned size_class = class_of(bytes + alignment + head_bytes);
  if (size_class >= classes) return nullptr;
  const Busy busy;
  std::byte* const start = take(size_class);
  if (start == nullptr) return nullptr;
  const auto address = reinterpret_cast<std::uintptr_t>(start) + head_bytes;
  auto* const block = reinterpret_cast<void*>((address + alignment - 1) / alignment * alignment);
  head_of(block) = {start, size_class};
  return block;
}

void PrivateHeap::free(void* block) {
  if (block == nullptr) return;
  const Head head = head_of(block);
  const Busy busy;
  *reinterpret_cast<std::byte**>(head.start) = room.free[head.size_class];
  room.free[head.size_class] = head.start;
}

std::size_t PrivateHeap::usable(const void* block) {
  const Head& head = *(static_cast<const Head*>(block) - 1);
  const auto before = static_cast<std::size_t>(static_cast<const std::byte*>(block) - head.start);
  return (std::size_t{1} << head.size_class) - before;
}

bool PrivateHeap::has(const void* block) {
  const auto* const at = static_cast<const std::byte*>(block);
  return room.start != nullptr && at >= room.start && at < room.start + room_bytes;
}

}  // namespace tombolo::dsm
