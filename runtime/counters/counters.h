// SPDX-License-Identifier: Apache-2.0
// Purpose: counts the events of a process, by name, for the end of its run.
//
//   static Counter& served = counters().counter("windows_served");
//   served.add();
//   counters().count("windows_forwarded", "two hosts");      // one reason of several
//   fputs(counters().as_json({{"rank", "3"}}).c_str(), stderr);
//
// Invariants: CO1 a Counter stays where it is until the process ends.
//             CO2 counters are written in the order in which they were first asked for, reasons by
//                 name.
// Thread safety: yes. Counter::add is one relaxed addition.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace tombolo::runtime {

class Counter {
 public:
  // relaxed: a count orders nothing.
  void add(std::uint64_t n = 1) { value_.fetch_add(n, std::memory_order_relaxed); }
  std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

class Counters {
 public:
  // A fact about the process, written before its counts.
  struct Fact {
    std::string_view name;
    std::string value;
  };

  // Things of one kind, written behind the counts: in JSON alone.
  using Value = std::variant<std::uint64_t, bool, std::string, std::vector<std::uint64_t>,
                             std::vector<std::string>>;
  using Row = std::vector<std::pair<std::string, Value>>;
  struct Table {
    std::string_view name;
    std::span<const Row> rows;
  };

  // The counter of this name, made at the first call.
  Counter& counter(std::string_view name);
  // Counts one event under `name`, and under its reason besides.
  void count(std::string_view name, std::string_view reason);

  // "name=value name=value ... reason=R: n; R: n", on one line without its end; "reason=none"
  // where no reason was counted.
  std::string as_text(std::span<const Fact> facts) const;
  // {"rank": "3", ..., "windows_served": 7, ..., "reasons": {"windows_forwarded": {"R": 2}}}, on
  // one line without its end; a table is a list of objects.
  std::string as_json(std::span<const Fact> facts, std::span<const Table> tables = {}) const;

 private:
  struct Named {
    std::string name;
    Counter counter;
    std::map<std::string, std::uint64_t, std::less<>> reasons;
  };
  Named& named(std::string_view name);

  mutable std::mutex mutex_;
  std::deque<Named> all_;  // CO1: a deque moves nothing
};

// Those of this process; never destroyed, so that a program's static objects may count.
Counters& counters();

}  // namespace tombolo::runtime
