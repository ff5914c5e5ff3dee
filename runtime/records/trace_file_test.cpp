// SPDX-License-Identifier: Apache-2.0
// Purpose: the file of a trace is JSON; it replaces the file of before whole or not at all, and a
// path that cannot be written is named.
#include "runtime/records/trace_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

namespace tombolo::runtime {
namespace {

namespace fs = std::filesystem;

constexpr Option by{.variable = "TOMBOLO_SOME_TRACE"};
constexpr std::string_view before = "of an earlier run";

std::string content_of(const fs::path& path) {
  std::stringstream all;
  all << std::ifstream(path).rdbuf();
  return all.str();
}

class TraceFileTest : public testing::Test {
 protected:
  TraceFileTest() {
    fs::create_directory(folder_);
    std::ofstream(path()) << before;
  }
  ~TraceFileTest() override { fs::remove_all(folder_); }

  fs::path folder() const { return folder_; }
  std::string path() const { return folder_ / "trace.json"; }
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& each : fs::directory_iterator(folder_))
      found.push_back(each.path().filename());
    return found;
  }
  void expect_the_file_of_before() const {
    EXPECT_EQ(content_of(path()), before);
    EXPECT_EQ(names(), std::vector<std::string>{"trace.json"});
  }

 private:
  fs::path folder_ = fs::path(testing::TempDir()) / ("trace_file_test_" + std::to_string(getpid()));
};

TEST_F(TraceFileTest, IsReplacedByOneThatProcessesFillInTurn) {
  chmod(path().c_str(), 0604);
  TraceFile file(path(), by);
  TraceFile others(path(), by);
  EXPECT_TRUE(file.check().ok());
  EXPECT_EQ(file.draft(), 0u);
  ASSERT_TRUE(file.begin().ok());
  ASSERT_TRUE(others.join(file.draft()).ok());
  const std::string event = R"({"name": "a", "ph": "X", "pid": 1, "tid": 1, "ts": 0, "dur": 1},)";
  ASSERT_TRUE(file.append(TraceFile::head()).ok());
  ASSERT_TRUE(file.append(event).ok());
  ASSERT_TRUE(others.append(event).ok());
  ASSERT_TRUE(others.append(TraceFile::end("2 threads")).ok());
  EXPECT_EQ(content_of(path()), before);
  ASSERT_TRUE(file.replace().ok());
  const auto parsed = nlohmann::json::parse(content_of(path()));
  ASSERT_EQ(parsed["traceEvents"].size(), 3u);
  EXPECT_EQ(parsed["traceEvents"][2]["args"]["name"], "2 threads");
  EXPECT_EQ(names(), std::vector<std::string>{"trace.json"});
  EXPECT_EQ(fs::status(path()).permissions(), fs::perms{0604});
}

TEST_F(TraceFileTest, StaysWhereTheNewOneIsDroppedOrForgotten) {
  {
    TraceFile file(path(), by);
    ASSERT_TRUE(file.begin().ok());
    ASSERT_TRUE(file.append("half").ok());
    file.drop();
    expect_the_file_of_before();
    ASSERT_TRUE(file.begin().ok());
    ASSERT_TRUE(file.append("half").ok());
    EXPECT_EQ(names().size(), 2u);
  }
  expect_the_file_of_before();
}

// The limit of a file's size stands for a full disk. Its signal would end the process.
TEST_F(TraceFileTest, StaysWhereTheDiskIsFull) {
  struct rlimit limit = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const struct rlimit small = {.rlim_cur = 4096, .rlim_max = limit.rlim_max};
  TraceFile file(path(), by);
  ASSERT_TRUE(file.begin().ok());
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status full = file.append(std::string(8192, 'x'));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  EXPECT_EQ(full.code(), Code::bad_configuration);
  EXPECT_NE(full.message().find("trace.json cannot be written: write: File too large"),
            std::string::npos)
      << full.message();
  expect_the_file_of_before();
}

int taken = 0;

TEST_F(TraceFileTest, NoSignalThatEndsAProgramIsTakenWhileItIsWritten) {
  struct sigaction counts = {};
  counts.sa_handler = [](int) { ++taken; };
  const int signals[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
  struct sigaction before_it[std::size(signals)] = {};
  for (std::size_t i = 0; i < std::size(signals); ++i)
    sigaction(signals[i], &counts, &before_it[i]);
  TraceFile file(path(), by);
  ASSERT_TRUE(file.begin().ok());
  for (const int signal : signals) raise(signal);
  EXPECT_EQ(taken, 0);
  ASSERT_TRUE(file.append("new").ok());
  ASSERT_TRUE(file.replace().ok());
  EXPECT_EQ(taken, 4);
  for (std::size_t i = 0; i < std::size(signals); ++i)
    sigaction(signals[i], &before_it[i], nullptr);
}

TEST_F(TraceFileTest, ALinkStaysAndItsTargetIsReplaced) {
  for (const char* target : {"trace.json", "new.json"}) {
    const fs::path link = folder() / "link";
    fs::create_symlink(target, link);
    TraceFile file(link, by);
    EXPECT_TRUE(file.check().ok());
    ASSERT_TRUE(file.begin().ok());
    ASSERT_TRUE(file.append("new").ok());
    ASSERT_TRUE(file.replace().ok());
    EXPECT_TRUE(fs::is_symlink(link));
    EXPECT_EQ(content_of(folder() / target), "new");
    fs::remove(link);
  }
}

// Where /dev/stdout leads to a file, other output is in it.
TEST_F(TraceFileTest, WhatIsOpenAndWhatIsNoFileIsWrittenAsItIs) {
  const host::Descriptor open_here(open(path().c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  const std::string name = "/dev/fd/" + std::to_string(open_here.get());
  for (const std::string& each : {name, std::string("/dev/null")}) {
    TraceFile file(each, by);
    EXPECT_TRUE(file.check().ok());
    ASSERT_TRUE(file.begin().ok());
    ASSERT_TRUE(file.append(", new").ok());
    ASSERT_TRUE(file.replace().ok());
  }
  EXPECT_EQ(content_of(path()), std::string(before) + ", new");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  TraceFile full("/dev/full", by);
  EXPECT_TRUE(full.check().ok());
  ASSERT_TRUE(full.begin().ok());
  EXPECT_FALSE(full.append("new").ok());
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST_F(TraceFileTest, NamesAPathThatCannotBeWritten) {
  struct Case {
    std::string path;
    const char* says;
  };
  const Case cases[] = {{"/nowhere/a", "/nowhere/a cannot be written: open"},
                        {folder(), " cannot be written: open: Is a directory"},
                        {path() + "/a", "/a cannot be written: open: Not a directory"}};
  for (const Case& each : cases) {
    const Status checked = TraceFile(each.path, by).check();
    EXPECT_EQ(checked.code(), Code::bad_configuration);
    EXPECT_NE(checked.message().find(each.says), std::string::npos) << checked.message();
    EXPECT_NE(checked.message().find("see TOMBOLO_SOME_TRACE and --trace"), std::string::npos);
    TraceFile file(each.path, by);
    Status written = file.begin();
    if (written.ok()) written = file.replace();
    EXPECT_EQ(written.code(), Code::bad_configuration) << each.path;
  }
  expect_the_file_of_before();
}

}  // namespace
}  // namespace tombolo::runtime
