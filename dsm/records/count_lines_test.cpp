// SPDX-License-Identifier: Apache-2.0
// Purpose: the lines of counts at the end of a program, and where its hottest pages stand.
// Thread safety: -
#include "dsm/records/count_lines.h"

#include <gtest/gtest.h>

namespace tombolo::dsm {
namespace {

using runtime::Counters;
using runtime::Statistics;
using Lines = std::vector<std::string>;

const std::vector<Counters::Fact> facts{{"transport", "window"}};
const std::vector<Counters::Row> pages{{{"address", std::string("0x10")}}};

Lines of_two(Statistics form, const std::vector<Counters::Row>* rows) {
  Counters counts;
  counts.counter("dsm_puts").add(7);
  CountLines lines(form, facts, rows);
  lines.add("rank", 0, counts);
  lines.add("memory_server", 0, counts);
  return lines.all();
}

TEST(CountLines, HavePagesBehindThem) {
  EXPECT_EQ(of_two(Statistics::text, &pages),
            (Lines{"stats rank=0 transport=window dsm_puts=7 reason=none",
                   "stats memory_server=0 transport=window dsm_puts=7 reason=none",
                   "page address=0x10"}));
}

TEST(CountLines, HavePagesInTheFirstOneInJson) {
  const Lines lines = of_two(Statistics::json, &pages);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_NE(lines[0].find(R"("hottest_pages":[{"address":"0x10"}])"), std::string::npos)
      << lines[0];
  EXPECT_EQ(lines[1].find("hottest_pages"), std::string::npos);
}

TEST(CountLines, TellOfPagesWhereTheyAreCounted) {
  const std::vector<Counters::Row> none;
  EXPECT_NE(of_two(Statistics::json, &none)[0].find(R"("hottest_pages":[])"), std::string::npos);
  EXPECT_EQ(of_two(Statistics::json, nullptr)[0].find("hottest_pages"), std::string::npos);
  EXPECT_EQ(of_two(Statistics::text, nullptr).size(), 2u);
}

}  // namespace
}  // namespace tombolo::dsm
