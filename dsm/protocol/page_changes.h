// SPDX-License-Identifier: Apache-2.0
// Purpose: small changes of a page as updates, which travel with a lock or a notice: the bytes that
// differ from its twin.
//
// Invariants: DPC1 an update has no byte that is not changed: other threads may have stored to its
//                  neighbours.
// Thread safety: plain functions.
#pragma once

#include <algorithm>
#include <bit>
#include <span>
#include <vector>

#include "dsm/protocol/page_diff.h"
#include "dsm/protocol/transport.h"

namespace tombolo::dsm {

// Of a page's frame or twin.
inline void put_into(std::span<std::byte> page, const Update& update) {
  const std::span<std::byte> to = page.subspan(update.offset, update.bytes);
  for (std::size_t i = 0; i < to.size(); ++i)
    if ((update.changed >> i & 1) != 0) to[i] = update.contents[i];
}

// The bytes of `frame` behind `at` that are not zero in `diff`, as far as they fit.
inline Update change_at(std::span<const std::byte> frame, std::span<const std::byte> diff,
                        std::size_t at) {
  const std::size_t most = std::min(Update::capacity, diff.size() - at);
  Update update{.offset = static_cast<std::uint32_t>(at)};
  for (std::size_t i = 0; i < most; ++i)
    if (diff[at + i] != std::byte{}) update.changed |= std::uint32_t{1} << i;
  update.bytes = static_cast<std::uint32_t>(std::bit_width(update.changed));
  copy(frame.subspan(at, update.bytes), update.contents);
  return update;
}

// The whole change, or none if it needs more than `most` updates. `diff` is the difference of the
// page from its twin.
inline std::vector<Update> changes_of(std::span<const std::byte> frame,
                                      std::span<const std::byte> diff, std::size_t most) {
  constexpr std::size_t step = sizeof(std::uint64_t);
  constexpr std::size_t long_step = 16 * step;
  std::vector<Update> updates;
  for (std::size_t at = 0; at < diff.size();) {
    if (diff.size() - at >= long_step && all_zero(diff.subspan(at, long_step))) {
      at += long_step;
      continue;
    }
    if (all_zero(diff.subspan(at, std::min(step, diff.size() - at)))) {
      at += step;
      continue;
    }
    if (updates.size() == most) return {};
    updates.push_back(change_at(frame, diff, at));
    at += Update::capacity;
  }
  return updates;
}

}  // namespace tombolo::dsm
