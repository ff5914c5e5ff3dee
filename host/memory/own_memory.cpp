// SPDX-License-Identifier: Apache-2.0
#include "host/memory/own_memory.h"

#include <algorithm>

namespace tombolo::host {

OwnMemory::Use OwnMemory::enter(const void* start, std::uint64_t bytes) {
  const auto low = reinterpret_cast<std::uint64_t>(start);
  Use use;
  use.owner_ = this;
  use.range_ = {low, low + bytes};
  const std::lock_guard lock(mutex_);
  uses_.insert(use.range_);
  longest_ = std::max(longest_, bytes);
  return use;
}

ReplacedMemory* OwnMemory::replace(const Use& use, std::uint64_t processes) {
  const std::lock_guard lock(mutex_);
  if (uses_of(use.range()) > 1) return nullptr;  // OM1
  const AddressRange part = replaceable_part(use.range());
  ReplacedMemory memory;
  if (part.empty() || !ReplacedMemory::take(part, processes, memory).ok()) return nullptr;
  return &replaced_.emplace_back(std::move(memory));
}

void OwnMemory::leave(const AddressRange& range) {
  const std::lock_guard lock(mutex_);
  const auto found = uses_.find(range);
  if (found != uses_.end()) uses_.erase(found);
  replaced_.remove_if([&](ReplacedMemory& memory) {
    if (!memory.range().overlaps(range) || uses_of(memory.range()) != 0) return false;
    const Status given_back = memory.give_back();
    if (error_.ok()) error_ = given_back;
    return true;
  });
}

Status OwnMemory::take_error() {
  const std::lock_guard lock(mutex_);
  return std::exchange(error_, {});
}

std::size_t OwnMemory::uses_of(const AddressRange& range) const {
  const std::uint64_t from = range.low - std::min(range.low, longest_);
  std::size_t n = 0;
  for (auto use = uses_.lower_bound({from, 0}); use != uses_.end() && use->low < range.high; ++use)
    if (use->overlaps(range)) ++n;
  return n;
}

OwnMemory& own_memory() {
  static auto* const the_memory = new OwnMemory;
  return *the_memory;
}

}  // namespace tombolo::host
