// SPDX-License-Identifier: Apache-2.0
#include "host/memory/range_set.h"

#include <algorithm>
#include <iterator>

namespace tombolo::host {

void RangeSet::add(const AddressRange& range) {
  if (range.empty()) return;
  AddressRange whole = range;
  auto next = ends_.upper_bound(range.low);
  if (next != ends_.begin() && std::prev(next)->second >= range.low) --next;
  while (next != ends_.end() && next->first <= whole.high) {
    whole.low = std::min(whole.low, next->first);
    whole.high = std::max(whole.high, next->second);
    next = ends_.erase(next);
  }
  ends_.emplace(whole.low, whole.high);
}

void RangeSet::remove(const AddressRange& range) {
  for (const AddressRange& part : parts(range)) {
    const auto found = std::prev(ends_.upper_bound(part.low));
    const AddressRange whole{found->first, found->second};
    ends_.erase(found);
    if (whole.low < part.low) ends_.emplace(whole.low, part.low);
    if (part.high < whole.high) ends_.emplace(part.high, whole.high);
  }
}

std::vector<AddressRange> RangeSet::parts(const AddressRange& within) const {
  std::vector<AddressRange> found;
  auto next = ends_.upper_bound(within.low);
  if (next != ends_.begin()) --next;
  for (; next != ends_.end() && next->first < within.high; ++next) {
    const AddressRange part = common_part({next->first, next->second}, within);
    if (!part.empty()) found.push_back(part);
  }
  return found;
}

std::vector<AddressRange> RangeSet::gaps(const AddressRange& within) const {
  std::vector<AddressRange> found;
  std::uint64_t at = within.low;
  for (const AddressRange& part : parts(within)) {
    if (at < part.low) found.push_back({at, part.low});
    at = part.high;
  }
  if (at < within.high) found.push_back({at, within.high});
  return found;
}

std::vector<AddressRange> RangeSet::all() const { return parts({0, ~std::uint64_t{0}}); }

std::uint64_t RangeSet::bytes() const {
  std::uint64_t sum = 0;
  for (const auto& [low, high] : ends_) sum += high - low;
  return sum;
}

}  // namespace tombolo::host
