// SPDX-License-Identifier: Apache-2.0
// Purpose: a process that waits lets others make progress each time, and hears of dead peers.
#include "runtime/processes/peer_watch.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace tombolo::runtime {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

class Progress final : public machine::IdleHook {
 public:
  Status idle() override {
    ++calls;
    return fails ? Status::io("no progress") : Status();
  }
  int calls = 0;
  bool fails = false;
};

// Processes that wait to be killed.
class Children {
 public:
  explicit Children(std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
      const pid_t pid = fork();
      if (pid == 0)
        for (;;) pause();
      names_.push_back(host::process_named(pid));
    }
  }
  ~Children() {
    for (std::size_t i = 0; i < names_.size(); ++i) end(i);
  }
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;
  void end(std::size_t child) {
    kill(names_[child].pid, SIGKILL);
    waitpid(names_[child].pid, nullptr, 0);
  }
  const std::vector<host::ProcessName>& names() const { return names_; }
  std::string named(std::size_t rank) const {
    return "rank " + std::to_string(rank) + " (process " + std::to_string(names_[rank].pid) + ")";
  }

 private:
  std::vector<host::ProcessName> names_;
};

// As a wait does, for at most so long: until the watch says that peers have died.
Status wait_on(PeerWatch& watch, milliseconds most) {
  const auto end = Clock::now() + most;
  while (Clock::now() < end) {
    if (Status status = watch.idle(); !status.ok()) return status;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return {};
}
// Where there is nothing to tell: for as long as a look or two take.
Status nothing_on(PeerWatch& watch) { return wait_on(watch, milliseconds(250)); }
Status fault_on(PeerWatch& watch) { return wait_on(watch, milliseconds(20'000)); }

TEST(PeerWatch, LetsOthersMakeProgressWithEachCall) {
  Children children(2);
  Progress progress;
  PeerWatch watch(0, children.names(), &progress);
  for (int call = 1; call <= 50; ++call) {
    EXPECT_TRUE(watch.idle().ok());
    EXPECT_EQ(progress.calls, call);
  }
}

TEST(PeerWatch, PassesOnTheFaultOfTheProgress) {
  Children children(2);
  Progress progress;
  progress.fails = true;
  PeerWatch watch(0, children.names(), &progress);
  EXPECT_EQ(watch.idle().message(), "no progress");
  progress.fails = false;
  EXPECT_TRUE(watch.idle().ok()) << "it is not kept";
}

TEST(PeerWatch, NamesADeadPeer) {
  Children children(3);
  PeerWatch watch(0, children.names(), nullptr);
  EXPECT_TRUE(nothing_on(watch).ok());
  children.end(2);
  const Status dead = fault_on(watch);
  EXPECT_EQ(dead.code(), Code::process_failed);
  EXPECT_EQ(dead.rank(), 2);
  EXPECT_EQ(dead.message(), children.named(2) + " of the window has died");
}

TEST(PeerWatch, NamesTheWhole) {
  Children children(2);
  PeerWatch watch(0, children.names(), nullptr, "the program");
  children.end(1);
  EXPECT_EQ(fault_on(watch).message(), children.named(1) + " of the program has died");
}

TEST(PeerWatch, NamesAllDeadPeersInOrder) {
  Children children(4);
  PeerWatch watch(1, children.names(), nullptr);
  children.end(3);
  children.end(0);
  children.end(1);  // is not a peer of its own
  const Status dead = fault_on(watch);
  EXPECT_EQ(dead.rank(), 0);
  EXPECT_EQ(dead.message(),
            children.named(0) + ", " + children.named(3) + " of the window have died");
}

TEST(PeerWatch, CountsThoseBeyondEight) {
  for (const std::size_t dead : {8u, 9u, 11u}) {
    Children children(dead + 1);
    for (std::size_t rank = 1; rank <= dead; ++rank) children.end(rank);
    PeerWatch watch(0, children.names(), nullptr);
    const std::string told = fault_on(watch).message();
    EXPECT_NE(told.find(children.named(8)), std::string::npos) << told;
    EXPECT_EQ(told.find("rank 9 "), std::string::npos) << told;
    const std::string rest = " and " + std::to_string(dead - 8) + " more of the window have died";
    EXPECT_EQ(told.ends_with(rest), dead > 8) << told;
  }
}

TEST(PeerWatch, DoesNotLookAtOnceNorWithEachCall) {
  Children children(2);
  children.end(1);
  PeerWatch watch(0, children.names(), nullptr);
  const auto start = Clock::now();
  auto last_call = start;
  EXPECT_TRUE(watch.idle().ok());
  while (watch.idle().ok()) last_call = Clock::now();
  EXPECT_GE(Clock::now() - start, milliseconds(100)) << "short waits are not looked after";
  const bool quiet = watch.idle().ok();
  if (Clock::now() - last_call < milliseconds(100)) {
    EXPECT_TRUE(quiet) << "the next look has its time as well";
  }
  EXPECT_FALSE(fault_on(watch).ok()) << "and tells the same";
}

TEST(PeerWatch, LeavesProcessesOfOtherHostsAlone) {
  Children children(2);
  std::vector<host::ProcessName> processes = children.names();
  processes.push_back({});  // number 0
  PeerWatch watch(0, processes, nullptr);
  EXPECT_TRUE(nothing_on(watch).ok());
}

}  // namespace
}  // namespace tombolo::runtime
