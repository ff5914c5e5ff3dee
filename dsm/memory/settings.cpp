// SPDX-License-Identifier: Apache-2.0
#include "dsm/memory/settings.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/options.h"
#include "runtime/options/dsm_options.h"

namespace tombolo::dsm {
namespace {

template <class Kind>
Status read_choice(const Option& option, Kind& out) {
  const std::string text = text_of(option);
  TOMBOLO_TRY(check(option, text));
  const auto found = std::ranges::find(option.choices, std::string_view(text));
  if (found != option.choices.end()) out = static_cast<Kind>(found - option.choices.begin());
  return {};
}

Status read_size(const Option& option, std::uint64_t& out) {
  const std::string text = text_of(option);
  if (text.empty()) return {};
  const auto bytes = bytes_in(text);
  if (!bytes) return not_understood(option, text);
  out = *bytes;
  return {};
}

}  // namespace

Status read_servers(Thread& out) {
  constexpr std::uint64_t most = 4096;
  const std::string text = text_of(runtime::dsm_servers_option);
  if (text.empty()) return {};
  const auto number = number_in(text);
  if (!number || *number > most) return not_understood(runtime::dsm_servers_option, text);
  out = static_cast<Thread>(*number);
  return {};
}

Status read_settings(Settings& out) {
  TOMBOLO_TRY(read_choice(runtime::dsm_transport_option, out.transport));
  TOMBOLO_TRY(read_choice(runtime::dsm_protocol_option, out.protocol));
  TOMBOLO_TRY(read_servers(out.servers));
  TOMBOLO_TRY(read_size(runtime::dsm_memory_option, out.memory_bytes));
  return read_size(runtime::dsm_cache_option, out.cache_bytes);
}

std::optional<std::uint64_t> bytes_in(std::string_view text) {
  constexpr std::string_view units = "KMGT";
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto number = number_in(text.substr(0, digits));
  const std::string_view unit = text.substr(digits);
  if (!number || unit.empty() || unit == "B") return number;
  const std::size_t power = units.find(unit.front());
  const std::string_view rest = unit.substr(1);
  if (power == std::string_view::npos || (!rest.empty() && rest != "iB")) return std::nullopt;
  const std::size_t shift = 10 * (power + 1);
  if (*number > ~std::uint64_t{0} >> shift) return std::nullopt;
  return *number << shift;
}

}  // namespace tombolo::dsm
