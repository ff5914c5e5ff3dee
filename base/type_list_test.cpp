// SPDX-License-Identifier: Apache-2.0
#include "base/type_list.h"

#include <gtest/gtest.h>

#include <tuple>
#include <type_traits>

namespace tombolo {
namespace {

using None = TypeList<>;
using Numbers = TypeList<int, double>;
using Letters = TypeList<char>;

static_assert(None::size == 0 && Numbers::size == 2);
static_assert(std::is_same_v<Numbers::apply<std::tuple>, std::tuple<int, double>>);
static_assert(std::is_same_v<Numbers::and_also<char, int>, TypeList<int, double, char, int>>);
static_assert(std::is_same_v<None::and_also<>, None>);
static_assert(std::is_same_v<JoinedLists<Numbers>, Numbers>);
static_assert(std::is_same_v<JoinedLists<Numbers, None, Letters, Numbers>,
                             TypeList<int, double, char, int, double>>);

// The purpose of the lists: one test for each type of several lists.
template <class T>
class EachType : public testing::Test {};
TYPED_TEST_SUITE(EachType, JoinedLists<Numbers>::apply<testing::Types>);

TYPED_TEST(EachType, IsTested) { EXPECT_TRUE(std::is_arithmetic_v<TypeParam>); }

TEST(TypeList, TestsRanForEachType) {
  const auto* const unit = testing::UnitTest::GetInstance();
  int suites = 0;
  for (int i = 0; i < unit->total_test_suite_count(); ++i)
    suites += std::string(unit->GetTestSuite(i)->name()).starts_with("EachType/") ? 1 : 0;
  EXPECT_EQ(suites, 2);
}

}  // namespace
}  // namespace tombolo
