// SPDX-License-Identifier: Apache-2.0
#include "litmus/explorer/transition.h"

#include <fmt/format.h>

#include <charconv>

namespace tombolo::litmus {
namespace {

using Kind = Transition::Kind;

bool take_number(std::string_view& text, std::uint32_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

bool take(std::string_view& text, char c) {
  if (text.empty() || text.front() != c) return false;
  text.remove_prefix(1);
  return true;
}

bool one_from_text(std::string_view word, Transition& transition) {
  if (take(word, 's'))
    transition.kind = Kind::leave_buffer;
  else if (take(word, 'w'))
    transition.kind = Kind::settle;
  else if (take(word, 'e'))
    transition.kind = Kind::evict;
  std::uint32_t core = 0;
  if (!take_number(word, core) || core > 255) return false;
  transition.core = static_cast<std::uint8_t>(core);
  if (transition.kind == Kind::step && take(word, 'v'))
    transition.kind = Kind::step_with_age;
  else if (transition.kind == Kind::step || transition.kind == Kind::leave_buffer)
    return word.empty();
  else if (!take(word, '.'))
    return false;
  return take_number(word, transition.index) && word.empty();
}

}  // namespace

std::string to_text(const Transition& transition) {
  switch (transition.kind) {
    case Kind::step:
      return fmt::format("{}", transition.core);
    case Kind::step_with_age:
      return fmt::format("{}v{}", transition.core, transition.index);
    case Kind::leave_buffer:
      return fmt::format("s{}", transition.core);
    case Kind::settle:
      return fmt::format("w{}.{}", transition.core, transition.index);
    case Kind::evict:
      break;
  }
  return fmt::format("e{}.{}", transition.core, transition.index);
}

std::string to_text(const std::vector<Transition>& path) {
  std::string text;
  for (const Transition& transition : path) {
    if (!text.empty()) text += ' ';
    text += to_text(transition);
  }
  return text;
}

bool from_text(std::string_view text, std::vector<Transition>& path) {
  path.clear();
  constexpr std::string_view separators = " ,\t\n";
  for (;;) {
    const std::size_t start = text.find_first_not_of(separators);
    if (start == std::string_view::npos) return true;
    text.remove_prefix(start);
    const std::string_view word = text.substr(0, text.find_first_of(separators));
    Transition transition;
    if (!one_from_text(word, transition)) return false;
    path.push_back(transition);
    text.remove_prefix(word.size());
  }
}

}  // namespace tombolo::litmus
