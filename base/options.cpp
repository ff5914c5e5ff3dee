// SPDX-License-Identifier: Apache-2.0
#include "base/options.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace tombolo {
namespace {

// The words for "on" and for "off" take turns.
constexpr std::string_view switch_words[] = {"on", "off", "1", "0", "true", "false", "yes", "no"};

std::optional<std::uint64_t> place_of(std::string_view text,
                                      std::span<const std::string_view> names) {
  const auto found = std::find(names.begin(), names.end(), text);
  if (found == names.end()) return std::nullopt;
  return static_cast<std::uint64_t>(found - names.begin());
}

std::optional<std::uint64_t> choice_in(const Option& option, std::string_view text) {
  const auto place = place_of(text, option.choices);
  if (place || option.on.empty()) return place;
  const auto on = switch_named(text);
  if (!on) return std::nullopt;
  return *on ? place_of(option.on, option.choices) : 0;
}

// Names between commas, each of which is one of the choices.
std::optional<std::uint64_t> names_in(const Option& option, std::string_view text) {
  std::uint64_t places = 0;
  for (;;) {
    const std::size_t end = std::min(text.find(','), text.size());
    const auto place = place_of(text.substr(0, end), option.choices);
    if (!place) return std::nullopt;
    places |= std::uint64_t{1} << *place;
    if (end == text.size()) return places;
    text.remove_prefix(end + 1);
  }
}

// A toggle with names of its own has no others.
std::optional<std::uint64_t> toggle_in(const Option& option, std::string_view text) {
  if (!option.choices.empty() && !switch_named(option.choices.front()))
    return place_of(text, option.choices);
  const auto on = switch_named(text);
  if (!on) return std::nullopt;
  return *on ? 0 : 1;
}

std::optional<std::uint64_t> within(const Option& option, std::optional<std::uint64_t> value) {
  return value && *value >= option.least && *value <= option.most ? value : std::nullopt;
}

}  // namespace

std::optional<bool> switch_named(std::string_view name) {
  const auto place = place_of(name, switch_words);
  if (!place) return std::nullopt;
  return *place % 2 == 0;
}

std::optional<std::uint64_t> number_in(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
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

std::string text_of(const Option& option) {
  const char* const text = std::getenv(std::string(option.variable).c_str());
  return text != nullptr ? text : "";
}

bool is_set(const Option& option) { return !text_of(option).empty(); }

std::vector<std::string> variables_that_begin(std::string_view start) {
  std::vector<std::string> names;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const std::size_t end = text.find('=');
    if (text.starts_with(start) && end != std::string_view::npos && end + 1 < text.size())
      names.emplace_back(text.substr(0, end));
  }
  return names;
}

Status not_understood(const Option& option, std::string_view text) {
  return Status::bad_configuration(
      fmt::format("{} is '{}'; it may be {}", option.variable, text, option.values));
}

Status check(const Option& option, std::string_view text) {
  if (text.empty() || detail::value_of(option, text)) return {};
  return not_understood(option, text);
}

std::optional<std::uint64_t> detail::value_of(const Option& option, std::string_view text) {
  switch (option.type) {
    case OptionType::choice:
      return choice_in(option, text);
    case OptionType::names:
      return names_in(option, text);
    case OptionType::toggle:
      return toggle_in(option, text);
    case OptionType::number:
      return within(option, number_in(text));
    case OptionType::size:
      return within(option, bytes_in(text));
    case OptionType::text:
    case OptionType::path:
    case OptionType::folder:
      break;
  }
  return 0;
}

}  // namespace tombolo
