// SPDX-License-Identifier: Apache-2.0
#include "runtime/processes/processors_here.h"

#include <gtest/gtest.h>

#include <initializer_list>

namespace tombolo::runtime {
namespace {

using Numbers = std::initializer_list<std::uint32_t>;

ProcessorsHere of(std::initializer_list<Numbers> processes) {
  ProcessorsHere here;
  for (const Numbers& numbers : processes) {
    host::ProcessorSet set;
    for (const std::uint32_t number : numbers) set.add(number);
    here.add(set);
  }
  return here;
}

TEST(ProcessorsHere, AreThoseOfAllProcessesTogether) {
  EXPECT_EQ(of({{0}, {5}, {9}}).count(), 3u) << "a launcher has bound each to one";
  EXPECT_EQ(of({{2, 3}, {2, 3}, {2, 3}}).count(), 2u) << "a container has two";
  EXPECT_EQ(of({{2, 3}, {2, 3}, {2, 3}}).processes(), 3u);
}

TEST(ProcessorsHere, AreThoseOfTheHostWhereASetIsNotKnown) {
  EXPECT_EQ(of({{0}, {}}).count(), host::processors());
  EXPECT_EQ(of({{}, {0}}).count(), host::processors());
  EXPECT_EQ(of({}).count(), host::processors());
}

TEST(ProcessorsHere, OfOneProcessAreItsOwn) {
  EXPECT_EQ(processors_for(1), host::allowed_processors().count());
  EXPECT_EQ(processors_for(2), host::processors());
}

}  // namespace
}  // namespace tombolo::runtime
