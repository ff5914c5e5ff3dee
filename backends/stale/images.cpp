// SPDX-License-Identifier: Apache-2.0
#include "backends/stale/images.h"

#include <algorithm>
#include <new>

namespace tombolo::stale {
namespace {

constexpr std::uintptr_t page = 4096;
constexpr std::uintptr_t most = std::uintptr_t{1} << 30;

std::uintptr_t address(const machine::DataRegion& region) {
  return reinterpret_cast<std::uintptr_t>(region.memory);
}

}  // namespace

Images::Images(const Attachment& at) : by_home_(at.data.size()) {
  std::vector<machine::Home> homes;  // whose image is here, by address
  for (machine::Home home = 0; home < at.data.size(); ++home) {
    if (at.data[home].memory == nullptr) continue;
    if (home == at.self && at.own_view != nullptr)
      by_home_[home] = at.own_view;
    else
      homes.push_back(home);
  }
  if (homes.empty()) return;
  std::sort(homes.begin(), homes.end(), [&](machine::Home a, machine::Home b) {
    return address(at.data[a]) < address(at.data[b]);
  });
  std::vector<std::uintptr_t> starts;
  // The images are aligned as the regions are: the program may have asked for it.
  const std::uintptr_t first = address(at.data[homes.front()]);
  const std::uintptr_t unit = std::clamp(first & (~first + 1), page, most);
  const std::uintptr_t low = first / unit * unit;
  std::uintptr_t left_out = 0;
  std::uintptr_t end = low;
  for (const machine::Home home : homes) {
    const std::uintptr_t memory = address(at.data[home]);
    if (memory > end + 2 * unit) left_out += ((memory - end) / unit - 1) * unit;
    starts.push_back(memory - low - left_out);
    end = std::max<std::uintptr_t>(end, memory + at.data[home].bytes);
  }
  memory_ = host::ZeroMemory(end - low - left_out + unit);
  if (!memory_) throw std::bad_alloc();
  auto* const start = memory_.as<std::byte>();
  const std::uintptr_t behind = reinterpret_cast<std::uintptr_t>(start) % unit;
  for (std::size_t i = 0; i < homes.size(); ++i)
    by_home_[homes[i]] = start + (unit - behind) % unit + starts[i];
}

}  // namespace tombolo::stale
