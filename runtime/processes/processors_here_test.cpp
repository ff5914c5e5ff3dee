// SPDX-License-Identifier: Apache-2.0
#include "runtime/processes/processors_here.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>

namespace tombolo::runtime {
namespace {

using Numbers = std::initializer_list<std::uint32_t>;

ProcessorsHere of(std::initializer_list<Numbers> processes) {
  ProcessorsHere here;
  for (const Numbers& numbers : processes) {
    host::ProcessorSet set;
    for (const std::uint32_t number : numbers) set.add(number);
    here.add({set, {}});
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
  EXPECT_EQ(processors_for(1),
            std::min(host::allowed_processors().count(), host::processor_quota().processors));
  EXPECT_EQ(processors_for(2), host::processors());
}

// Each process has the same eight processors.
std::uint32_t with_quotas(std::initializer_list<host::ProcessorQuota> quotas) {
  ProcessorsHere here;
  for (const host::ProcessorQuota& quota : quotas) {
    host::ProcessorSet set;
    for (std::uint32_t number = 0; number < 8; ++number) set.add(number);
    here.add({set, quota});
  }
  return here.count();
}

TEST(ProcessorsHere, AreAsManyAsTheQuotasOfTheirGroupsKeepBusy) {
  EXPECT_EQ(with_quotas({{2, 100}, {2, 100}, {2, 100}}), 2u) << "one container";
  EXPECT_EQ(with_quotas({{2, 100}, {3, 200}, {2, 100}}), 5u) << "two";
  EXPECT_EQ(with_quotas({{5, 100}, {5, 200}}), 8u) << "more than there are";
  EXPECT_EQ(with_quotas({{2, 100}, {}}), 8u) << "one has no quota";
  EXPECT_EQ(with_quotas({{}, {2, 100}}), 8u);
}

}  // namespace
}  // namespace tombolo::runtime
