// SPDX-License-Identifier: Apache-2.0
// Purpose: free memory by first fit: the run-time's own memory (002 section 5.2.4), and that of a
// process. It knows addresses only, and costs no time by itself.
//
// Invariants: FFH1 free blocks are apart by at least one used byte, and sorted.
// Thread safety: none.
#pragma once

#include <cstdint>
#include <map>

#include "base/status.h"
#include "simulator/kernel/identifiers.h"

namespace tombolo::experiments {

class Heap {
 public:
  enum class From : std::uint8_t { below, above };

  // Gives it memory, once for each range.
  void add(simulator::Address first, std::uint64_t bytes);

  // no_memory, with the free bytes. Whole lines; `above`: from the end of the highest block
  // that fits.
  Status allocate(std::uint64_t bytes, simulator::Address* at, From from = From::below);
  // A block of allocate().
  void free(simulator::Address at);

  std::uint64_t bytes_of(simulator::Address at) const { return used_.at(at.byte()); }
  std::uint64_t bytes_free() const { return bytes_free_; }
  std::uint64_t bytes_used() const { return bytes_used_; }

 private:
  using Blocks = std::map<std::uint64_t, std::uint64_t>;  // first byte, bytes

  Blocks::iterator find(std::uint64_t bytes, From from);
  void give(std::uint64_t first, std::uint64_t bytes);

  Blocks free_;
  Blocks used_;
  std::uint64_t bytes_free_ = 0;
  std::uint64_t bytes_used_ = 0;
};

}  // namespace tombolo::experiments
