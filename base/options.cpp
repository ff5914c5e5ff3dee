// SPDX-License-Identifier: Apache-2.0
#include "base/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace tombolo {

std::optional<bool> switch_named(std::string_view name) {
  const auto* const found = std::find(std::begin(switch_choices), std::end(switch_choices), name);
  if (found == std::end(switch_choices)) return std::nullopt;
  return (found - std::begin(switch_choices)) % 2 == 0;
}

std::optional<std::uint64_t> number_in(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
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

std::string values_of(const Option& option) {
  if (option.choices.empty()) return std::string(option.values);
  return fmt::format("{}", fmt::join(option.choices, ", "));
}

Status check(const Option& option, std::string_view text) {
  const auto& choices = option.choices;
  if (text.empty() || choices.empty()) return {};
  if (std::find(choices.begin(), choices.end(), text) != choices.end()) return {};
  return not_understood(option, text);
}

Status not_understood(const Option& option, std::string_view text) {
  return Status::bad_configuration(
      fmt::format("{} is '{}'; it may be {}", option.variable, text, values_of(option)));
}

}  // namespace tombolo
