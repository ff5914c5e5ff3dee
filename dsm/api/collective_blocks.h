// SPDX-License-Identifier: Apache-2.0
// Purpose: blocks of the program's memory that all threads take and give back together: each thread
// keeps books of its own, which are alike, and nothing is exchanged.
//
// Invariants: CBL1 the first range that is free and long enough is taken: equal calls give equal
//                  blocks.
//             CBL2 blocks are whole lines, and from a page on whole pages: threads that use
//                  different large blocks share no page.
// Thread safety: one thread for each object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>

#include "base/rounding.h"
#include "host/memory/range_set.h"

namespace tombolo::dsm {

class CollectiveBlocks {
 public:
  CollectiveBlocks(std::span<std::byte> memory, std::size_t page_bytes)
      : all_{reinterpret_cast<std::uint64_t>(memory.data()),
             reinterpret_cast<std::uint64_t>(memory.data()) + memory.size()},
        page_bytes_(page_bytes) {}

  // Null if no free range is long enough.
  void* take(std::size_t bytes) {
    const std::uint64_t unit = bytes >= page_bytes_ ? page_bytes_ : line_bytes;
    if (bytes > all_.bytes()) return nullptr;
    const std::uint64_t size = round_up(std::max<std::uint64_t>(bytes, 1), unit);
    for (const host::AddressRange& gap : taken_.gaps(all_)) {
      const std::uint64_t low = round_up(gap.low, unit);
      if (low > gap.high || gap.high - low < size) continue;
      taken_.add({low, low + size});
      sizes_[low] = bytes;
      return reinterpret_cast<void*>(low);
    }
    return nullptr;
  }

  // Those that were asked for; no value for an address that is no block.
  const std::size_t* bytes_of(const void* block) const {
    const auto found = sizes_.find(reinterpret_cast<std::uint64_t>(block));
    return found == sizes_.end() ? nullptr : &found->second;
  }

  // `block` is one.
  void give_back(const void* block) {
    const auto found = sizes_.find(reinterpret_cast<std::uint64_t>(block));
    const std::uint64_t unit = found->second >= page_bytes_ ? page_bytes_ : line_bytes;
    const std::uint64_t size = round_up(std::max<std::uint64_t>(found->second, 1), unit);
    taken_.remove({found->first, found->first + size});
    sizes_.erase(found);
  }

 private:
  static constexpr std::uint64_t line_bytes = 64;

  host::AddressRange all_;
  std::size_t page_bytes_;
  host::RangeSet taken_;
  std::map<std::uint64_t, std::size_t> sizes_;
};

}  // namespace tombolo::dsm
