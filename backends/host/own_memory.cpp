// SPDX-License-Identifier: Apache-2.0
#include "backends/host/own_memory.h"

#include <algorithm>

namespace tombolo::host {

OwnMemory::Use OwnMemory::enter(const void* start, std::uint64_t bytes) {
  const auto low = reinterpret_cast<std::uint64_t>(start);
  Use use;
  use.owner_ = this;
  use.range_ = {low, low + bytes};
  const std::lock_guard lock(mutex_);
  uses_.push_back(use.range_);
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
  const auto found = std::find(uses_.begin(), uses_.end(), range);
  if (found != uses_.end()) uses_.erase(found);
  replaced_.remove_if([this](ReplacedMemory& memory) {
    if (uses_of(memory.range()) != 0) return false;
    const Status given_back = memory.give_back();
    if (fault_.ok()) fault_ = given_back;
    return true;
  });
}

Status OwnMemory::take_fault() {
  const std::lock_guard lock(mutex_);
  return std::exchange(fault_, {});
}

std::size_t OwnMemory::uses_of(const AddressRange& range) const {
  return static_cast<std::size_t>(std::count_if(
      uses_.begin(), uses_.end(), [&](const AddressRange& used) { return used.overlaps(range); }));
}

OwnMemory& own_memory() {
  static auto* const the_memory = new OwnMemory;
  return *the_memory;
}

}  // namespace tombolo::host
