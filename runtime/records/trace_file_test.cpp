// SPDX-License-Identifier: Apache-2.0
// Purpose: the file of a trace is JSON, and a path that cannot be written is named.
#include "runtime/records/trace_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace tombolo::runtime {
namespace {

constexpr Option by{.variable = "TOMBOLO_SOME_TRACE"};

TEST(TraceFile, IsAFileThatProcessesFillInTurn) {
  const std::string path = testing::TempDir() + "trace_file_test_" + std::to_string(getpid());
  std::ofstream(path) << "of an earlier run";
  const TraceFile file(path, by);
  ASSERT_TRUE(file.create().ok());
  const std::string event = R"({"name": "a", "ph": "X", "pid": 1, "tid": 1, "ts": 0, "dur": 1},)";
  for (const std::string& text : {TraceFile::head(), event, event, TraceFile::end("2 threads")})
    ASSERT_TRUE(file.append(text).ok());
  std::stringstream all;
  all << std::ifstream(path).rdbuf();
  unlink(path.c_str());
  const auto parsed = nlohmann::json::parse(all.str());
  ASSERT_EQ(parsed["traceEvents"].size(), 3u);
  EXPECT_EQ(parsed["traceEvents"][2]["args"]["name"], "2 threads");
}

TEST(TraceFile, NamesAPathThatCannotBeWritten) {
  const TraceFile file("/nowhere/a", by);
  for (const Status& status : {file.create(), file.append("x")}) {
    EXPECT_EQ(status.code(), Code::bad_configuration);
    EXPECT_NE(status.message().find("/nowhere/a cannot be written: open"), std::string::npos);
    EXPECT_NE(status.message().find("see TOMBOLO_SOME_TRACE and --trace"), std::string::npos);
  }
}

}  // namespace
}  // namespace tombolo::runtime
