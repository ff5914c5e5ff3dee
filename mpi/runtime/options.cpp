// SPDX-License-Identifier: Apache-2.0
#include "mpi/runtime/options.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdlib>

#include "sync/locks/families.h"

namespace tombolo::mpi {
namespace {

template <class T>
struct Named {
  std::string_view name;
  T value;
};
constexpr Named<MachineKind> kMachines[] = {{"coherent", MachineKind::coherent},
                                            {"flushed", MachineKind::flushed},
                                            {"stale", MachineKind::stale}};
constexpr auto kLocks = [] {
  std::array<Named<sync::LockKind>, sync::lock_family_names.size()> table;
  for (std::size_t i = 0; i < table.size(); ++i)
    table[i] = {sync::lock_family_names[i], sync::LockKind(i)};
  return table;
}();
constexpr Named<bool> kSwitches[] = {{"on", true},  {"off", false}, {"1", true},
                                     {"0", false},  {"true", true}, {"false", false},
                                     {"yes", true}, {"no", false}};

template <class Table>
auto find(const Table& table, std::string_view name) {
  std::optional<decltype(table[0].value)> found;
  for (const auto& row : table)
    if (row.name == name) found = row.value;
  return found;
}

template <class Table>
std::string choices(const Table& table) {
  std::string all;
  for (const auto& row : table) all += fmt::format("{}{}", all.empty() ? "" : ", ", row.name);
  return all;
}

class Environment {
 public:
  explicit Environment(Options& options) : options_(options) {}

  template <class Table, class T>
  void choose(const char* variable, const Table& table, T& value) {
    const char* text = std::getenv(variable);
    if (text == nullptr || *text == '\0') return;
    if (const auto found = find(table, text)) {
      value = *found;
    } else {
      complain(variable, text, "one of " + choices(table));
    }
  }

  void number(const char* variable, std::uint64_t& value) {
    const char* text = std::getenv(variable);
    if (text == nullptr || *text == '\0') return;
    const std::string_view view(text);
    std::uint64_t parsed = 0;
    const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), parsed);
    if (error == std::errc() && end == view.data() + view.size()) {
      value = parsed;
    } else {
      complain(variable, text, "a number from 0");
    }
  }

 private:
  void complain(const char* variable, const char* text, const std::string& wanted) {
    options_.complaints.push_back(
        fmt::format("{}='{}' is not understood; it may be {}", variable, text, wanted));
  }
  Options& options_;
};

}  // namespace

Options read_environment() {
  constexpr Named<bool> atomics[] = {{"full", true}, {"none", false}};
  Options options;
  Environment environment(options);
  environment.choose("TOMBOLO_MACHINE", kMachines, options.machine);
  environment.number("TOMBOLO_SEED", options.seed);
  environment.number("TOMBOLO_EVICTIONS", options.evictions);
  environment.choose("TOMBOLO_STATS", kSwitches, options.stats);
  environment.choose("TOMBOLO_ATOMICS", atomics, options.native_atomics);
  environment.choose("TOMBOLO_PASSIVE_SYNC", kLocks, options.locks);
  environment.choose("TOMBOLO_BACKOFF", kSwitches, options.backoff);
  environment.choose("TOMBOLO_READER_BIAS", kSwitches, options.reader_bias);
  environment.choose("TOMBOLO_REMAP", kSwitches, options.remap);
  options.atomics_asked = std::getenv("TOMBOLO_ATOMICS") != nullptr;
  options.remap_asked = std::getenv("TOMBOLO_REMAP") != nullptr;
  bool disabled = false;
  environment.choose("TOMBOLO_DISABLE", kSwitches, disabled);
  options.served = !disabled;
  if (const char* pool = std::getenv("TOMBOLO_POOL")) options.pool = pool;
  return options;
}

std::optional<MachineKind> machine_named(std::string_view name) { return find(kMachines, name); }
std::optional<sync::LockKind> locks_named(std::string_view name) {
  return sync::lock_family_named(name);
}
std::optional<bool> switch_named(std::string_view name) { return find(kSwitches, name); }

const char* name(MachineKind machine) {
  for (const auto& row : kMachines)
    if (row.value == machine) return row.name.data();
  return "?";
}
const char* name(sync::LockKind locks) { return sync::lock_family_name(locks).data(); }

}  // namespace tombolo::mpi
