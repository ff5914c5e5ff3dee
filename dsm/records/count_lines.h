// SPDX-License-Identifier: Apache-2.0
// Purpose: the counts that a program tells at its end: a line for each process, or the own one
// where each tells its own, and the hottest pages of all. One form for all kinds of programs.
//
//   CountLines lines(statistics, facts, &pages);
//   lines.add("rank", 3, runtime::counters());
//   lines.tell(STDERR_FILENO);
//
// Thread safety: one thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/counters/counters.h"
#include "runtime/options/options.h"

namespace tombolo::dsm {

class CountLines {
 public:
  using Counters = runtime::Counters;

  // `facts`: those that all lines have behind their first. `pages`: as rows_of() has them
  // (hot_pages.h); null where they are not counted, or not told here. In JSON they are in the first
  // line, else behind all.
  CountLines(runtime::Statistics form, std::span<const Counters::Fact> facts,
             const std::vector<Counters::Row>* pages = nullptr)
      : is_json_(form == runtime::Statistics::json),
        facts_(facts.begin(), facts.end()),
        pages_(pages) {}

  // Adds the line of the process, or of the memory server, of this number.
  void add(std::string_view name, std::uint64_t number, const Counters& counts);

  std::vector<std::string> all() const;
  // Writes the lines, and not by stdio, whose locks the program may hold.
  void tell(int file) const;

 private:
  bool is_json_;
  std::vector<Counters::Fact> facts_;
  const std::vector<Counters::Row>* pages_;
  std::vector<std::string> lines_;
};

}  // namespace tombolo::dsm
