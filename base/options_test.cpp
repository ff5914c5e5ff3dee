// SPDX-License-Identifier: Apache-2.0
#include "base/options.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace tombolo {
namespace {

constexpr std::string_view colours[] = {"red", "green"};
constexpr Option colour{.variable = "TOMBOLO_TEST_COLOUR", .choices = colours};
constexpr Option count{.variable = "TOMBOLO_TEST_COUNT", .values = "a number from 0"};

TEST(Options, AreReadFromTheEnvironment) {
  unsetenv("TOMBOLO_TEST_COLOUR");
  EXPECT_FALSE(is_set(colour));
  EXPECT_EQ(text_of(colour), "");
  setenv("TOMBOLO_TEST_COLOUR", "", 1);
  EXPECT_FALSE(is_set(colour)) << "OP1";
  setenv("TOMBOLO_TEST_COLOUR", "red", 1);
  EXPECT_TRUE(is_set(colour));
  EXPECT_EQ(text_of(colour), "red");
}

TEST(Options, RefuseAnUnknownNameAndSayWhatItMayBe) {
  EXPECT_TRUE(check(colour, "green").ok());
  EXPECT_TRUE(check(colour, "").ok());
  EXPECT_TRUE(check(count, "many").ok()) << "only its reader knows";
  const Status refused = check(colour, "blue");
  EXPECT_EQ(refused.code(), Code::bad_configuration);
  EXPECT_EQ(refused.message(), "TOMBOLO_TEST_COLOUR is 'blue'; it may be red, green");
  EXPECT_EQ(not_understood(count, "many").message(),
            "TOMBOLO_TEST_COUNT is 'many'; it may be a number from 0");
}

TEST(Options, SwitchesHaveFourPairsOfNames) {
  for (const char* name : {"on", "1", "true", "yes"}) EXPECT_EQ(switch_named(name), true) << name;
  for (const char* name : {"off", "0", "false", "no"}) EXPECT_EQ(switch_named(name), false) << name;
  EXPECT_EQ(switch_named("On"), std::nullopt);
  EXPECT_EQ(switch_named(""), std::nullopt);
}

TEST(Options, NumbersAreWholeAndFit) {
  EXPECT_EQ(number_in("0"), 0u);
  EXPECT_EQ(number_in("18446744073709551615"), ~std::uint64_t{0});
  for (const char* text : {"", "-1", "1x", " 1", "1.5", "18446744073709551616"})
    EXPECT_EQ(number_in(text), std::nullopt) << text;
}

}  // namespace
}  // namespace tombolo
