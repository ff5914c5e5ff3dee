// SPDX-License-Identifier: Apache-2.0
#include "base/options.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

namespace tombolo {
namespace {

constexpr std::string_view colours[] = {"red", "green"};
constexpr Option colour{.variable = "TOMBOLO_TEST_COLOUR",
                        .type = OptionType::choice,
                        .choices = colours,
                        .values = "red, green"};
constexpr Option count{.variable = "TOMBOLO_TEST_COUNT",
                       .type = OptionType::number,
                       .values = "a number from 2 to 9",
                       .least = 2,
                       .most = 9};

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
  const Status refused = check(colour, "blue");
  EXPECT_EQ(refused.code(), Code::bad_configuration);
  EXPECT_EQ(refused.message(), "TOMBOLO_TEST_COLOUR is 'blue'; it may be red, green");
  EXPECT_EQ(not_understood(count, "many").message(),
            "TOMBOLO_TEST_COUNT is 'many'; it may be a number from 2 to 9");
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

TEST(Bytes, HaveUnits) {
  EXPECT_EQ(bytes_in("0"), 0u);
  EXPECT_EQ(bytes_in("4096"), 4096u);
  EXPECT_EQ(bytes_in("4096B"), 4096u);
  EXPECT_EQ(bytes_in("1K"), 1024u);
  EXPECT_EQ(bytes_in("1KiB"), 1024u);
  EXPECT_EQ(bytes_in("3M"), 3u << 20);
  EXPECT_EQ(bytes_in("2GiB"), std::uint64_t{2} << 30);
  EXPECT_EQ(bytes_in("1TiB"), std::uint64_t{1} << 40);
  EXPECT_EQ(bytes_in("16777215T"), std::uint64_t{16777215} << 40);
}

TEST(Bytes, InOtherTextsAreNone) {
  for (const char* text : {"", "K", "1k", "1KB", "1Ki", "1.5G", " 1", "1 ", "1KiBB", "x", "-1",
                           "0x10", "16777216T", "99999999999999999999"})
    EXPECT_EQ(bytes_in(text), std::nullopt) << text;
}

TEST(Values, AreNumbersAndSizesWithinTheirBounds) {
  std::uint32_t number = 7;
  EXPECT_TRUE(parse(count, "2", number).ok());
  EXPECT_EQ(number, 2u);
  for (const char* text : {"", "1", "10", "two", "-2", "2KiB"}) {
    EXPECT_EQ(parse(count, text, number).code(), Code::bad_configuration) << text;
    EXPECT_EQ(number, 2u) << "OP2";
  }
  constexpr Option size{.type = OptionType::size, .least = 4096, .most = 8192};
  std::uint64_t bytes = 0;
  EXPECT_TRUE(parse(size, "8KiB", bytes).ok());
  EXPECT_EQ(bytes, 8192u);
  EXPECT_FALSE(parse(size, "9KiB", bytes).ok());
  EXPECT_FALSE(parse(size, "much", bytes).ok());
}

TEST(Values, OfChoicesAreTheirPlaces) {
  enum class Colour : std::uint8_t { red, green };
  Colour chosen = Colour::red;
  EXPECT_TRUE(parse(colour, "green", chosen).ok());
  EXPECT_EQ(chosen, Colour::green);
  EXPECT_FALSE(parse(colour, "Red", chosen).ok());
  EXPECT_EQ(chosen, Colour::green);
  std::optional<Colour> perhaps;
  EXPECT_FALSE(parse(colour, "blue", perhaps).ok());
  EXPECT_EQ(perhaps, std::nullopt);
  EXPECT_TRUE(parse(colour, "red", perhaps).ok());
  EXPECT_EQ(perhaps, Colour::red);
}

TEST(Values, OfSwitchesHaveTheirWordsOrNamesOfTheirOwn) {
  static constexpr std::string_view on_off[] = {"on", "off"};
  static constexpr std::string_view own[] = {"full", "none"};
  constexpr Option usual{.type = OptionType::toggle, .choices = on_off};
  constexpr Option named{.type = OptionType::toggle, .choices = own};
  bool on = false;
  EXPECT_TRUE(parse(usual, "yes", on).ok());
  EXPECT_TRUE(on);
  EXPECT_TRUE(parse(usual, "0", on).ok());
  EXPECT_FALSE(on);
  EXPECT_FALSE(parse(usual, "2", on).ok());
  EXPECT_TRUE(parse(named, "full", on).ok());
  EXPECT_TRUE(on);
  EXPECT_FALSE(parse(named, "off", on).ok()) << "it has names of its own";
  EXPECT_TRUE(parse(named, "none", on).ok());
  EXPECT_FALSE(on);
}

TEST(Values, OfAChoiceMayBeASwitchAsWell) {
  static constexpr std::string_view ways[] = {"off", "text", "json"};
  constexpr Option counts{.type = OptionType::choice, .choices = ways, .on = "text"};
  enum class Way : std::uint8_t { off, text, json };
  for (const auto& [text, want] : {std::pair{"json", Way::json},
                                   {"1", Way::text},
                                   {"yes", Way::text},
                                   {"0", Way::off},
                                   {"off", Way::off}}) {
    Way way = Way::json;
    EXPECT_TRUE(parse(counts, text, way).ok()) << text;
    EXPECT_EQ(way, want) << text;
  }
}

TEST(Values, MayBeSeveralNames) {
  static constexpr std::string_view all[] = {"read", "write", "sort"};
  constexpr Option parts{.type = OptionType::names, .choices = all};
  for (const auto& [text, want] :
       {std::pair{"read", 1U}, {"sort", 4U}, {"sort,read", 5U}, {"read,read", 1U}}) {
    std::uint64_t places = 0;
    EXPECT_TRUE(parse(parts, text, places).ok()) << text;
    EXPECT_EQ(places, want) << text;
  }
  for (const char* text : {"read,later", "later,read", "read,,sort", ",", "read,", ",read", "1"}) {
    std::uint64_t places = 8;
    EXPECT_FALSE(parse(parts, text, places).ok()) << text;
    EXPECT_FALSE(check(parts, text).ok()) << text;
    EXPECT_EQ(places, 8U) << text;
  }
}

struct Shape {
  std::uint32_t count = 3;
  std::string path;
};
constexpr Option where{.variable = "TOMBOLO_TEST_PATH", .type = OptionType::path};
template <class Visit>
void for_each_option(Shape& shape, Visit&& visit) {
  visit(count, shape.count);
  visit(where, shape.path);
}

TEST(Values, OfAnInterfaceAreReadTogetherAndTheFirstErrorIsTold) {
  setenv("TOMBOLO_TEST_COUNT", "10", 1);
  setenv("TOMBOLO_TEST_PATH", "/a/path", 1);
  Shape shape;
  EXPECT_EQ(read_options(shape).message(),
            "TOMBOLO_TEST_COUNT is '10'; it may be a number from 2 to 9");
  EXPECT_EQ(shape.count, 3u);
  EXPECT_EQ(shape.path, "/a/path");
  setenv("TOMBOLO_TEST_COUNT", "9", 1);
  EXPECT_TRUE(read_options(shape).ok());
  EXPECT_EQ(shape.count, 9u);
  unsetenv("TOMBOLO_TEST_COUNT");
  unsetenv("TOMBOLO_TEST_PATH");
}

}  // namespace
}  // namespace tombolo
