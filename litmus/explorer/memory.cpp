// SPDX-License-Identifier: Apache-2.0
#include "litmus/explorer/memory.h"

#include <algorithm>
#include <cstring>

namespace tombolo::litmus {
namespace {

std::uint64_t hash_of(const LineBytes& bytes) {
  std::uint64_t hash = 0;
  for (std::size_t i = 0; i < line_bytes; i += sizeof(std::uint64_t)) {
    std::uint64_t v = 0;
    std::memcpy(&v, bytes.data() + i, sizeof v);
    hash = mix(hash, v);
  }
  return hash;
}

}  // namespace

Memory::Memory(const MemoryShape& shape)
    : shape_(shape), lines_per_home_((shape.data_bytes + line_bytes - 1) / line_bytes) {
  words_.resize(shape.cores * (shape.sync_bytes / sizeof(std::uint64_t)));
  lines_.resize(shape.cores * lines_per_home_);
  clear();
}

void Memory::clear() {
  std::fill(words_.begin(), words_.end(), 0);
  words_hash_ = 0;
  static const std::uint64_t hash_of_zero = hash_of(LineBytes{});
  for (auto& versions : lines_) {
    versions.resize(1);
    versions[0] = {.bytes = {}, .hash = hash_of_zero};
  }
}

std::size_t Memory::word_index(machine::SyncPlace place) const {
  TOMBOLO_CHECK(place.home < shape_.cores && place.offset + 8 <= shape_.sync_bytes,
                "explored memory: no sync word {} at home {}", place.offset, place.home);
  return (place.home * shape_.sync_bytes + place.offset) / sizeof(std::uint64_t);
}

std::uint32_t Memory::line_index(machine::DataPlace place) const {
  TOMBOLO_CHECK(place.home < shape_.cores && place.offset < shape_.data_bytes,
                "explored memory: no byte {} at home {}", place.offset, place.home);
  return static_cast<std::uint32_t>(place.home * lines_per_home_ + place.offset / line_bytes);
}

machine::SyncPlace Memory::place_of_word(std::size_t word) const {
  const std::size_t per_home = shape_.sync_bytes / sizeof(std::uint64_t);
  return {static_cast<machine::Home>(word / per_home), word % per_home * sizeof(std::uint64_t)};
}

machine::DataPlace Memory::place_of_line(std::uint32_t line) const {
  return {static_cast<machine::Home>(line / lines_per_home_), line % lines_per_home_ * line_bytes};
}

void Memory::change(std::uint32_t line, const LineBytes& bytes, LineMask mask) {
  Version next = lines_[line].back();
  for (std::size_t i = 0; i < line_bytes; ++i)
    if ((mask >> i & 1) != 0) next.bytes[i] = bytes[i];
  if (next.bytes == lines_[line].back().bytes) return;  // VM1
  next.hash = hash_of(next.bytes);
  lines_[line].push_back(next);
}

}  // namespace tombolo::litmus
