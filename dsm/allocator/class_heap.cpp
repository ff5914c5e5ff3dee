// SPDX-License-Identifier: Apache-2.0
#include "dsm/allocator/class_heap.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "base/rounding.h"
#include "dsm/threads/runtime_hooks.h"

namespace tombolo::dsm {

// In front of each block that is in use.
struct ClassHeap::Head {
  static constexpr std::uint32_t in_use = 0x746f6d62;
  std::uint32_t size_class;
  std::uint32_t mark;
  std::uint64_t before;  // bytes between the start of the block's memory and the head
};

namespace {

constexpr std::size_t least_alignment = 16;
constexpr unsigned first_exponent = 4;

// 64, 80, 96, 112, 128, 160, ...
constexpr std::size_t bytes_of(unsigned size_class) {
  return (std::size_t{4} + size_class % 4) << (size_class / 4 + first_exponent);
}

constexpr unsigned class_of(std::size_t bytes) {
  if (bytes <= bytes_of(0)) return 0;
  const unsigned exponent = static_cast<unsigned>(std::bit_width(bytes - 1)) - 3;
  const auto quarter = static_cast<unsigned>((bytes - 1) >> exponent) - 4;
  return (exponent - first_exponent) * 4 + quarter + 1;
}
static_assert(class_of(64) == 0 && class_of(65) == 1 && class_of(80) == 1 && class_of(81) == 2);
static_assert(class_of(128) == 4 && class_of(129) == 5 && bytes_of(class_of(1 << 20)) == 1 << 20);

}  // namespace

void* ClassHeap::allocate(std::size_t bytes, std::size_t alignment, bool zero) {
  alignment = std::max(alignment, least_alignment);
  if (bytes > room_.size() || alignment > room_.size()) return nullptr;
  // The start of a block's memory is a multiple of the least alignment.
  const std::size_t needed = bytes + sizeof(Head) + alignment - least_alignment;
  const unsigned size_class = class_of(needed);
  if (size_class >= classes) return nullptr;
  std::byte* start = pop(size_class);
  const bool recycled = start != nullptr;
  if (!recycled) start = take_unused(bytes_of(size_class));
  if (start == nullptr) return nullptr;
  const auto address = reinterpret_cast<std::uintptr_t>(start);
  std::byte* const block = start + (round_up(address + sizeof(Head), alignment) - address);
  auto* const head = reinterpret_cast<Head*>(block) - 1;
  const auto before = static_cast<std::uint64_t>(reinterpret_cast<std::byte*>(head) - start);
  if (zero && recycled) std::memset(block, 0, bytes);
  *head = {.size_class = size_class, .mark = Head::in_use, .before = before};
  return block;
}

std::byte* ClassHeap::pop(unsigned size_class) {
  if (memory_.load(lists_ + size_class) == 0) return nullptr;
  must(memory_.acquire(lock_ + size_class));
  const std::uint64_t first = memory_.load(lists_ + size_class);
  std::byte* const start = first == 0 ? nullptr : room_.data() + (first - 1);
  if (start != nullptr) {
    std::uint64_t next = 0;
    std::memcpy(&next, start, sizeof next);
    memory_.store(lists_ + size_class, next);
  }
  must(memory_.release(lock_ + size_class));
  return start;
}

std::byte* ClassHeap::take_unused(std::size_t bytes) {
  std::uint64_t used = memory_.load(used_);
  for (;;) {
    if (bytes > room_.size() - used) return nullptr;
    const std::uint64_t found = memory_.compare_exchange(used_, used, used + bytes);
    if (found == used) return room_.data() + used;
    used = found;
  }
}

void ClassHeap::free(void* block) {
  auto* const head = reinterpret_cast<Head*>(block) - 1;
  TOMBOLO_CHECK(head->mark == Head::in_use, "free of {}: no block, or one that is free already",
                block);
  head->mark = 0;
  const unsigned size_class = head->size_class;
  std::byte* const start = reinterpret_cast<std::byte*>(head) - head->before;
  must(memory_.acquire(lock_ + size_class));
  const std::uint64_t next = memory_.load(lists_ + size_class);
  memory_.record(start, sizeof next);
  std::memcpy(start, &next, sizeof next);
  memory_.store(lists_ + size_class, static_cast<std::uint64_t>(start - room_.data()) + 1);
  must(memory_.release(lock_ + size_class));
}

std::size_t ClassHeap::usable(const void* block) const {
  const auto* const head = reinterpret_cast<const Head*>(block) - 1;
  return bytes_of(head->size_class) - head->before - sizeof(Head);
}

}  // namespace tombolo::dsm
