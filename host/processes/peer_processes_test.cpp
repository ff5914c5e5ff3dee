// SPDX-License-Identifier: Apache-2.0
#include "host/processes/peer_processes.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <thread>

namespace tombolo::host {
namespace {

std::ptrdiff_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return std::distance(begin(all), end(all));
}

// Processes that wait to be killed; reaped with the object.
class Children {
 public:
  explicit Children(std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
      const pid_t pid = fork();
      if (pid == 0)
        for (;;) pause();
      names_.push_back(process_named(pid));
    }
  }
  ~Children() {
    for (const auto& name : names_) {
      kill(name.pid, SIGKILL);
      waitpid(name.pid, nullptr, 0);
    }
  }
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;
  // Not reaped.
  void end(std::size_t child) const {
    kill(names_[child].pid, SIGKILL);
    siginfo_t info{};
    waitid(P_PID, static_cast<id_t>(names_[child].pid), &info, WEXITED | WNOWAIT);
  }
  const std::vector<ProcessName>& names() const { return names_; }

 private:
  std::vector<ProcessName> names_;
};

using Ranks = std::vector<std::size_t>;

TEST(PeerProcesses, NamesThoseThatHaveEnded) {
  const Children children(4);
  PeerProcesses peers(2, children.names());
  EXPECT_EQ(peers.ended(), Ranks());
  children.end(3);
  EXPECT_EQ(peers.ended(), Ranks({3}));
  children.end(0);
  children.end(2);
  EXPECT_EQ(peers.ended(), Ranks({0, 3}));
}

TEST(PeerProcesses, LeavesMostDescriptorsToTheProgram) {
  rlimit saved{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &saved), 0);
  const rlimit few{64, saved.rlim_max};
  const Children children(150);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  const auto before = open_descriptors();
  PeerProcesses peers(0, children.names());
  EXPECT_EQ(peers.ended(), Ranks());
  PeerProcesses of_another_window(1, children.names());
  EXPECT_EQ(of_another_window.ended(), Ranks());
  EXPECT_LE(open_descriptors() - before, 16);
  // With a descriptor, without one, and one whose turn comes last.
  for (const std::size_t child : {3, 100, 149}) children.end(child);
  peers.ended();
  peers.ended();
  EXPECT_EQ(peers.ended(), Ranks({3, 100, 149}));
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &saved), 0);
}

TEST(PeerProcesses, ClosedDescriptorsAreNotMissed) {
  const Children children(3);
  PeerProcesses peers(0, children.names());
  const auto before = open_descriptors();
  EXPECT_EQ(peers.ended(), Ranks());
  for (int fd = 3; fd < 3 + before + 8; ++fd) close(fd);
  EXPECT_EQ(peers.ended(), Ranks());
  children.end(1);
  EXPECT_EQ(peers.ended(), Ranks({1}));
}

TEST(PeerProcesses, DescriptorsThatNowStandForSilentPipesAreNotWaitedFor) {
  const Children children(3);
  PeerProcesses peers(0, children.names());
  const auto before = open_descriptors();
  EXPECT_EQ(peers.ended(), Ranks());
  for (int fd = 3; fd < 3 + before + 8; ++fd) close(fd);
  std::array<int, 2> silent{};
  for (int i = 0; i < before + 8; i += 2) ASSERT_EQ(pipe(silent.data()), 0);
  EXPECT_EQ(peers.ended(), Ranks());
  children.end(1);
  EXPECT_EQ(peers.ended(), Ranks({1}));
  // Nor does another window's watch take them for descriptors of processes.
  PeerProcesses others(0, children.names());
  EXPECT_EQ(others.ended(), Ranks({1}));
  for (int fd = 3; fd < 3 + before + 16; ++fd) close(fd);
}

TEST(PeerProcesses, AProcessWithTheSameNumberIsAnotherOne) {
  const ProcessName self = process_named(getpid());
  EXPECT_NE(self.started, 0u);
  EXPECT_FALSE(has_ended(self));
  EXPECT_FALSE(has_ended({self.pid, 0}));
  const ProcessName former{self.pid, self.started - 1};
  EXPECT_TRUE(has_ended(former));
  PeerProcesses peers(1, {former, self});
  EXPECT_EQ(peers.ended(), Ranks({0}));
}

}  // namespace
}  // namespace tombolo::host
