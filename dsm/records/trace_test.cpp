// SPDX-License-Identifier: Apache-2.0
// Purpose: the trace keeps the last events, as lines of JSON.
#include "dsm/records/trace.h"

#include <gtest/gtest.h>

#include <vector>

#include "dsm/records/observer.h"

namespace tombolo::dsm {
namespace {

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(Trace, TellsEventsWithTheirPages) {
  Trace trace;
  ASSERT_TRUE(trace.ready());
  const std::uint64_t start = Trace::now();
  trace.add(Trace::Event::fetch, 17, start + 0);
  trace.add(Trace::Event::barrier, Trace::no_page, start);
  const std::string lines = trace.lines(2, start);
  EXPECT_EQ(count_of(lines, R"("ph": "X", "pid": 1, "tid": 3, "ts": 0.000)"), 2u);
  EXPECT_NE(lines.find(R"({"name": "fetch")"), std::string::npos);
  EXPECT_NE(lines.find(R"("args": {"page": 17}})"), std::string::npos);
  EXPECT_EQ(count_of(lines, R"("page")"), 1u) << "a barrier has no page";
  EXPECT_NE(lines.find(R"({"name": "thread 2"})"), std::string::npos);
  EXPECT_EQ(trace.first(), start);
}

TEST(Trace, KeepsTheLastEvents) {
  Trace trace;
  const std::uint64_t start = Trace::now();
  for (std::uint64_t i = 0; i < Trace::capacity + 10; ++i) trace.add(Trace::Event::fetch, i, start);
  EXPECT_EQ(trace.count(), Trace::capacity + 10);
  const std::string lines = trace.lines(0, start);
  EXPECT_EQ(count_of(lines, R"("ph": "X")"), Trace::capacity);
  EXPECT_EQ(lines.find(R"({"page": 9})"), std::string::npos);
  EXPECT_LT(lines.find(R"({"page": 10})"), lines.find(R"({"page": 11})"));
}

TEST(Trace, InAPlaceIsReadByOthers) {
  constexpr std::uint64_t events = 3;
  std::vector<std::uint64_t> place(Trace::bytes_for(events) / sizeof(std::uint64_t));
  Trace own(std::as_writable_bytes(std::span(place)));
  ASSERT_TRUE(own.ready());
  const std::uint64_t start = Trace::now();
  for (std::uint64_t page = 5; page < 9; ++page) own.add(Trace::Event::fetch, page, start + page);
  const Trace others(std::as_writable_bytes(std::span(place)));
  EXPECT_EQ(others.count(), 4u);
  EXPECT_EQ(others.first(), start + 6) << "the oldest one has given way";
  const std::string lines = others.lines(1, start, "process");
  EXPECT_EQ(count_of(lines, R"("ph": "X", "pid": 1, "tid": 2)"), events);
  EXPECT_EQ(lines.find(R"({"page": 5})"), std::string::npos);
  EXPECT_NE(lines.find(R"({"page": 8})"), std::string::npos);
  EXPECT_NE(lines.find(R"({"name": "process 1"})"), std::string::npos);
}

TEST(Observer, CallsTheActionOnceWithATraceAndWithout) {
  Trace trace;
  int calls = 0;
  const auto action = [&] { return ++calls; };
  EXPECT_EQ(Observer{}.traced(Trace::Event::fetch, 1, action), 1);
  EXPECT_EQ(Observer{.trace = &trace}.traced(Trace::Event::fetch, 1, action), 2);
  EXPECT_EQ(trace.count(), 1u);
}

}  // namespace
}  // namespace tombolo::dsm
