// SPDX-License-Identifier: Apache-2.0
// Purpose: a trace keeps the last events of each stack, as lines of JSON.
#include "svp/records/family_trace.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace tombolo::svp {
namespace {

using Event = FamilyTrace::Event;

nlohmann::json events_of(const FamilyTrace& trace, std::uint32_t& tracks) {
  const std::string lines = trace.lines(tracks);
  const std::string list = "[" + lines.substr(0, lines.rfind(',')) + "]";
  nlohmann::json spans = nlohmann::json::array();
  for (const auto& event : nlohmann::json::parse(list))
    if (event["ph"] != "M") spans.push_back(event);
  return spans;
}
nlohmann::json events_of(const FamilyTrace& trace) {
  std::uint32_t tracks = 0;
  return events_of(trace, tracks);
}

class FamilyTraces : public ::testing::Test {
 protected:
  int one_ = 0, two_ = 0;
  const FamilyTrace::Facts facts_{.range = {.start = 4, .limit = 9, .step = 2},
                                  .place = {.kind = PlaceName::Kind::exclusive, .number = 3},
                                  .family = &one_,
                                  .parent = &two_};
  FamilyTrace trace_{{.kind = PlaceName::Kind::local, .number = 1}, 2};
};

TEST_F(FamilyTraces, TellTheFactsOfAFamily) {
  ASSERT_TRUE(trace_.ready());
  trace_.begin(0, Event::family, &one_, facts_);
  trace_.end(0, &one_, 1);
  const auto events = events_of(trace_);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0]["name"], "family");
  EXPECT_EQ(events[0]["ph"], "X");
  const auto& args = events[0]["args"];
  EXPECT_EQ(args["start"], 4);
  EXPECT_EQ(args["limit"], 9);
  EXPECT_EQ(args["step"], 2);
  EXPECT_EQ(args["place"], "exclusive 3");
  EXPECT_EQ(args["worker"], 2);
  EXPECT_EQ(args["exit"], "broken");
}

TEST_F(FamilyTraces, KeepTheirEventsWhereTheyShrink) {
  for (const std::uint64_t events :
       {std::uint64_t{0}, std::uint64_t{3}, FamilyTrace::capacity + 1}) {
    FamilyTrace trace({.kind = PlaceName::Kind::local, .number = 1}, 2);
    for (std::uint64_t i = 0; i < events; ++i) trace.mark(0, Event::delegate, facts_);
    std::uint32_t tracks = 0;
    const std::string before = trace.lines(tracks);
    trace.shrink();
    EXPECT_TRUE(trace.lines(tracks = 0) == before) << events;
  }
}

TEST_F(FamilyTraces, EndWhatWasBegunWithin) {
  trace_.begin(0, Event::family, &one_, facts_);
  trace_.begin(0, Event::wait, &two_, {});
  trace_.end(0, &one_, 0);
  trace_.end(0, &two_, 0);
  EXPECT_EQ(trace_.count(), 2u);
  const auto events = events_of(trace_);
  EXPECT_EQ(events[0]["name"], "wait for a family");
  EXPECT_GE(events[0]["ts"], events[1]["ts"]);
}

TEST_F(FamilyTraces, HaveATrackForEachStack) {
  trace_.begin(0, Event::family, &one_, facts_);
  trace_.begin(1, Event::family, &two_, facts_);
  trace_.end(0, &two_, 0);  // not of that stack
  EXPECT_EQ(trace_.count(), 0u);
  trace_.end(0, &one_, 0);
  trace_.end(1, &two_, 0);
  const auto events = events_of(trace_);
  EXPECT_NE(events[0]["tid"], events[1]["tid"]);
}

// Places and workers whose numbers differ by powers of two; a stack that has no event has no track.
TEST(Tracks, AreOfOneStackEach) {
  std::uint32_t tracks = 7;
  std::set<int> seen;
  for (const std::uint32_t place : {0u, 1u, 1024u, 1u << 20})
    for (const unsigned worker : {0u, 1u, 1024u}) {
      FamilyTrace trace({.kind = PlaceName::Kind::local, .number = place}, worker);
      for (const unsigned stack : {0u, 2u, 4096u, 2u, 4096u}) trace.mark(stack, Event::write, {});
      const auto events = events_of(trace, tracks);
      EXPECT_EQ(events[1]["tid"], events[3]["tid"]);
      EXPECT_EQ(events[2]["tid"], events[4]["tid"]);
      for (const auto& event : events) seen.insert(event["tid"].get<int>());
    }
  EXPECT_EQ(seen.size(), 4u * 3 * 3);
  EXPECT_EQ(tracks, 7u + 4 * 3 * 3);
  EXPECT_EQ(*seen.begin(), 8);
}

// As lines: all of them as trees of JSON would take seconds under a sanitizer.
TEST_F(FamilyTraces, KeepTheLastEvents) {
  for (Index i = 0; i < static_cast<Index>(FamilyTrace::capacity) + 10; ++i)
    trace_.mark(0, Event::steal,
                {.range = {.start = i}, .place = {}, .family = nullptr, .parent = nullptr});
  std::uint32_t tracks = 0;
  std::istringstream lines(trace_.lines(tracks));
  std::vector<std::string> steals;
  for (std::string line; std::getline(lines, line);)
    if (line.find("of worker") != std::string::npos) steals.push_back(line);
  ASSERT_EQ(steals.size(), FamilyTrace::capacity);
  const auto worker_of = [](const std::string& line) {
    return nlohmann::json::parse(line.substr(0, line.rfind('}') + 1))["args"]["of worker"];
  };
  EXPECT_EQ(worker_of(steals.front()), 10);
  EXPECT_EQ(worker_of(steals.back()), FamilyTrace::capacity + 9);
}

TEST_F(FamilyTraces, WriteAnUnboundedLimitAsAWord) {
  trace_.begin(0, Event::family, &one_,
               {.range = {.limit = unbounded}, .place = {}, .family = &one_, .parent = nullptr});
  trace_.end(0, &one_, 2);
  const auto events = events_of(trace_);
  EXPECT_EQ(events[0]["args"]["limit"], "unbounded");
  EXPECT_EQ(events[0]["args"]["exit"], "killed");
}

}  // namespace
}  // namespace tombolo::svp
