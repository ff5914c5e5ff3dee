// SPDX-License-Identifier: Apache-2.0
#include "experiments/svp/heap.h"

#include <fmt/format.h>

#include "base/check.h"

namespace tombolo::experiments {
namespace {

constexpr std::uint64_t line_bytes = 32;

std::uint64_t whole_lines(std::uint64_t bytes) {
  return bytes == 0 ? line_bytes : (bytes + line_bytes - 1) / line_bytes * line_bytes;
}

}  // namespace

void Heap::add(simulator::Address first, std::uint64_t bytes) {
  bytes_free_ += bytes;
  give(first.byte(), bytes);
}

Heap::Blocks::iterator Heap::find(std::uint64_t bytes, From from) {
  if (from == From::below) {
    auto at = free_.begin();
    while (at != free_.end() && at->second < bytes) ++at;
    return at;
  }
  for (auto at = free_.end(); at != free_.begin();)
    if (--at; at->second >= bytes) return at;
  return free_.end();
}

Status Heap::allocate(std::uint64_t wanted, simulator::Address* at, From from) {
  const std::uint64_t bytes = whole_lines(wanted);
  const auto block = find(bytes, from);
  if (block == free_.end())
    return Status::no_memory(
        fmt::format("{} bytes are wanted; {} are in use and {} free, in {} pieces", wanted,
                    bytes_used_, bytes_free_, free_.size()));
  const auto [first, size] = *block;
  const std::uint64_t start = from == From::below ? first : first + size - bytes;
  free_.erase(block);
  if (start > first) free_[first] = start - first;
  if (start + bytes < first + size) free_[start + bytes] = first + size - start - bytes;
  used_[start] = bytes;
  bytes_free_ -= bytes;
  bytes_used_ += bytes;
  *at = simulator::Address(start);
  return {};
}

void Heap::free(simulator::Address at) {
  const auto block = used_.find(at.byte());
  TOMBOLO_CHECK(block != used_.end(), "free of {:#x}, which is not in use", at.byte());
  const std::uint64_t bytes = block->second;
  used_.erase(block);
  bytes_used_ -= bytes;
  bytes_free_ += bytes;
  give(at.byte(), bytes);
}

void Heap::give(std::uint64_t first, std::uint64_t bytes) {
  auto next = free_.lower_bound(first);
  if (next != free_.end() && first + bytes == next->first) {
    bytes += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == first) {
      before->second += bytes;
      return;
    }
  }
  free_[first] = bytes;
}

}  // namespace tombolo::experiments
