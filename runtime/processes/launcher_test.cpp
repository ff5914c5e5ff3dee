// SPDX-License-Identifier: Apache-2.0
// Purpose: n processes of one program are started, meet over sockets and end together.
#include "runtime/processes/launcher.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "host/processes/process.h"
#include "host/processes/testing/held_allocator.h"
#include "runtime/collective/collective.h"

namespace tombolo::runtime {
namespace {

std::string program;  // this one, which also plays the processes

Launch of_members(const std::string& part, int size) {
  return {.command = {program, "--member", part}, .size = size, .grace = std::chrono::seconds(5)};
}

Status ran(const Launch& launch) {
  Launcher launcher;
  TOMBOLO_TRY(Launcher::start(launch, launcher));
  return launcher.wait();
}

// ---- The processes --------------------------------------------------------------------------

int meet(SocketExchange& exchange) {
  const auto n = static_cast<std::size_t>(exchange.size());
  std::vector<int> ranks(n, -1);
  const int mine = exchange.rank();
  if (!exchange.gather(&mine, ranks.data(), sizeof mine).ok()) return 10;
  for (std::size_t i = 0; i < n; ++i)
    if (ranks[i] != static_cast<int>(i)) return 11;
  for (int root = 0; root < exchange.size(); ++root) {
    int value = mine == root ? 100 + root : 0;
    if (!exchange.broadcast(&value, sizeof value, root).ok() || value != 100 + root) return 12;
  }
  if (!exchange.all(true)) return 13;
  for (int one = 0; one < exchange.size(); ++one)
    if (exchange.all(mine != one)) return 14;
  // More than a socket holds at once.
  std::vector<char> large(1 << 20, static_cast<char>(mine));
  std::vector<char> everyones(large.size() * n);
  if (!exchange.gather(large.data(), everyones.data(), large.size()).ok()) return 15;
  for (std::size_t i = 0; i < everyones.size(); ++i)
    if (everyones[i] != static_cast<char>(i / large.size())) return 16;
  return 0;
}

// The last process leaves; all others must notice, at their next call or the one after.
int leave(SocketExchange& exchange) {
  if (!exchange.all(true)) return 20;
  if (exchange.rank() == exchange.size() - 1) return 0;
  int value = 1;
  for (int calls = 0; calls < 3; ++calls)
    if (!exchange.broadcast(&value, sizeof value, 0).ok() || !exchange.all(true)) return 0;
  return 21;
}

int member(const std::string& part) {
  std::unique_ptr<SocketExchange> exchange;
  if (const Status joined = join(exchange); !joined.ok()) {
    std::fprintf(stderr, "%s\n", joined.message().c_str());
    return 30;
  }
  if (part == "meet") return meet(*exchange);
  if (part == "leave") return leave(*exchange);
  if (part == "fail") {
    if (exchange->rank() == 1) return 7;
    pause();
  }
  if (part == "deaf") {
    signal(SIGTERM, SIG_IGN);
    exchange->all(true);
    if (exchange->rank() == 0) return 8;
    for (;;) pause();
  }
  if (part == "crash" && exchange->rank() == 1) {
    signal(SIGSEGV, SIG_DFL);  // a sanitizer's action would exit with a status
    raise(SIGSEGV);
  }
  return 0;
}

// ---- The tests ------------------------------------------------------------------------------

TEST(Launcher, ProcessesMeet) {
  for (const int size : {1, 2, 5}) {
    const Status ended = ran(of_members("meet", size));
    EXPECT_TRUE(ended.ok()) << size << ": " << ended.message();
  }
}

// The rule of host/processes/shared_fork.h: nothing is allocated between fork and exec.
TEST(Launcher, ProcessesStartWhoseAllocatorIsHeld) {
  const pid_t starter = fork();
  if (starter == 0) {
    alarm(60);  // start() waits for them to become the program
    host::testing::hold_allocator_at_forks();
    _exit(ran(of_members("meet", 3)).ok() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(starter, &status, 0), starter);
  EXPECT_EQ(status, 0) << "14: a process waits for the allocator";
}

TEST(Launcher, OneThatLeavesIsNoticedByAll) {
  const Status ended = ran(of_members("leave", 4));
  EXPECT_TRUE(ended.ok()) << ended.message();
}

TEST(Launcher, OneThatFailsEndsTheOthersAndIsNamed) {
  const Status ended = ran(of_members("fail", 3));
  EXPECT_EQ(ended.code(), Code::process_failed);
  EXPECT_EQ(ended.rank(), 1);
  EXPECT_EQ(ended.message(), "process 1 ended with status 7");
}

TEST(Launcher, OneThatIgnoresTheRequestIsKilled) {
  Launch launch = of_members("deaf", 2);
  launch.grace = std::chrono::milliseconds(100);
  const Status ended = ran(launch);
  EXPECT_EQ(ended.rank(), 0);
  EXPECT_EQ(ended.message(), "process 0 ended with status 8");
}

TEST(Launcher, ACrashIsNamedBySignal) {
  const Status ended = ran(of_members("crash", 2));
  EXPECT_EQ(ended.rank(), 1);
  EXPECT_NE(ended.message().find("signal 11"), std::string::npos) << ended.message();
}

TEST(Launcher, TellsTheStatusThatAShellWould) {
  for (const auto& [part, status] : {std::pair{"meet", 0}, {"fail", 7}, {"crash", 128 + SIGSEGV}}) {
    Launcher launcher;
    ASSERT_TRUE(Launcher::start(of_members(part, 2), launcher).ok());
    EXPECT_EQ(launcher.wait().ok(), status == 0) << part;
    EXPECT_EQ(launcher.exit_status(), status) << part;
  }
  Launcher launcher;
  ASSERT_TRUE(Launcher::start({.command = {"sleep", "1000"}, .size = 1}, launcher).ok());
  const std::atomic<bool> interrupt = true;
  EXPECT_FALSE(launcher.wait(&interrupt).ok());
  EXPECT_EQ(launcher.exit_status(), 1) << "interrupted";
}

TEST(Launcher, AProgramThatIsNotThereIsABadConfiguration) {
  const Status ended = ran({.command = {"/nowhere/program"}, .size = 2});
  EXPECT_EQ(ended.code(), Code::bad_configuration);
  EXPECT_NE(ended.message().find("/nowhere/program does not start: No such file"),
            std::string::npos)
      << ended.message();
}

TEST(Launcher, AnInterruptEndsThemAll) {
  Launcher launcher;
  ASSERT_TRUE(Launcher::start({.command = {"sleep", "1000"}, .size = 2}, launcher).ok());
  const std::vector<pid_t> pids = launcher.processes();
  const std::atomic<bool> interrupt = true;
  EXPECT_EQ(launcher.wait(&interrupt).code(), Code::stopped);
  for (const pid_t pid : pids) EXPECT_TRUE(host::has_ended({pid, 0}));
}

TEST(Launcher, ItsEndEndsTheProcesses) {
  std::vector<pid_t> pids;
  {
    Launcher launcher;
    ASSERT_TRUE(Launcher::start({.command = {"sleep", "1000"}, .size = 3}, launcher).ok());
    pids = launcher.processes();
  }
  for (const pid_t pid : pids) EXPECT_TRUE(host::has_ended({pid, 0}));
}

// LA1: a launcher that is killed cannot end anything itself.
TEST(Launcher, ThatIsKilledLeavesNoProcess) {
  int told[2];
  ASSERT_EQ(pipe(told), 0);
  const pid_t parent = fork();
  if (parent == 0) {
    Launcher launcher;
    if (!Launcher::start({.command = {"sleep", "1000"}, .size = 2}, launcher).ok()) _exit(1);
    for (const pid_t pid : launcher.processes())
      if (write(told[1], &pid, sizeof pid) != sizeof pid) _exit(2);
    for (;;) pause();
  }
  pid_t pids[2] = {};
  ASSERT_EQ(read(told[0], &pids[0], sizeof(pid_t)), ssize_t{sizeof(pid_t)});
  ASSERT_EQ(read(told[0], &pids[1], sizeof(pid_t)), ssize_t{sizeof(pid_t)});
  kill(parent, SIGKILL);
  waitpid(parent, nullptr, 0);
  for (const pid_t pid : pids) {
    for (int i = 0; i < 500 && !host::has_ended({pid, 0}); ++i) usleep(10000);
    EXPECT_TRUE(host::has_ended({pid, 0}));
  }
  close(told[0]);
  close(told[1]);
}

TEST(Launcher, GivesTheEnvironmentThatWasAsked) {
  setenv("TOMBOLO_TEST_KEPT", "kept", 1);
  setenv("TOMBOLO_TEST_CHANGED", "old", 1);
  const Status ended =
      ran({.command = {"sh", "-c", "test $TOMBOLO_TEST_KEPT$TOMBOLO_TEST_CHANGED = keptnew"},
           .environment = {{"TOMBOLO_TEST_CHANGED", "new"}}});
  EXPECT_TRUE(ended.ok()) << ended.message();
}

TEST(Join, ElsewhereIsABadConfiguration) {
  std::unique_ptr<SocketExchange> exchange;
  unsetenv("TOMBOLO_MEMBER");
  EXPECT_FALSE(is_launched());
  for (const char* member : {"", "0/1", "1/1:3", "0/2:9999", "0/2:", "x"}) {
    setenv("TOMBOLO_MEMBER", member, 1);
    EXPECT_EQ(join(exchange).code(), Code::bad_configuration) << member;
    EXPECT_EQ(is_launched(), *member != '\0');
  }
  unsetenv("TOMBOLO_MEMBER");
}

}  // namespace
}  // namespace tombolo::runtime

int main(int argc, char** argv) {
  if (argc == 3 && std::string(argv[1]) == "--member") return tombolo::runtime::member(argv[2]);
  testing::InitGoogleTest(&argc, argv);
  tombolo::runtime::program = "/proc/self/exe";
  return RUN_ALL_TESTS();
}
