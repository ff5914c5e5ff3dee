// SPDX-License-Identifier: Apache-2.0
#include "runtime/options/mistyped.h"

#include <algorithm>
#include <numeric>

namespace tombolo::runtime {
namespace {

// Of names that all begin alike.
constexpr std::string_view start = "TOMBOLO_";
// Letters behind that from which on two may be wrong.
constexpr std::size_t long_name = 7;

std::size_t allowed(std::string_view name) {
  return name.size() >= start.size() + long_name ? 2 : 1;
}

}  // namespace

std::size_t difference(std::string_view a, std::string_view b) {
  std::vector<std::size_t> earlier(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool other = a[i - 1] != b[j - 1];
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (other ? 1 : 0)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], earlier[j - 2] + 1);
    }
    earlier.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

std::optional<std::string_view> meant_by(std::string_view given,
                                         const std::vector<std::string_view>& names) {
  std::optional<std::string_view> nearest;
  std::size_t least = allowed(given) + 1;
  for (const std::string_view name : names) {
    const std::size_t distance = difference(given, name);
    if (distance == 0) return std::nullopt;
    if (distance >= least) continue;
    least = distance;
    nearest = name;
  }
  return nearest;
}

}  // namespace tombolo::runtime
