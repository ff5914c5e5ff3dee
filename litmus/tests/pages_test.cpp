// SPDX-License-Identifier: Apache-2.0
// Purpose: the tables of verdicts in docs/model/ say what verdicts.h holds the machines to.
// Thread safety: -
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "litmus/tests/registry.h"

namespace tombolo::litmus {
namespace {

// A line "| a | b |" without the spaces at the ends of its cells; none if it is no row.
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  if (line.empty() || line.front() != '|') return cells;
  std::stringstream text(line.substr(1));
  for (std::string cell; std::getline(text, cell, '|');) {
    const std::size_t first = cell.find_first_not_of(' ');
    const std::size_t last = cell.find_last_not_of(' ');
    cells.push_back(first == std::string::npos ? "" : cell.substr(first, last - first + 1));
  }
  return cells;
}

// "`a-without-publish`, `-refresh`": both names; a short one has another last word.
std::vector<std::string> names_in(const std::string& cell) {
  std::vector<std::string> names;
  for (std::size_t at = cell.find('`'); at != std::string::npos;) {
    const std::size_t end = cell.find('`', at + 1);
    if (end == std::string::npos) break;
    std::string name = cell.substr(at + 1, end - at - 1);
    if (name.front() == '-' && !names.empty())
      name = names.back().substr(0, names.back().rfind('-')) + name;
    names.push_back(name);
    at = cell.find('`', end + 1);
  }
  return names;
}

using Columns = std::map<std::string, Verdict Verdicts::*>;
const Columns& columns() {
  static const Columns all{{"contract", &Verdicts::contract},
                           {"`coherent`", &Verdicts::coherent},
                           {"`flushed`", &Verdicts::flushed},
                           {"`stale`", &Verdicts::stale},
                           {"`scc`", &Verdicts::scc}};
  return all;
}
const LitmusTest* find(const std::string& name) {
  for (const LitmusTest& test : litmus_tests())
    if (test.info.name == name) return &test;
  return nullptr;
}

class Page {
 public:
  // `tests`: the heading of the column that names them.
  Page(const std::string& file, const std::string& tests) : file_(file) {
    std::ifstream page(std::string(TOMBOLO_MODEL_PAGES "/") + file);
    std::vector<std::string> heading;
    for (std::string line; std::getline(page, line);) {
      const std::vector<std::string> cells = cells_of(line);
      if (cells.empty()) heading.clear();
      if (cells.empty()) continue;
      if (heading.empty()) {
        heading = cells;
      } else if (std::ranges::find(heading, "contract") != heading.end()) {
        compare(heading, cells, tests);
      }
    }
  }
  int rows_of(std::string_view test) const {
    const auto found = rows_.find(std::string(test));
    return found == rows_.end() ? 0 : found->second;
  }

 private:
  void compare(const std::vector<std::string>& heading, const std::vector<std::string>& cells,
               const std::string& tests) {
    if (cells[0].starts_with("--")) return;
    SCOPED_TRACE(file_ + ": " + cells[0] + " | " + cells[1]);
    ASSERT_EQ(cells.size(), heading.size());
    const auto named = std::ranges::find(heading, tests) - heading.begin();
    ASSERT_LT(named, std::ssize(heading));
    const std::vector<std::string> names = names_in(cells[static_cast<std::size_t>(named)]);
    EXPECT_FALSE(names.empty());
    for (const std::string& name : names) {
      ++rows_[name];
      const LitmusTest* const test = find(name);
      ASSERT_NE(test, nullptr) << name;
      std::size_t compared = 0;
      for (std::size_t i = 0; i < heading.size(); ++i) {
        const auto column = std::ranges::find_if(columns(), [&](const auto& each) {
          return heading[i].starts_with(each.first);  // that of `flushed` names `flushed-none`, too
        });
        if (column == columns().end()) continue;
        ++compared;
        EXPECT_EQ(cells[i], to_text(test->info.verdicts.*column->second))
            << name << ", " << heading[i];
      }
      EXPECT_EQ(compared, columns().size());
    }
  }

  std::string file_;
  std::map<std::string, int> rows_;
};

TEST(ModelPages, OfTheContractHaveEachLitmusTestOnce) {
  const Page page("litmus.md", "test");
  for (const LitmusTest& test : litmus_tests())
    EXPECT_EQ(page.rows_of(test.info.name), 1) << test.info.name;
}

TEST(ModelPages, OfFamiliesHaveEachLitmusTestOfFamiliesOnce) {
  const Page page("families.md", "litmus test");
  int found = 0;
  for (const LitmusTest& test : litmus_tests()) {
    if (!test.info.name.starts_with("family-") && !test.info.name.starts_with("exclusive-place"))
      continue;
    ++found;
    EXPECT_EQ(page.rows_of(test.info.name), 1) << test.info.name;
  }
  EXPECT_GT(found, 0);
}

}  // namespace
}  // namespace tombolo::litmus
