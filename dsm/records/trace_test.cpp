// SPDX-License-Identifier: Apache-2.0
// Purpose: the trace keeps the last events, and its file is JSON.
#include "dsm/records/trace.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

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

TEST(Trace, IsAFileThatProcessesFillInTurn) {
  const std::string path = testing::TempDir() + "trace_test_" + std::to_string(getpid());
  std::ofstream(path) << "of an earlier run";
  ASSERT_TRUE(create_trace(path).ok());
  for (const std::string& text : {head_of_trace(), Trace().lines(0, 0), end_of_trace(1)})
    ASSERT_TRUE(append_to_trace(path, text).ok());
  std::stringstream all;
  all << std::ifstream(path).rdbuf();
  unlink(path.c_str());
  EXPECT_TRUE(all.str().starts_with(R"({"displayTimeUnit": "ns", "traceEvents": [)"));
  EXPECT_TRUE(all.str().ends_with("}}]}\n"));
  EXPECT_EQ(count_of(all.str(), "{"), count_of(all.str(), "}"));
}

TEST(Trace, NamesAPathThatCannotBeWritten) {
  for (const Status& status : {create_trace("/nowhere/a"), append_to_trace("/nowhere/a", "x")}) {
    EXPECT_EQ(status.code(), Code::bad_configuration);
    EXPECT_NE(status.message().find("/nowhere/a cannot be written: open"), std::string::npos);
  }
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
