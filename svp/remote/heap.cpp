// SPDX-License-Identifier: Apache-2.0
#include "svp/remote/heap.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"
#include "base/rounding.h"

namespace tombolo::svp {

void Heap::begin(std::byte* at, std::uint64_t bytes) { free_.emplace(at, bytes); }

std::byte* Heap::take(std::uint64_t bytes) {
  const std::uint64_t size = round_up(std::max<std::uint64_t>(bytes, 1), line);
  const std::lock_guard lock(mutex_);
  const auto fits = std::find_if(free_.begin(), free_.end(),
                                 [size](const auto& part) { return part.second >= size; });
  if (fits == free_.end()) return nullptr;
  const auto [at, room] = *fits;
  taken_.emplace(at, size);
  free_.erase(fits);
  if (room > size) free_.emplace(at + size, room - size);
  return at;
}

void Heap::give_back(std::byte* at) {
  const std::lock_guard lock(mutex_);
  const auto part = taken_.find(at);
  TOMBOLO_CHECK(part != taken_.end(), "shared memory that this process has not allocated is freed");
  auto freed = free_.emplace(at, part->second).first;
  taken_.erase(part);
  const auto after = std::next(freed);
  if (after != free_.end() && freed->first + freed->second == after->first) {
    freed->second += after->second;
    free_.erase(after);
  }
  if (freed == free_.begin()) return;
  const auto before = std::prev(freed);
  if (before->first + before->second != freed->first) return;
  before->second += freed->second;
  free_.erase(freed);
}

std::uint64_t Heap::largest() const {
  const std::lock_guard lock(mutex_);
  std::uint64_t largest = 0;
  for (const auto& part : free_) largest = std::max(largest, part.second);
  return largest;
}

bool Heap::ends_a_part(const std::byte* at, const std::byte* end) const {
  const std::lock_guard lock(mutex_);
  auto part = taken_.upper_bound(const_cast<std::byte*>(at));
  if (part == taken_.begin()) return false;
  --part;
  const std::byte* const last = part->first + part->second;
  return end <= last && end + line > last;
}

}  // namespace tombolo::svp
