// SPDX-License-Identifier: Apache-2.0
// Purpose: the pages of an instruction that misses several, and the time in which it is to run.
// Thread safety: -
#include "dsm/pages/unfinished_instruction.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace tombolo::dsm {
namespace {

using Clock = UnfinishedInstruction::Clock;
using Pages = std::vector<std::pair<Page, bool>>;

Pages pages_of(const UnfinishedInstruction& unfinished) {
  Pages pages;
  for (const Access& access : unfinished.accesses()) pages.emplace_back(access.page, access.write);
  return pages;
}

TEST(UnfinishedInstruction, IsTakenFromWhereItMissesOneOfSeveralAgain) {
  UnfinishedInstruction unfinished;
  EXPECT_FALSE(unfinished.miss(100, {1, false}));
  EXPECT_FALSE(unfinished.miss(100, {2, true}));
  EXPECT_TRUE(unfinished.miss(100, {1, false}));
  EXPECT_EQ(pages_of(unfinished), (Pages{{2, true}, {1, false}}));
  EXPECT_TRUE(unfinished.miss(100, {2, true}));
  EXPECT_EQ(pages_of(unfinished), (Pages{{1, false}, {2, true}}));
}

TEST(UnfinishedInstruction, MissesASinglePageAsOftenAsLike) {
  UnfinishedInstruction unfinished;
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(unfinished.miss(100, {1, true}));
  EXPECT_EQ(pages_of(unfinished), (Pages{{1, true}}));
}

TEST(UnfinishedInstruction, StoresWhereItHasEverStored) {
  UnfinishedInstruction unfinished;
  unfinished.miss(100, {1, false});
  unfinished.miss(100, {1, true});
  unfinished.miss(100, {1, false});
  EXPECT_EQ(pages_of(unfinished), (Pages{{1, true}}));
}

TEST(UnfinishedInstruction, HasTheLastFourPages) {
  UnfinishedInstruction unfinished;
  for (Page page = 1; page <= 6; ++page) EXPECT_FALSE(unfinished.miss(100, {page, page == 5}));
  EXPECT_EQ(pages_of(unfinished), (Pages{{3, false}, {4, false}, {5, true}, {6, false}}));
  EXPECT_FALSE(unfinished.miss(100, {2, false})) << "long ago";
}

TEST(UnfinishedInstruction, IsForgottenForTheNext) {
  UnfinishedInstruction unfinished;
  unfinished.miss(100, {1, false});
  unfinished.miss(100, {2, false});
  EXPECT_FALSE(unfinished.miss(104, {1, false}));
  EXPECT_EQ(pages_of(unfinished), (Pages{{1, false}}));
}

TEST(UnfinishedInstruction, HasSomeTimeToRun) {
  UnfinishedInstruction unfinished;
  const Clock::time_point now = Clock::now();
  EXPECT_FALSE(unfinished.may_run_next(0, now)) << "none has missed";
  unfinished.miss(100, {1, false});
  unfinished.brought(now);
  constexpr Clock::duration time = UnfinishedInstruction::time_to_run;
  EXPECT_TRUE(unfinished.may_run_next(100, now + time - Clock::duration(1)));
  EXPECT_FALSE(unfinished.may_run_next(100, now + time));
  EXPECT_FALSE(unfinished.may_run_next(104, now)) << "it has run";
}

}  // namespace
}  // namespace tombolo::dsm
