// SPDX-License-Identifier: Apache-2.0
// Purpose: the table of options as a page for people and as JSON for programs.
// Thread safety: yes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "runtime/options/table.h"
#include "sync/locks/families.h"

namespace tombolo::runtime {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* head = R"(# Settings

This page is written by the program `tombolo-settings` from the table that the libraries use
(`runtime/options/table.cpp`); a test compares the two.

An environment variable holds for all windows of a process. An info key holds for the window that is created
with it, and wins over the variable. `on` and `off` may also be written `1` and `0`, `true` and `false`, `yes`
and `no` (but for `TOMBOLO_WRITE_WATCH`). A program with a variable whose value is not understood is ended with a
message when it creates its first window; without windows the message is all. So is one with a variable that has
nearly the name of a setting, such as `TOMBOLO_MACHIN`. With an instruction of
`TOMBOLO_FLUSH` that this host does not have, windows on `flushed` cannot be created. Info keys are hints: one
that is not understood is reported once, and ignored.

| environment | info key | values | initially | meaning |
|---|---|---|---|---|
)";

constexpr const char* of_command = R"(
The command `tombolo` and the experiments on the simulated chip read besides:

| environment | values | meaning |
|---|---|---|
)";

std::string code(std::string_view text) {
  return text.empty() ? std::string() : fmt::format("`{}`", text);
}

std::string values(const Option& option) {
  if (option.choices.empty()) return std::string(option.values);
  std::vector<std::string> names;
  for (const std::string_view choice : option.choices) names.push_back(code(choice));
  return fmt::format("{}", fmt::join(names, ", "));
}

const char* name(sync::LockOrder order) {
  switch (order) {
    case sync::LockOrder::writers_first:
      return "writers-first";
    case sync::LockOrder::arrival:
      return "arrival";
    case sync::LockOrder::none:
      break;
  }
  return "none";
}

// Those that a window may use, the default first.
Json lock_families() {
  Json all = Json::array();
  sync::WindowLockFamilies::for_each([&]<class Family>() {
    all.push_back({{"name", Family::traits.name},
                   {"order", name(Family::traits.order)},
                   {"reader_bias", Family::traits.reader_bias}});
  });
  return all;
}

const char* name(Reader reader) {
  switch (reader) {
    case Reader::library:
      return "library";
    case Reader::chip:
      return "chip";
    case Reader::command:
      break;
  }
  return "command";
}

}  // namespace

std::string options_as_markdown() {
  std::string libraries;
  std::string others;
  for (const OptionRow& row : option_table()) {
    const Option& option = row.option;
    if (row.reader == Reader::library)
      libraries +=
          fmt::format("| {} | {} | {} | {} | {} |\n", code(option.variable), code(option.info_key),
                      values(option), code(option.initial), option.meaning);
    else
      others +=
          fmt::format("| {} | {} | {} |\n", code(option.variable), values(option), option.meaning);
  }
  return head + libraries + of_command + others;
}

std::string options_as_json() {
  Json options = Json::array();
  for (const OptionRow& row : option_table()) {
    const Option& option = row.option;
    options.push_back({{"variable", option.variable},
                       {"info_key", option.info_key},
                       {"choices", option.choices},
                       {"values", values_of(option)},
                       {"initial", option.initial},
                       {"meaning", option.meaning},
                       {"reader", name(row.reader)}});
  }
  const Json all{
      {"options", options}, {"machines", machine_names()}, {"lock_families", lock_families()}};
  return all.dump(2) + "\n";
}

}  // namespace tombolo::runtime
