// SPDX-License-Identifier: Apache-2.0
// Purpose: a set of addresses as disjoint ranges. Ranges that touch are one.
// Thread safety: none of its own.
#pragma once

#include <cstdint>
#include <map>
#include <new>
#include <vector>

#include "host/memory/address_space.h"

namespace tombolo::host {

class RangeSet {
 public:
  void add(const AddressRange& range);
  void remove(const AddressRange& range);
  void clear() { ends_.clear(); }
  // Empty, too, without a call of the allocator: its memory is lost.
  void abandon() { new (&ends_) std::map<std::uint64_t, std::uint64_t>; }

  bool overlaps(const AddressRange& range) const { return !parts(range).empty(); }
  // The parts of `within` that are in the set, by address; and those that are not.
  std::vector<AddressRange> parts(const AddressRange& within) const;
  std::vector<AddressRange> gaps(const AddressRange& within) const;
  std::vector<AddressRange> all() const;

  std::uint64_t bytes() const;
  std::size_t size() const { return ends_.size(); }

 private:
  std::map<std::uint64_t, std::uint64_t> ends_;  // of the range that starts at the key
};

}  // namespace tombolo::host
