// SPDX-License-Identifier: Apache-2.0
#include "litmus/explorer/private_memory.h"

#include <algorithm>
#include <cstring>

namespace tombolo::litmus {
namespace {

void copy_masked(LineBytes& to, const LineBytes& from, LineMask mask) {
  for (std::size_t i = 0; i < line_bytes; ++i)
    if ((mask >> i & 1) != 0) to[i] = from[i];
}

bool equal_masked(const LineBytes& a, const LineBytes& b, LineMask mask) {
  for (std::size_t i = 0; i < line_bytes; ++i)
    if ((mask >> i & 1) != 0 && a[i] != b[i]) return false;
  return true;
}

}  // namespace

void PrivateMemory::clear() {
  stores_.clear();
  for (Copy& copy : copies_) {
    copy.floor = 0;
    copy.dirty = 0;
  }
  pieces_.clear();
}

std::uint64_t PrivateMemory::visible(std::size_t word) const {
  for (auto store = stores_.rbegin(); store != stores_.rend(); ++store)
    if (store->word == word) return store->value;
  return memory_.load(word);
}

bool PrivateMemory::oldest_store_to_memory() {
  const Store store = stores_.front();
  stores_.erase(stores_.begin());
  const bool changed = store.believed && *store.believed != memory_.load(store.word);
  memory_.store(store.word, store.value);
  return changed;
}

LineBytes PrivateMemory::seen(std::uint32_t line, std::uint32_t version) const {
  LineBytes bytes = memory_.at(line, version);
  for (const Piece& piece : pieces_)
    if (piece.unit / units_per_line == line && version < piece.settled)  // PV3
      copy_masked(bytes, piece.bytes, piece.mask);
  return bytes;
}

void PrivateMemory::raise_floor(std::uint32_t line, std::uint32_t version) {
  copies_[line].floor = version;
  std::erase_if(pieces_, [&](const Piece& piece) {
    return piece.unit / units_per_line == line && piece.settled <= version;
  });
}

void PrivateMemory::versions(std::uint32_t line, LineMask mask,
                             std::vector<std::uint32_t>& versions) const {
  versions.clear();
  for (std::uint32_t v = copies_[line].floor; v <= memory_.latest(line); ++v) {
    const LineBytes bytes = seen(line, v);
    const bool known = std::any_of(versions.begin(), versions.end(), [&](std::uint32_t other) {
      return equal_masked(seen(line, other), bytes, mask);
    });
    if (!known) versions.push_back(v);
  }
}

LineBytes PrivateMemory::read(std::uint32_t line, std::uint32_t version) {
  if (dirty(line)) return copies_[line].bytes;
  const LineBytes bytes = seen(line, version);
  raise_floor(line, version);
  return bytes;
}

void PrivateMemory::write(std::uint32_t line, std::uint32_t version, const LineBytes& bytes,
                          LineMask mask) {
  Copy& copy = copies_[line];
  if (copy.dirty == 0) {
    copy.bytes = seen(line, version);
    raise_floor(line, version);
  }
  copy.dirty |= mask;
  copy_masked(copy.bytes, bytes, mask);
}

void PrivateMemory::write_through(std::uint32_t unit, const LineBytes& bytes, LineMask mask) {
  const std::uint32_t line = unit / units_per_line;
  if (dirty(line)) copy_masked(copies_[line].bytes, bytes, mask);
  for (Piece& piece : pieces_) {
    if (piece.unit != unit || piece.settled != pending) continue;
    piece.mask |= mask;
    copy_masked(piece.bytes, bytes, mask);
    return;
  }
  pieces_.push_back({.unit = unit, .mask = mask, .bytes = bytes, .settled = pending});
}

void PrivateMemory::write_back(std::uint32_t line) {
  memory_.change(line, copies_[line].bytes, ~LineMask{0});
  copies_[line].dirty = 0;
  raise_floor(line, memory_.latest(line));
}

void PrivateMemory::refresh(std::uint32_t line, LineMask mask) {
  Copy& copy = copies_[line];
  copy.dirty &= ~mask;
  raise_floor(line, memory_.latest(line));
  if (copy.dirty == 0) return;
  const LineBytes written = copy.bytes;
  copy.bytes = seen(line, copy.floor);
  copy_masked(copy.bytes, written, copy.dirty);
}

bool PrivateMemory::is_pending(std::uint32_t unit) const {
  return std::any_of(pieces_.begin(), pieces_.end(), [&](const Piece& piece) {
    return piece.unit == unit && piece.settled == pending;
  });
}

bool PrivateMemory::drained() const {
  return std::none_of(pieces_.begin(), pieces_.end(),
                      [](const Piece& piece) { return piece.settled == pending; });
}

void PrivateMemory::settle(std::uint32_t unit) {
  const std::uint32_t line = unit / units_per_line;
  for (Piece& piece : pieces_) {
    if (piece.unit != unit || piece.settled != pending) continue;
    memory_.change(line, piece.bytes, piece.mask);
    piece.settled = memory_.latest(line);
    break;
  }
  raise_floor(line, copies_[line].floor);
}

std::uint64_t PrivateMemory::hash() const {
  std::uint64_t hash = 0;
  for (const Store& store : stores_) hash = mix(mix(hash, store.word), store.value);
  for (std::uint32_t line = 0; line < copies_.size(); ++line) {
    const Copy& copy = copies_[line];
    if (copy.dirty != 0) {
      hash = mix(mix(hash, line), copy.dirty);
      for (std::size_t i = 0; i < line_bytes; i += unit_bytes) {
        std::uint64_t v = 0;
        std::memcpy(&v, copy.bytes.data() + i, sizeof v);
        hash = mix(hash, v);
      }
      continue;
    }
    // The latest version is hashed with memory.
    for (std::uint32_t v = copy.floor; v < memory_.latest(line); ++v)
      hash = mix(hash, memory_.hash_at(line, v) ^ line);
    hash = mix(hash, memory_.latest(line) - copy.floor);
  }
  for (const Piece& piece : pieces_) {
    hash = mix(mix(hash, piece.unit), piece.mask);
    const std::uint32_t line = piece.unit / units_per_line;
    hash = mix(hash, piece.settled == pending ? pending : memory_.latest(line) - piece.settled);
    std::uint64_t v = 0;
    std::memcpy(&v, piece.bytes.data() + piece.unit % units_per_line * unit_bytes, sizeof v);
    hash = mix(hash, v);
  }
  return hash;
}

}  // namespace tombolo::litmus
