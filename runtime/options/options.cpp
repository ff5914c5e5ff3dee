// SPDX-License-Identifier: Apache-2.0
#include "runtime/options/options.h"

#include <fmt/format.h>

#include <optional>

#include "runtime/options/mistyped.h"
#include "runtime/options/table.h"
#include "sync/locks/families.h"

namespace tombolo::runtime {
namespace {

std::optional<Statistics> statistics_named(std::string_view name) {
  if (name == "json") return Statistics::json;
  if (name == "text") return Statistics::text;
  const auto on = switch_named(name);
  if (!on) return std::nullopt;
  return *on ? Statistics::text : Statistics::off;
}

// Puts the value of a text into a field of the options; false if it has none.
class Put {
 public:
  Put(Options& options, const OptionRow& row, std::string_view text)
      : options_(options), row_(row), text_(text) {}

  bool operator()(std::monostate) const { return true; }
  bool operator()(bool Options::*field) const {
    // Two names of its own mean yes and no, in this order; else those of a switch.
    const auto& choices = row_.option.choices;
    if (choices.size() == 2 && !switch_named(choices[0])) {
      if (text_ != choices[0] && text_ != choices[1]) return false;
      options_.*field = text_ == choices[0];
      return true;
    }
    return put(field, switch_named(text_), row_.negated);
  }
  bool operator()(std::uint64_t Options::*field) const { return put(field, number_in(text_)); }
  bool operator()(std::string Options::*field) const {
    options_.*field = std::string(text_);
    return true;
  }
  bool operator()(MachineId Options::*field) const { return put(field, machine_named(text_)); }
  bool operator()(sync::LockKind Options::*field) const {
    return put(field, sync::lock_family_named(text_));
  }
  bool operator()(Statistics Options::*field) const { return put(field, statistics_named(text_)); }

 private:
  template <class T>
  bool put(T Options::*field, const std::optional<T>& value) const {
    if (value) options_.*field = *value;
    return value.has_value();
  }
  bool put(bool Options::*field, const std::optional<bool>& value, bool negated) const {
    if (value) options_.*field = *value != negated;
    return value.has_value();
  }

  Options& options_;
  const OptionRow& row_;
  std::string_view text_;
};

bool understood(Options& options, const OptionRow& row, std::string_view text) {
  if (std::holds_alternative<std::monostate>(row.field)) return check(row.option, text).ok();
  if (row.asked != nullptr) options.*row.asked = true;
  return std::visit(Put(options, row, text), row.field);
}

// Names that look like one of the table's. Those of all readers are in it.
void complain_of_names(Options& options) {
  std::vector<std::string_view> known;
  for (const OptionRow& row : option_table())
    if (!row.option.variable.empty()) known.push_back(row.option.variable);
  for (const std::string& name : variables_that_begin("TOMBOLO"))
    if (const auto meant = meant_by(name, known))
      options.complaints.push_back(
          fmt::format("{} is no setting of Tombolo's; it may be meant for {}", name, *meant));
}

}  // namespace

Options read_environment() {
  Options options;
  for (const OptionRow& row : option_table()) {
    if (row.reader != Reader::library || row.option.variable.empty()) continue;
    const std::string text = text_of(row.option);
    if (!text.empty() && !understood(options, row, text))
      options.complaints.push_back(
          fmt::format("{}='{}' is not understood; it may be {}{}", row.option.variable, text,
                      row.option.choices.empty() ? "" : "one of ", values_of(row.option)));
  }
  complain_of_names(options);
  return options;
}

Status apply_info(Options& options, std::string_view key, std::string_view text) {
  for (const OptionRow& row : option_table()) {
    if (row.option.info_key != key || key.empty()) continue;
    if (!std::visit(Put(options, row, text), row.field))
      return Status::bad_configuration(
          fmt::format("info key {}='{}' is not understood and ignored", key, text));
    if (row.asked != nullptr) options.*row.asked = true;
  }
  return {};
}

std::vector<std::string_view> info_keys() {
  std::vector<std::string_view> keys;
  for (const OptionRow& row : option_table())
    if (!row.option.info_key.empty()) keys.push_back(row.option.info_key);
  return keys;
}

}  // namespace tombolo::runtime
