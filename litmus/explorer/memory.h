// SPDX-License-Identifier: Apache-2.0
// Purpose: the memory of an explored run: sync words, and lines of data with all their past
// contents, since a core without coherence may still see any of them.
//
// Invariants: VM1 two neighbouring versions of a line differ.
// Thread safety: none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "litmus/explorer/hash.h"
#include "machine/place.h"

namespace tombolo::litmus {

inline constexpr std::size_t line_bytes = 64;
inline constexpr std::size_t unit_bytes = 8;
inline constexpr std::size_t units_per_line = line_bytes / unit_bytes;
using LineBytes = std::array<std::byte, line_bytes>;
// Bit i stands for byte i of a line.
using LineMask = std::uint64_t;

struct MemoryShape {
  machine::Home cores = 2;
  std::size_t sync_bytes = 0;  // per home
  std::size_t data_bytes = 0;  // per home
};

class Memory {
 public:
  explicit Memory(const MemoryShape& shape);

  // Everything is zero again.
  void clear();

  const MemoryShape& shape() const { return shape_; }
  std::size_t words() const { return words_.size(); }
  std::uint32_t lines() const { return static_cast<std::uint32_t>(lines_.size()); }
  std::size_t word_index(machine::SyncPlace place) const;
  std::uint32_t line_index(machine::DataPlace place) const;
  machine::SyncPlace place_of_word(std::size_t word) const;
  machine::DataPlace place_of_line(std::uint32_t line) const;

  std::uint64_t load(std::size_t word) const { return words_[word]; }
  void store(std::size_t word, std::uint64_t v) {
    words_hash_ ^= share(word, words_[word]) ^ share(word, v);
    words_[word] = v;
  }

  std::uint32_t latest(std::uint32_t line) const {
    return static_cast<std::uint32_t>(lines_[line].size() - 1);
  }
  const LineBytes& at(std::uint32_t line, std::uint32_t version) const {
    return lines_[line][version].bytes;
  }
  // The bytes of `mask` come into memory: a new version if that changes anything.
  void change(std::uint32_t line, const LineBytes& bytes, LineMask mask);

  std::uint64_t words_hash() const { return words_hash_; }
  std::uint64_t hash_at(std::uint32_t line, std::uint32_t version) const {
    return lines_[line][version].hash;
  }

 private:
  struct Version {
    LineBytes bytes{};
    std::uint64_t hash = 0;
  };
  // A word's part of the hash; 0 for the value 0, so that clear() need not compute it.
  static std::uint64_t share(std::size_t word, std::uint64_t v) {
    return v == 0 ? 0 : mix(word, v);
  }

  MemoryShape shape_;
  std::size_t lines_per_home_;
  std::vector<std::uint64_t> words_;
  std::uint64_t words_hash_ = 0;
  std::vector<std::vector<Version>> lines_;  // by line, then by version
};

}  // namespace tombolo::litmus
