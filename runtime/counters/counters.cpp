// SPDX-License-Identifier: Apache-2.0
#include "runtime/counters/counters.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace tombolo::runtime {

Counters::Named& Counters::named(std::string_view name) {
  for (Named& known : all_)
    if (known.name == name) return known;
  Named& added = all_.emplace_back();
  added.name = name;
  return added;
}

Counter& Counters::counter(std::string_view name) {
  const std::lock_guard lock(mutex_);
  return named(name).counter;
}

void Counters::count(std::string_view name, std::string_view reason) {
  const std::lock_guard lock(mutex_);
  Named& counted = named(name);
  counted.counter.add();
  ++counted.reasons[std::string(reason)];
}

std::string Counters::as_text(std::span<const Fact> facts) const {
  std::string line;
  for (const Fact& fact : facts) line += fmt::format("{}={} ", fact.name, fact.value);
  const std::lock_guard lock(mutex_);
  std::string reasons;
  for (const Named& known : all_) {
    line += fmt::format("{}={} ", known.name, known.counter.value());
    for (const auto& [reason, n] : known.reasons)
      reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", reason, n);
  }
  return line + "reason=" + (reasons.empty() ? "none" : reasons);
}

std::string Counters::as_json(std::span<const Fact> facts, std::span<const Table> tables) const {
  nlohmann::ordered_json line;
  for (const Fact& fact : facts) line[std::string(fact.name)] = fact.value;
  const std::lock_guard lock(mutex_);
  auto reasons = nlohmann::ordered_json::object();
  for (const Named& known : all_) {
    line[known.name] = known.counter.value();
    for (const auto& [reason, n] : known.reasons) reasons[known.name][reason] = n;
  }
  line["reasons"] = reasons;
  for (const Table& table : tables) {
    auto& rows = line[std::string(table.name)] = nlohmann::ordered_json::array();
    for (const Row& row : table.rows) {
      auto& object = rows.emplace_back(nlohmann::ordered_json::object());
      for (const auto& [name, value] : row)
        std::visit([&, &key = name](const auto& each) { object[key] = each; }, value);
    }
  }
  // Texts come from file names and the environment, which need not be UTF-8.
  return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

Counters& counters() {
  static Counters& the_counters = *new Counters;
  return the_counters;
}

}  // namespace tombolo::runtime
