// SPDX-License-Identifier: Apache-2.0
// Purpose: options of a user: environment variables of a process, info keys of a window. The table
// of all of them is base/options.toml. The build makes base/option_table.h of it, with a constant
// for each, and a structure for each interface, whose fields are read by their types:
//
//   struct DsmOptions { TransportKind transport = TransportKind::map; ... };   // made
//   DsmOptions options;
//   TOMBOLO_TRY(read_options(options));
//
// This is the only place that reads the environment, and the only one that judges a value.
// Invariants: OP1 a variable that is set to nothing counts as not set.
//             OP2 a text that is not understood changes nothing.
// Thread safety: as getenv: any thread, while no thread changes the environment.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/status.h"

namespace tombolo {

enum class OptionType : std::uint8_t { text, choice, names, toggle, number, size, path, folder };
// The programs that read an option.
enum class OptionReader : std::uint8_t { library, chip, command };

// The fields of a row of base/options.toml, which has their meanings.
struct Option {
  std::string_view variable = {};  // empty: set by the info key alone
  std::string_view formerly = {};  // the variable's name before, which is refused; empty: none
  std::string_view info_key = {};  // of MPI windows; empty: none
  OptionType type = OptionType::text;
  std::span<const std::string_view> choices = {};  // of a choice or names, and the two of a toggle
  std::string_view values = {};                    // in words: "a number from 0", "a path"
  std::string_view on = {};  // of a choice: that which the words of a switch for "on" stand for
  std::uint64_t least = 0;   // of a number or a size
  std::uint64_t most = ~std::uint64_t{0};
  OptionReader reader = OptionReader::library;
};

// The meaning of a word of a switch: on, 1, true and yes; off, 0, false and no.
std::optional<bool> switch_named(std::string_view name);

// A decimal number from 0 that 64 bits hold; nullopt for anything else.
std::optional<std::uint64_t> number_in(std::string_view text);

// "4096", "64KiB", "512MiB", "2GiB" and the like, with K, M, G or T alone meaning the same; nullopt
// for anything else, and for more than 64 bits hold.
std::optional<std::uint64_t> bytes_in(std::string_view text);

// The text in the environment; empty if the variable is not set.
std::string text_of(const Option& option);
bool is_set(const Option& option);
// The names of the variables of the environment that begin so and are set to something.
std::vector<std::string> variables_that_begin(std::string_view start);

// The error for a text that is none of the option's values; it names the variable, the text and the
// values.
Status not_understood(const Option& option, std::string_view text);
// Ok, or that error. An empty text is ok.
Status check(const Option& option, std::string_view text);

// --- Values --------------------------------------------------------------------------------------

namespace detail {

// The place of a choice, or of "on" (0) and "off" (1) of a toggle; of names, a bit for the place of
// each; the number, or the bytes of a size. None if the text is no value of the option.
std::optional<std::uint64_t> value_of(const Option& option, std::string_view text);

template <class T>
concept Enumeration = std::is_enum_v<T>;

inline void put(std::uint64_t value, bool& out) { out = value == 0; }
template <std::unsigned_integral T>
requires(!std::same_as<T, bool>) void put(std::uint64_t value, T& out) {
  out = static_cast<T>(value);
}
template <Enumeration T>
void put(std::uint64_t value, T& out) {
  out = static_cast<T>(value);
}
template <class T>
void put(std::uint64_t value, std::optional<T>& out) {
  put(value, out.emplace());
}

}  // namespace detail

// Puts the value of a text into the field that the table has for the option.
template <class T>
Status parse(const Option& option, std::string_view text, T& out) {
  const std::optional<std::uint64_t> value = detail::value_of(option, text);
  if (!value) return not_understood(option, text);
  detail::put(*value, out);
  return {};
}
inline Status parse(const Option& /*option*/, std::string_view text, std::string& out) {
  out = text;
  return {};
}

// The value in the environment, if there is one.
template <class T>
Status read_option(const Option& option, T& out) {
  const std::string text = text_of(option);
  return text.empty() ? Status() : parse(option, text, out);
}

// Reads all fields of an interface's options, also those behind an error; returns the first error.
template <class Options>
Status read_options(Options& out) {
  Status first;
  for_each_option(out, [&](const Option& option, auto& field) {
    Status read = read_option(option, field);
    if (first.ok()) first = std::move(read);
  });
  return first;
}

}  // namespace tombolo
