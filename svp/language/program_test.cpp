// SPDX-License-Identifier: Apache-2.0
// Purpose: tests the families of translated programs as tombolo-svpc calls them, where the
// sanitizers see them; programs themselves: cli/tests/svp_language_test.py.
// Thread safety: -
#include "svp/language/program.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>

namespace {

using tombolo::svp::Range;
namespace language = tombolo::svp::language;

constexpr svp_site site{.file = "program.c", .line = 12, .name = "fid"};

// A variable of type `family`, as the attribute `cleanup` leaves it.
struct Variable {
  Variable() { svp_begin(&family, 1); }
  ~Variable() noexcept(false) { svp_leave(&family); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  svp_exit sync() { return svp_sync(&family, &site); }
  svp_family family;
};

struct Add {
  svp_binding sum;
  long by;
};
void add(long index, const void* globals, svp_end* ends) {
  long sum = *static_cast<const long*>(svp_read(&ends[0], &site));
  sum += index + *static_cast<const long*>(globals);
  svp_write(&ends[0], &sum, &site);
}
struct AddThread : language::Thread<add, sizeof(long), alignof(long), long> {
  static constexpr std::array<const char*, 1> shared_names{"sum"};
};

// Passes its shared parameter on, and its global one.
void pass(long, const void* globals, svp_end* ends) {
  Variable inner;
  const Add arguments{.sum = {.variable = nullptr, .end = &ends[0]},
                      .by = *static_cast<const long*>(globals)};
  language::create<AddThread>(inner.family, site, Range{.limit = 3}, &arguments);
  EXPECT_EQ(inner.sync(), SVP_DONE);
}
struct PassThread : language::Thread<pass, sizeof(long), alignof(long), long> {
  static constexpr std::array<const char*, 1> shared_names{"sum"};
};

TEST(LanguageProgram, SharedParametersGoFromThreadToThreadAndBack) {
  long sum = 5;
  const Add arguments{.sum = {.variable = &sum, .end = nullptr}, .by = 10};
  Variable fid;
  language::create<AddThread>(fid.family, site, Range{.limit = 4}, &arguments);
  EXPECT_EQ(fid.sync(), SVP_DONE);
  EXPECT_EQ(sum, 5 + 4 * 10 + 6);
  language::create<AddThread>(fid.family, site, &arguments);
  EXPECT_EQ(fid.sync(), SVP_DONE);
  EXPECT_EQ(sum, 61);
  language::create<PassThread>(fid.family, site, Range{.limit = 2}, &arguments);
  EXPECT_EQ(fid.sync(), SVP_DONE);
  EXPECT_EQ(sum, 61 + 2 * (3 * 10 + 3));
}

// More than a variable holds.
struct Large {
  std::array<long, 200> values;
  std::atomic<long>* sum;
};
void add_large(long index, const void* globals, svp_end*) {
  const auto& large = *static_cast<const Large*>(globals);
  *large.sum += large.values[static_cast<std::size_t>(index)];
}
struct LargeThread : language::Thread<add_large, sizeof(Large), alignof(Large)> {};

TEST(LanguageProgram, LargeArgumentsAreCopiedAtTheCreate) {
  std::atomic<long> sum{0};
  Large large{.values = {}, .sum = &sum};
  for (long i = 0; i < 200; ++i) large.values[static_cast<std::size_t>(i)] = i;
  Variable fid;
  language::create<LargeThread>(fid.family, site, Range{.limit = 200}, &large);
  large.values.fill(0);
  EXPECT_EQ(fid.sync(), SVP_DONE);
  EXPECT_EQ(sum.load(), 199 * 100);
}

void forever(long, const void*, svp_end*) {
  for (;;) svp_checkpoint();
}
struct ForeverThread : language::Thread<forever, 0, 1> {};
void leave(long index, const void*, svp_end*) {
  Variable one;
  Variable other;
  language::create<ForeverThread>(one.family, site, nullptr);
  language::create<ForeverThread>(other.family, site, Range{.limit = 4}, nullptr);
  svp_break(index + 7, &site);
}
struct LeaveThread : language::Thread<leave, 0, 1> {};

TEST(LanguageProgram, ABreakEndsTheFamiliesThatItsThreadLeaves) {
  Variable fid;
  for (int round = 0; round < 20; ++round) {
    language::create<LeaveThread>(fid.family, site, nullptr);
    EXPECT_EQ(fid.sync(), SVP_BROKEN);
    EXPECT_EQ(svp_break_value(&fid.family), 7);
  }
}

TEST(LanguageProgram, AKillEndsAFamily) {
  Variable fid;
  language::create<ForeverThread>(fid.family, site, svp_place{},
                                  Range{.limit = tombolo::svp::unbounded}, nullptr);
  svp_kill(&fid.family, &site);
  EXPECT_EQ(fid.sync(), SVP_KILLED);
  EXPECT_EQ(svp_break_value(&fid.family), 0);
}

void fail(long, const void*, svp_end*) { throw std::runtime_error("no memory for this"); }
struct FailThread : language::Thread<fail, 0, 1> {};

TEST(LanguageProgram, AFailureSaysWhy) {
  Variable fid;
  EXPECT_STREQ(svp_failure(&fid.family), "");
  language::create<FailThread>(fid.family, site, nullptr);
  EXPECT_EQ(fid.sync(), SVP_FAILED);
  EXPECT_STREQ(svp_failure(&fid.family), "no memory for this");
}

void count(long, const void* globals, svp_end*) { ++**static_cast<long* const*>(globals); }
struct CountThread : language::Thread<count, sizeof(long*), alignof(long*)> {};

TEST(LanguageProgram, PlacesAreMadeAndEnded) {
  long counted = 0;
  long* const counter = &counted;
  const svp_place two = svp_local_place(2);
  const svp_place turns = svp_exclusive_place_at(two);
  for (const svp_place place : {two, turns, svp_exclusive_place(), PLACE_DEFAULT}) {
    Variable fid;
    language::create<CountThread>(fid.family, site, place, &counter);
    EXPECT_EQ(fid.sync(), SVP_DONE);
  }
  EXPECT_EQ(counted, 4);
  svp_end_place(turns);
  svp_end_place(two);
}

class LanguageProgramDeathTest : public ::testing::Test {
 protected:
  LanguageProgramDeathTest() { ::testing::GTEST_FLAG(death_test_style) = "threadsafe"; }
};

TEST_F(LanguageProgramDeathTest, AFamilyIsNotLeftBehind) {
  EXPECT_DEATH(
      {
        Variable fid;
        language::create<ForeverThread>(fid.family, site, nullptr);
      },
      "program.c:12: fid: created here, and not synced before the end of its scope");
}

TEST_F(LanguageProgramDeathTest, APlaceEndsOnce) {
  EXPECT_DEATH(
      {
        const svp_place place = svp_exclusive_place();
        svp_end_place(place);
        svp_end_place(place);
      },
      "svp_end_place: the place does not exist any more");
  EXPECT_DEATH(svp_exclusive_place_at(svp_exclusive_place()), "no place of svp_local_place");
  EXPECT_DEATH(svp_end_place(PLACE_DEFAULT), "or is the default one");
}

}  // namespace
