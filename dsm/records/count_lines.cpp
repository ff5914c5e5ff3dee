// SPDX-License-Identifier: Apache-2.0
#include "dsm/records/count_lines.h"

#include <unistd.h>

#include "dsm/records/hot_pages.h"

namespace tombolo::dsm {

void CountLines::add(std::string_view name, std::uint64_t number, const Counters& counts) {
  std::vector<Counters::Fact> facts{{name, std::to_string(number)}};
  facts.insert(facts.end(), facts_.begin(), facts_.end());
  const bool with_pages = pages_ != nullptr && lines_.empty();
  const Counters::Table table{.name = "hottest_pages",
                              .rows = with_pages ? *pages_ : std::span<const Counters::Row>()};
  lines_.push_back("stats " + (is_json_ ? counts.as_json(facts, {&table, with_pages ? 1u : 0u})
                                        : counts.as_text(facts)));
}

std::vector<std::string> CountLines::all() const {
  std::vector<std::string> all = lines_;
  if (!is_json_ && pages_ != nullptr)
    for (const Counters::Row& row : *pages_) all.push_back("page " + text_of(row));
  return all;
}

void CountLines::tell(int file) const {
  for (const std::string& line : all()) {
    const std::string whole = "tombolo: " + line + "\n";
    [[maybe_unused]] const ssize_t written = write(file, whole.data(), whole.size());
  }
}

}  // namespace tombolo::dsm
