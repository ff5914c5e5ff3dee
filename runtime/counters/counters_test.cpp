// SPDX-License-Identifier: Apache-2.0
#include "runtime/counters/counters.h"

#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

namespace tombolo::runtime {
namespace {

using Fact = Counters::Fact;

TEST(Counters, AreWrittenInTheOrderInWhichTheyWereMade) {
  Counters counters;
  counters.counter("served").add(2);
  counters.counter("forwarded");
  const std::array facts{Fact{"rank", "3"}};
  EXPECT_EQ(counters.as_text(facts), "rank=3 served=2 forwarded=0 reason=none");
  counters.count("forwarded", "two hosts");
  counters.count("forwarded", "two hosts");
  counters.count("forwarded", "no pool");
  EXPECT_EQ(counters.as_text(facts), "rank=3 served=2 forwarded=3 reason=no pool: 1; two hosts: 2");
}

TEST(Counters, AreReadByProgramsAsJson) {
  Counters counters;
  counters.counter("served").add();
  counters.count("forwarded", "a \"quoted\" reason\n");
  counters.count("forwarded", "not UTF-8: \xff");
  const std::array facts{Fact{"rank", "0"}, Fact{"machine", "stale"}};
  const std::string line = counters.as_json(facts);
  EXPECT_EQ(line.find('\n'), std::string::npos) << "one line";
  const auto read = nlohmann::json::parse(line);
  EXPECT_EQ(read["machine"], "stale");
  EXPECT_EQ(read["served"], 1);
  EXPECT_EQ(read["forwarded"], 2);
  EXPECT_EQ(read["reasons"]["forwarded"]["a \"quoted\" reason\n"], 1);
  EXPECT_EQ(read["reasons"]["forwarded"].size(), 2u);
}

TEST(Counters, HaveTablesBehindThem) {
  Counters counters;
  counters.counter("a").add(3);
  const std::vector<Counters::Row> rows{
      {{"number", std::uint64_t{1} << 63}, {"yes", true}, {"text", std::string("t\"")}},
      {{"numbers", std::vector<std::uint64_t>{1, 2}}, {"texts", std::vector<std::string>{"x"}}}};
  const Counters::Table tables[] = {{.name = "full", .rows = rows}, {.name = "empty", .rows = {}}};
  const auto read = nlohmann::json::parse(counters.as_json({}, tables));
  EXPECT_EQ(read["a"], 3);
  EXPECT_EQ(read["full"][0]["number"], std::uint64_t{1} << 63);
  EXPECT_EQ(read["full"][0]["yes"], true);
  EXPECT_EQ(read["full"][0]["text"], "t\"");
  EXPECT_EQ(read["full"][1]["numbers"], (std::vector<int>{1, 2}));
  EXPECT_EQ(read["full"][1]["texts"][0], "x");
  EXPECT_EQ(read["empty"].size(), 0u);
  EXPECT_FALSE(nlohmann::json::parse(counters.as_json({})).contains("full"));
}

TEST(Counters, StayWhereTheyAre) {
  Counters counters;
  Counter& first = counters.counter("first");
  for (int i = 0; i < 1000; ++i) counters.counter("other " + std::to_string(i));
  EXPECT_EQ(&counters.counter("first"), &first);
}

TEST(Counters, LoseNothingBetweenThreads) {
  Counters counters;
  std::vector<std::thread> threads;
  constexpr int rounds = 2000;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      Counter& counter = counters.counter("events");
      for (int i = 0; i < rounds; ++i) {
        counter.add();
        counters.count("events", t % 2 == 0 ? "even" : "odd");
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counters.counter("events").value(), 8u * rounds);
  const auto read = nlohmann::json::parse(counters.as_json({}));
  EXPECT_EQ(read["reasons"]["events"]["even"], 2 * rounds);
}

}  // namespace
}  // namespace tombolo::runtime
