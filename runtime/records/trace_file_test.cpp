// SPDX-License-Identifier: Apache-2.0
// Purpose: the file of a trace is JSON; it replaces the file of before whole or not at all, and a
// path that cannot be written is named.
#include "runtime/records/trace_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>
#include <vector>

namespace {

int fails_with = 0;  // each fsync, where it is an errno
int fsyncs = 0;

}  // namespace

extern "C" int fsync(int file) {
  ++fsyncs;
  if (fails_with == 0) return static_cast<int>(syscall(SYS_fsync, file));
  errno = fails_with;
  return -1;
}

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
  ASSERT_TRUE(others.end_part().ok());
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

// The exit status of a forked child: 0 where `part` has returned true.
template <class Part>
int status_of_child(const Part& part) {
  const pid_t child = fork();
  if (child == 0) _exit(part() ? 0 : 1);
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

TEST_F(TraceFileTest, AFullDiskIsAnErrorInAProcessThatHasJoined) {
  TraceFile file(path(), by);
  ASSERT_TRUE(file.begin().ok());
  EXPECT_EQ(status_of_child([&] {
              sigset_t none;
              sigemptyset(&none);
              pthread_sigmask(SIG_SETMASK, &none, nullptr);  // as in a process that has not forked
              TraceFile joined(path(), by);
              if (!joined.join(file.draft()).ok()) return false;
              const struct rlimit small = {.rlim_cur = 4096, .rlim_max = 4096};
              setrlimit(RLIMIT_FSIZE, &small);
              return joined.append(std::string(8192, 'x')).code() == Code::bad_configuration;
            }),
            0);
  EXPECT_EQ(names().size(), 2u);
  file.drop();
  expect_the_file_of_before();
}

TEST_F(TraceFileTest, APartThatHasEndedIsOnTheDiskAndClosed) {
  const auto descriptors = [] {
    return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
  };
  TraceFile file(path(), by);
  ASSERT_TRUE(file.begin().ok());
  const auto open_before = descriptors();
  TraceFile joined(path(), by);
  ASSERT_TRUE(joined.join(file.draft()).ok());
  fsyncs = 0;
  ASSERT_TRUE(joined.append("new").ok());
  EXPECT_TRUE(joined.end_part().ok());
  EXPECT_EQ(fsyncs, 1);
  EXPECT_EQ(descriptors(), open_before);
  EXPECT_TRUE(file.end_part().ok());
  EXPECT_EQ(fsyncs, 2);
  EXPECT_EQ(descriptors(), open_before);
  ASSERT_TRUE(joined.join(file.draft()).ok());
  fails_with = ENOSPC;
  const Status full = joined.end_part();
  fails_with = 0;
  EXPECT_NE(full.message().find("cannot be written: fsync: No space"), std::string::npos)
      << full.message();
  ASSERT_TRUE(file.replace().ok());
  EXPECT_EQ(content_of(path()), "new");
}

TEST_F(TraceFileTest, IsReplacedOnAFileSystemThatHasNoFsync) {
  for (const int none : {EINVAL, ENOSYS, EOPNOTSUPP}) {
    TraceFile file(path(), by);
    ASSERT_TRUE(file.begin().ok());
    ASSERT_TRUE(file.append(std::to_string(none)).ok());
    fails_with = none;
    EXPECT_TRUE(file.replace().ok()) << none;
    fails_with = 0;
    EXPECT_EQ(content_of(path()), std::to_string(none));
  }
  TraceFile file(path(), by);
  ASSERT_TRUE(file.begin().ok());
  fails_with = EIO;
  EXPECT_FALSE(file.replace().ok());
  fails_with = 0;
}

TEST_F(TraceFileTest, AForkLeavesTheNewFile) {
  TraceFile file(path(), by);
  ASSERT_TRUE(file.begin().ok());
  ASSERT_TRUE(file.append("new").ok());
  EXPECT_EQ(status_of_child([&] {
              const TraceFile ended(std::move(file));
              return true;
            }),
            0);
  EXPECT_EQ(status_of_child([&] {
              file.drop();
              return true;
            }),
            0);
  ASSERT_TRUE(file.replace().ok());
  EXPECT_EQ(content_of(path()), "new");
}

TEST_F(TraceFileTest, IsInTheFolderOfThePathWhereThatIsRelative) {
  const fs::path here = fs::current_path();
  fs::current_path(folder());
  for (const char* name : {"trace.json", "new.json"}) {
    TraceFile file(name, by);
    EXPECT_TRUE(file.check().ok());
    ASSERT_TRUE(file.begin().ok());
    EXPECT_TRUE(std::ranges::any_of(
        names(), [](const std::string& each) { return each.starts_with(".tombolo-"); }));
    ASSERT_TRUE(file.append("new").ok());
    ASSERT_TRUE(file.replace().ok());
    EXPECT_EQ(content_of(folder() / name), "new");
  }
  fs::current_path(here);
}

// Tells what the check says in a child, in which `before_it` has succeeded; empty where it has not.
template <class Before>
std::string checked_in_child(const std::string& path, const Before& before_it) {
  int ends[2] = {};
  EXPECT_EQ(pipe(ends), 0);
  const host::Descriptor from(ends[0]), into(ends[1]);
  EXPECT_EQ(status_of_child([&] {
              if (!before_it()) return true;
              const Status checked = TraceFile(path, by).check();
              const std::string says = checked.ok() ? "fits" : std::string(checked.message());
              return write(into.get(), says.data(), says.size()) > 0;
            }),
            0);
  std::string says(4096, '\0');
  fcntl(from.get(), F_SETFL, O_NONBLOCK);
  says.resize(static_cast<std::size_t>(std::max<ssize_t>(0, read(from.get(), says.data(), 4096))));
  return says;
}

TEST_F(TraceFileTest, AnotherUsersFileInAFolderWithTheStickyBitIsRefused) {
  constexpr uid_t another = 65534;
  chmod(path().c_str(), 0666);
  const auto told = [&](mode_t of_folder) {
    chmod(folder().c_str(), of_folder);
    return checked_in_child(path(), [] { return setresuid(another, another, another) == 0; });
  };
  const std::string says = told(01777);
  if (says.empty()) GTEST_SKIP() << "needs to be allowed to become another user";
  EXPECT_NE(
      says.find("cannot be written: rename over another user's file in a folder with the sticky "
                "bit: Operation not permitted; name a path in a folder of yours; see TOMBOLO_"),
      std::string::npos)
      << says;
  EXPECT_EQ(told(0777), "fits");
}

TEST_F(TraceFileTest, AFileThatIsAMountPointIsRefused) {
  const std::string says = checked_in_child(path(), [&] {
    return unshare(CLONE_NEWNS) == 0 &&
           mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
           mount(path().c_str(), path().c_str(), nullptr, MS_BIND, nullptr) == 0;
  });
  if (says.empty()) GTEST_SKIP() << "needs to be allowed to mount";
  EXPECT_NE(
      says.find("cannot be written: rename over a mount point: Device or resource busy; name a "
                "path in a folder of yours; see TOMBOLO_SOME_TRACE"),
      std::string::npos)
      << says;
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

TEST_F(TraceFileTest, IsMovedWithItsSignalsAndItsNewFile) {
  struct sigaction counts = {}, before_it = {};
  counts.sa_handler = [](int) { ++taken; };
  sigaction(SIGTERM, &counts, &before_it);
  taken = 0;
  {
    TraceFile file(path(), by);
    {
      TraceFile first(path(), by);
      ASSERT_TRUE(first.begin().ok());
      file = std::move(first);
    }
    raise(SIGTERM);
    EXPECT_EQ(taken, 0);
    file = TraceFile(path(), by);
    EXPECT_EQ(taken, 1);
    expect_the_file_of_before();
  }
  sigaction(SIGTERM, &before_it, nullptr);
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
