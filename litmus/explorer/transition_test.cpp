// SPDX-License-Identifier: Apache-2.0
// Purpose: shows that every transition is read as it was written, and that nothing else is.
// Thread safety: -
#include "litmus/explorer/transition.h"

#include <gtest/gtest.h>

namespace tombolo::litmus {
namespace {

using Kind = Transition::Kind;

struct Written {
  Transition transition;
  const char* text;
};

// Step and leave_buffer have no index.
constexpr Written written[] = {
    {{.kind = Kind::step, .core = 0}, "0"},
    {{.kind = Kind::step, .core = 255}, "255"},
    {{.kind = Kind::step_with_age, .core = 1, .index = 0}, "1v0"},
    {{.kind = Kind::step_with_age, .core = 12, .index = 34}, "12v34"},
    {{.kind = Kind::leave_buffer, .core = 3}, "s3"},
    {{.kind = Kind::settle, .core = 2, .index = 4'294'967'295}, "w2.4294967295"},
    {{.kind = Kind::evict, .core = 4, .index = 5}, "e4.5"},
};

TEST(Transitions, AreWrittenByKind) {
  for (const Written& each : written) EXPECT_EQ(to_text(each.transition), each.text);
}

TEST(Transitions, ComeBackFromTheirText) {
  for (const Written& each : written) {
    SCOPED_TRACE(each.text);
    std::vector<Transition> path;
    ASSERT_TRUE(from_text(each.text, path));
    ASSERT_EQ(path.size(), 1u);
    EXPECT_EQ(path[0], each.transition);
    EXPECT_EQ(path[0].is_step(), each.text[0] >= '0' && each.text[0] <= '9');
  }
}

TEST(Transitions, OfDifferentTextDiffer) {
  for (const Written& one : written)
    for (const Written& other : written)
      EXPECT_EQ(one.transition == other.transition, &one == &other)
          << one.text << " and " << other.text;
}

TEST(Transitions, AreSeparatedByBlanksAndCommas) {
  const std::vector<Transition> three{
      {.core = 0}, {.kind = Kind::leave_buffer, .core = 1}, {.core = 2}};
  for (const char* text : {"0 s1 2", "0,s1,2", " 0\ts1\n2 ", ",,0, ,s1,,2,"}) {
    std::vector<Transition> path;
    ASSERT_TRUE(from_text(text, path)) << text;
    EXPECT_EQ(path, three) << text;
  }
  EXPECT_EQ(to_text(three), "0 s1 2");
}

TEST(Transitions, OfAnEmptyTextAreNone) {
  for (const char* text : {"", " ", ", \n"}) {
    std::vector<Transition> path{{.core = 1}};
    EXPECT_TRUE(from_text(text, path));
    EXPECT_TRUE(path.empty()) << "the path from before is forgotten";
  }
  EXPECT_EQ(to_text(std::vector<Transition>{}), "");
}

TEST(Transitions, AreRefusedUnlessWholeAndInRange) {
  for (const char* text : {"256",
                           "s256",
                           "e256.0",  // a core has 8 bits
                           "1v4294967296",
                           "w1.99999999999",  // an index has 32
                           "-1",
                           "+1",
                           "s",
                           "w",
                           "e",
                           "v1",
                           "s-1",  // no core
                           "w1",
                           "w1v2",
                           "e1,2x",
                           "e1:2",
                           "w1.",  // no index
                           "s1v1",
                           "s1.1",
                           "1.1",
                           "1v",
                           "1v1.1",  // too much, or another's
                           "0 1 x 2",
                           "S1",
                           "1V1",
                           "0x1",
                           "1;2"}) {
    std::vector<Transition> path;
    EXPECT_FALSE(from_text(text, path)) << text;
  }
}

}  // namespace
}  // namespace tombolo::litmus
