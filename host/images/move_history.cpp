// SPDX-License-Identifier: Apache-2.0
#include "host/images/move_history.h"

#include <algorithm>

namespace tombolo::host {

void MoveHistory::ended(const AddressRange& pages, Duration lived, Duration moving) {
  const Past* const last = of(pages);
  const int before = last != nullptr ? last->short_lives : 0;
  std::erase_if(past_, [&](const Past& each) { return each.pages.overlaps(pages); });
  if (past_.size() == most_ranges) past_.erase(past_.begin());
  const int short_lives = lived < moving ? std::min(before + 1, most_short_lives) : 0;
  past_.push_back({pages, moving, short_lives});
}

bool MoveHistory::pays(const AddressRange& pages) const {
  const Past* const last = of(pages);
  return last == nullptr || last->short_lives < most_short_lives;
}

MoveHistory::Duration MoveHistory::moving(const AddressRange& pages) const {
  const Past* const last = of(pages);
  return last != nullptr ? last->moving : Duration{};
}

// Of several the latest.
const MoveHistory::Past* MoveHistory::of(const AddressRange& pages) const {
  const auto found = std::find_if(past_.rbegin(), past_.rend(),
                                  [&](const Past& each) { return each.pages.overlaps(pages); });
  return found != past_.rend() ? &*found : nullptr;
}

}  // namespace tombolo::host
