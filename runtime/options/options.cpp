// SPDX-License-Identifier: Apache-2.0
#include "runtime/options/options.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/machines.h"
#include "runtime/options/mistyped.h"
#include "sync/locks/families.h"

namespace tombolo::runtime {
namespace {

template <class... Machines>
constexpr bool lists_machines(TypeList<Machines...>) {
  const std::string_view names[] = {Machines::name...};
  const auto& choices = options::machine.choices;
  return std::equal(std::begin(names), std::end(names), choices.begin(), choices.end());
}
constexpr bool lists_lock_families() {
  const auto& names = sync::lock_family_names;
  const auto& choices = options::passive_sync.choices;
  return std::equal(names.begin(), names.end(), choices.begin(), choices.end());
}
// The values are read by their places.
static_assert(lists_machines(ServedMachines()),
              "TOMBOLO_MACHINE in base/options.toml has the names of backends/machines.h");
static_assert(lists_lock_families(),
              "TOMBOLO_PASSIVE_SYNC in base/options.toml has the names of sync/locks/families.h");

void complain_of_former_names(Options& options) {
  for (const Option* option : tombolo::options::all)
    if (!option->formerly.empty() && is_set({.variable = option->formerly}))
      options.complaints.push_back(
          fmt::format("{} is called {}", option->formerly, option->variable));
}

// Names that look like one of the table's. Those of all readers are in it.
void complain_of_names(Options& options) {
  std::vector<std::string_view> known;
  for (const Option* option : tombolo::options::all)
    if (!option->variable.empty()) known.push_back(option->variable);
  for (const std::string& name : variables_that_begin("TOMBOLO"))
    if (const auto meant = meant_by(name, known))
      options.complaints.push_back(
          fmt::format("{} is no setting of Tombolo's; it may be meant for {}", name, *meant));
}

}  // namespace

Options read_environment() {
  Options options;
  for (const Option* option : tombolo::options::all) {
    if (option->reader != OptionReader::library) continue;
    const Status understood = check(*option, text_of(*option));
    if (!understood.ok()) options.complaints.push_back(understood.message());
  }
  (void)read_options(options).ok();  // complained of above
  complain_of_former_names(options);
  complain_of_names(options);
  return options;
}

Status apply_info(Options& options, std::string_view key, std::string_view text) {
  Status applied;
  for_each_option(options, [&](const Option& option, auto& field) {
    if (option.info_key == key && !key.empty() && !parse(option, text, field).ok())
      applied = Status::bad_configuration(
          fmt::format("info key {}='{}' is not understood and ignored", key, text));
  });
  return applied;
}

std::vector<std::string_view> info_keys() {
  std::vector<std::string_view> keys;
  for (const Option* option : options::all)
    if (!option->info_key.empty()) keys.push_back(option->info_key);
  return keys;
}

}  // namespace tombolo::runtime
