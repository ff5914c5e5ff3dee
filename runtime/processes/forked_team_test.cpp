// SPDX-License-Identifier: Apache-2.0
// Purpose: forked processes share files with the one that starts them, and end with it. Each test
// runs in a process of its own, since a process has one team.
#include "runtime/processes/forked_team.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>

#include "host/processes/process.h"
#include "host/processes/testing/held_allocator.h"

namespace tombolo::runtime {
namespace {

// Shared by the test and all processes of a team.
struct Board {
  std::atomic<int> count;
  std::atomic<int> descriptor;
  std::atomic<pid_t> pids[8];
};

Board& board() {
  static host::Segment segment;
  if (segment.data() == nullptr) {
    EXPECT_TRUE(host::Segment::create_anonymous(sizeof(Board), "test", segment).ok());
  }
  return *reinterpret_cast<Board*>(segment.data());
}

// The status of wait() of a process that runs the body.
int status_of(const std::function<void()>& body) {
  board().count = 0;
  const pid_t child = fork();
  if (child == 0) {
    body();
    _exit(0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

std::string name_of(int rank) { return fmt::format("member {}", rank); }

std::unique_ptr<ForkedTeam> started(std::function<void(int)> member,
                                    void (*exit_asked)(int) = nullptr) {
  std::unique_ptr<ForkedTeam> team;
  const Status status = ForkedTeam::start(
      {.most = 4, .naming = name_of, .member = std::move(member), .exit_asked = exit_asked}, team);
  if (!status.ok()) _exit(99);
  return team;
}

void expect(bool condition, int line) {
  if (!condition) _exit(line % 251 + 1);
}

void stay(int rank) {
  board().pids[rank] = static_cast<pid_t>(getpid());
  ++board().count;
  for (;;) pause();
}

void wait_for(int count) {
  while (board().count.load() < count) std::this_thread::yield();
}

bool all_end(int ranks) {
  for (int looks = 0; looks < 5000; ++looks) {
    bool any = false;
    for (int i = 0; i < ranks; ++i)
      any = any || !host::has_ended(host::process_named(board().pids[i].load()));
    if (!any) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

TEST(ForkedTeam, MembersShareFilesAndLeave) {
  EXPECT_EQ(status_of([] {
              const auto team = started([](int rank) {
                board().descriptor = open("/dev/null", O_RDWR);
                expect(chdir("/proc") == 0 && rank == 2, __LINE__);
              });
              expect(team->add(2).ok(), __LINE__);
              while (team->process(2) != 0) std::this_thread::yield();
              expect(fcntl(board().descriptor, F_GETFD) >= 0, __LINE__);
              char place[16] = "";
              expect(getcwd(place, sizeof place) != nullptr && std::string(place) == "/proc",
                     __LINE__);
              // TEM3
              expect(waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD, __LINE__);
              expect(team->add(2).ok(), __LINE__);
            }),
            0);
}

TEST(ForkedTeam, TheEndOfTheStarterIsThatOfAll) {
  for (const bool killed : {false, true}) {
    const int status = status_of([&] {
      const auto team = started(stay);
      for (int rank = 0; rank < 4; ++rank) expect(team->add(rank).ok(), __LINE__);
      wait_for(4);
      if (killed) raise(SIGKILL);
      _exit(3);
    });
    EXPECT_EQ(status, killed ? SIGKILL : 3 << 8);
    EXPECT_TRUE(all_end(4));
  }
}

TEST(ForkedTeam, EndWaitsForAll) {
  EXPECT_EQ(status_of([] {
              const auto team = started(stay);
              expect(team->add(0).ok() && team->add(3).ok(), __LINE__);
              wait_for(2);
              team->end();
              expect(kill(board().pids[0], 0) != 0 && kill(board().pids[3], 0) != 0, __LINE__);
              expect(!team->add(1).ok(), __LINE__);
              team->end();
            }),
            0);
}

TEST(ForkedTeam, AKilledMemberEndsTheStarterAlike) {
  for (const int signal : {SIGKILL, SIGSEGV, SIGABRT}) {
    const int status = status_of([&] {
      ::signal(SIGSEGV, SIG_DFL);  // a sanitizer's action would exit with a status
      const auto team = started([&](int rank) {
        if (rank == 1) raise(signal);
        stay(rank);
      });
      expect(team->add(0).ok(), __LINE__);
      wait_for(1);
      expect(team->add(1).ok(), __LINE__);
      for (;;) pause();
    });
    EXPECT_TRUE(WIFSIGNALED(status));
    EXPECT_EQ(WTERMSIG(status), signal);
    EXPECT_TRUE(all_end(1));
  }
}

// A team whose keeper finds the allocator held for ever, as its members do.
std::unique_ptr<ForkedTeam> started_beside_a_held_allocator(std::function<void(int)> member) {
  host::testing::hold_allocator_at_forks();
  return started(std::move(member));
}

// The member 0 and the keeper. Those that hang are ended here: they would outlive the test.
void expect_all_to_end() {
  const bool ended = all_end(2);
  EXPECT_TRUE(ended);
  for (int i = 0; i < 2 && !ended; ++i)
    if (board().pids[i] > 0) kill(board().pids[i], SIGKILL);
}

// TEM6
TEST(ForkedTeam, AKeeperWhoseAllocatorWasHeldTellsOfAKilledMember) {
  const int status = status_of([] {
    const auto team = started_beside_a_held_allocator([](int rank) {
      if (rank == 1) raise(SIGKILL);
      board().pids[1] = getppid();
      stay(rank);
    });
    expect(team->add(0).ok(), __LINE__);
    wait_for(1);
    expect(team->add(1).ok(), __LINE__);
    alarm(20);
    for (;;) pause();
  });
  EXPECT_EQ(status, SIGKILL);
  expect_all_to_end();
}

// TEM6: it looks how the starter has ended.
TEST(ForkedTeam, AKeeperWhoseAllocatorWasHeldEndsWithTheStarter) {
  const int status = status_of([] {
    const auto team = started_beside_a_held_allocator([](int rank) {
      board().pids[1] = getppid();
      stay(rank);
    });
    expect(team->add(0).ok(), __LINE__);
    wait_for(1);
    raise(SIGKILL);
  });
  EXPECT_EQ(status, SIGKILL);
  expect_all_to_end();
}

TEST(ForkedTeam, AStarterThatHandlesTheSignalEndsNevertheless) {
  const int status = status_of([] {
    signal(SIGSEGV, SIG_IGN);
    const auto team = started([](int) {
      signal(SIGSEGV, SIG_DFL);
      raise(SIGSEGV);
    });
    expect(team->add(0).ok(), __LINE__);
    for (;;) pause();
  });
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
}

TEST(ForkedTeam, AKilledKeeperEndsAll) {
  const int status = status_of([] {
    const auto team = started([](int rank) {
      board().pids[1] = getppid();
      stay(rank);
    });
    expect(team->add(0).ok(), __LINE__);
    wait_for(1);
    kill(board().pids[1], SIGKILL);
    for (;;) pause();
  });
  EXPECT_EQ(status, 1 << 8);
  EXPECT_TRUE(all_end(2));
}

TEST(ForkedTeam, AMemberEndsTheProgramWithItsStatus) {
  EXPECT_EQ(status_of([] {
              const auto team = started([](int) { _exit(17); });
              expect(team->add(0).ok(), __LINE__);
              for (;;) pause();
            }),
            17 << 8);
  EXPECT_EQ(status_of([] {
              static ForkedTeam* all = nullptr;
              std::unique_ptr<ForkedTeam> team;
              expect(ForkedTeam::start({.most = 1,
                                        .naming = name_of,
                                        .member =
                                            [&](int) {
                                              all = team.get();
                                              all->ask_exit(18);
                                              for (;;) pause();
                                            },
                                        .exit_asked = [](int status) { _exit(status + 1); }},
                                       team)
                         .ok(),
                     __LINE__);
              expect(team->asked_status() == -1 && team->add(0).ok(), __LINE__);
              for (;;) pause();
            }),
            19 << 8);
}

// TEM4
TEST(ForkedTeam, AStarterThatBlocksAllSignalsHearsOfTheEnd) {
  for (const bool waits : {false, true})
    EXPECT_EQ(status_of([&] {
                sigset_t all;
                sigfillset(&all);
                sigprocmask(SIG_SETMASK, &all, nullptr);
                const auto team = started([](int) { _exit(17); });
                expect(team->add(0).ok(), __LINE__);
                int signal = 0;
                while (waits) expect(sigwait(&all, &signal) == EINTR, __LINE__);
                for (volatile bool never = false; !never;) {
                }
              }),
              17 << 8);
}

// TEM4: the kernel gives the signal to another thread if the first one holds it back for a while.
TEST(ForkedTeam, TheStartersThreadHearsOfTheEndWhicheverHasTheSignal) {
  EXPECT_EQ(status_of([] {
              static const pthread_t starter = pthread_self();
              std::unique_ptr<ForkedTeam> team;
              expect(ForkedTeam::start({.most = 1,
                                        .naming = name_of,
                                        .member =
                                            [&](int) {
                                              team->ask_exit(18);
                                              board().count = 1;
                                              for (;;) pause();
                                            },
                                        .exit_asked =
                                            [](int status) {
                                              _exit(pthread_equal(pthread_self(), starter) != 0
                                                        ? status + 1
                                                        : 99);
                                            }},
                                       team)
                         .ok(),
                     __LINE__);
              std::thread other([] {
                for (;;) pause();
              });
              std::uint64_t all = ~std::uint64_t{0};
              syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, nullptr, sizeof all);
              expect(team->add(0).ok(), __LINE__);
              wait_for(1);
              all = 0;
              for (;;) syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, nullptr, sizeof all);
            }),
            19 << 8);
}

TEST(ForkedTeam, SignalsOfMembersAreTheStarters) {
  EXPECT_EQ(
      status_of([] {
        sigset_t mask;
        sigemptyset(&mask);
        sigaddset(&mask, SIGUSR2);
        sigprocmask(SIG_SETMASK, &mask, nullptr);
        signal(SIGCHLD, SIG_IGN);
        const auto team = started([](int) {
          sigset_t mine;
          sigprocmask(SIG_SETMASK, nullptr, &mine);
          expect(sigismember(&mine, SIGUSR2) == 1 && sigismember(&mine, SIGUSR1) == 0, __LINE__);
          struct sigaction of_children = {};
          sigaction(SIGCHLD, nullptr, &of_children);
          expect(of_children.sa_handler == SIG_IGN, __LINE__);
        });
        expect(team->add(1).ok(), __LINE__);
        while (team->process(1) != 0) std::this_thread::yield();
        sigset_t mine;
        sigprocmask(SIG_SETMASK, nullptr, &mine);
        expect(sigismember(&mine, SIGUSR2) == 1 && sigismember(&mine, SIGUSR1) == 0, __LINE__);
      }),
      0);
}

}  // namespace
}  // namespace tombolo::runtime
