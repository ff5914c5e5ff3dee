// SPDX-License-Identifier: Apache-2.0
// Purpose: a member that ends without a goodbye is told of, and one that is stopped, leaves or is a
// stranger is not. Members are children of the test, over the loopback device. That a host which
// answers no more is told of is cli/tests/dsm_hosts_test.py's.
// Thread safety: -
#include "host/network/host_watch.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "host/processes/testing/few_threads.h"

namespace tombolo::host {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Loss = HostWatch::Loss;
using Invitation = HostWatch::Invitation;

constexpr seconds short_limit(2);

NetworkAddress address(const char* text) {
  NetworkAddress made{.family = AF_INET};
  EXPECT_EQ(inet_pton(AF_INET, text, made.of.data()), 1);
  return made;
}

// The losses that the thread of a watch has told.
class Losses {
 public:
  HostWatch::Lost teller() {
    return [this](int member, Loss how) {
      const std::lock_guard lock(mutex_);
      told_.emplace_back(member, how);
      changed_.notify_all();
    };
  }
  std::vector<std::pair<int, Loss>> wait_for(std::size_t number) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, seconds(60), [&] { return told_.size() >= number; });
    return told_;
  }
  std::vector<std::pair<int, Loss>> all() { return wait_for(0); }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::pair<int, Loss>> told_;
};

class HostWatchTest : public ::testing::Test {
 protected:
  HostWatchTest() {
    EXPECT_TRUE(center.invite(invitation).ok());
    invitation.addresses = {address("127.0.0.1")};
  }
  ~HostWatchTest() override {
    for (const pid_t child : children_) waitpid(child, nullptr, 0);
  }

  // A child that has joined when this returns; it does `then`, and ends with status 0 if all went
  // well.
  pid_t member(int number, const std::function<void(HostWatch&)>& then, int times = 1) {
    std::array<int, 2> joined{};
    EXPECT_EQ(pipe(joined.data()), 0);
    const pid_t made = child([&] {
      HostWatch watch(short_limit);
      for (int i = 0; i < times; ++i)
        if (!watch.join(invitation, number).ok()) _exit(2);
      if (write(joined[1], "j", 1) != 1) _exit(2);
      then(watch);
    });
    close(joined[1]);  // a child that does not join ends, and so does the read
    char byte = 0;
    EXPECT_EQ(read(joined[0], &byte, 1), 1);
    close(joined[0]);
    return made;
  }
  pid_t child(const std::function<void()>& run) {
    const pid_t made = fork();
    if (made == 0) {
      run();
      _exit(0);
    }
    children_.push_back(made);
    return made;
  }
  std::vector<int> take(std::vector<int> members) {
    std::vector<int> taken = center.take(members);
    std::ranges::sort(taken);
    return taken;
  }
  int status_of(pid_t child) {
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    std::erase(children_, child);
    return status;
  }

  HostWatch center{short_limit};
  Invitation invitation;
  Losses losses;

 private:
  std::vector<pid_t> children_;
};

void wait_for_ever(HostWatch&) {
  for (;;) pause();
}

// To the end of the program: it says goodbye when the center has.
void stay(HostWatch& watch) {
  Losses own;
  if (!watch.begin(own.teller()).ok()) _exit(2);
  watch.end();
  if (!own.all().empty()) _exit(3);
}

TEST_F(HostWatchTest, TellsNothingOfMembersThatLeaveTogether) {
  const pid_t one = member(1, stay);
  const pid_t other = member(7, stay);
  EXPECT_EQ(take({1, 7}), (std::vector{1, 7}));
  EXPECT_TRUE(center.begin(losses.teller()).ok());
  usleep(50'000);  // they say goodbye before the center does
  center.end();
  EXPECT_EQ(status_of(one), 0);
  EXPECT_EQ(status_of(other), 0);
  EXPECT_TRUE(losses.all().empty());
}

// It says goodbye all the same, and waits for theirs.
TEST_F(HostWatchTest, TellsNothingWhereTheHostHasNoThread) {
  const auto stay_without = [](HostWatch& watch) {
    const testing::FewThreads left(0);
    Losses own;
    if (watch.begin(own.teller()).ok()) _exit(4);
    watch.end();
  };
  const pid_t one = member(1, stay_without);
  const pid_t other = member(7, stay);
  EXPECT_EQ(take({1, 7}), (std::vector{1, 7}));
  {
    const testing::FewThreads left(0);
    EXPECT_FALSE(center.begin(losses.teller()).ok());
  }
  center.end();
  EXPECT_EQ(status_of(one), 0);
  EXPECT_EQ(status_of(other), 0);
  EXPECT_TRUE(losses.all().empty());
}

TEST_F(HostWatchTest, TellsWhichMemberHasEndedAndGoesOn) {
  const pid_t one = member(1, wait_for_ever);
  const pid_t other = member(2, wait_for_ever);
  EXPECT_EQ(take({1, 2}).size(), 2u);
  EXPECT_TRUE(center.begin(losses.teller()).ok());
  kill(other, SIGKILL);
  EXPECT_EQ(losses.wait_for(1), (std::vector{std::pair(2, Loss::end)}));
  kill(one, SIGKILL);
  EXPECT_EQ(losses.wait_for(2), (std::vector{std::pair(2, Loss::end), std::pair(1, Loss::end)}));
  center.end();
}

TEST_F(HostWatchTest, TellsAMemberOfTheCentersEnd) {
  const pid_t one = member(1, [](HostWatch& watch) {
    Losses own;
    if (!watch.begin(own.teller()).ok()) _exit(2);
    const auto told = own.wait_for(1);
    watch.end();
    _exit(told.size() == 1 && told[0] == std::pair(HostWatch::center, Loss::end) ? 0 : 4);
  });
  // The center is a process that ends.
  const pid_t killed = child([this] {
    if (center.take(std::vector{1}).size() != 1) _exit(5);
    kill(getpid(), SIGKILL);
  });
  EXPECT_EQ(status_of(killed), SIGKILL);
  EXPECT_EQ(status_of(one), 0);
}

TEST_F(HostWatchTest, TellsNothingOfAProcessThatDoesNotRun) {
  const pid_t stopped = member(1, stay);
  EXPECT_EQ(take({1}), std::vector{1});
  kill(stopped, SIGSTOP);
  EXPECT_TRUE(center.begin(losses.teller()).ok());
  usleep(std::chrono::microseconds(short_limit + milliseconds(1500)).count());
  EXPECT_TRUE(losses.all().empty());
  kill(stopped, SIGCONT);
  center.end();
  EXPECT_EQ(status_of(stopped), 0);
}

TEST_F(HostWatchTest, TakesNoStranger) {
  const Invitation right = invitation;
  invitation.secret[3] ^= std::byte{1};
  const pid_t stranger = member(4, wait_for_ever);
  invitation = right;
  const pid_t unexpected = member(2, wait_for_ever);
  const pid_t silent = child([this] {
    const int made = socket(AF_INET, SOCK_STREAM, 0);
    const SocketAddress to = with_port(invitation.addresses[0], invitation.port);
    if (connect(made, to.get(), to.bytes) != 0) _exit(2);
  });
  EXPECT_EQ(status_of(silent), 0);
  const pid_t twice = member(3, wait_for_ever, 2);
  const pid_t right_one = member(4, wait_for_ever);
  EXPECT_EQ(take({3, 4}), (std::vector{3, 4}));
  EXPECT_TRUE(center.begin(losses.teller()).ok());
  for (const pid_t each : {stranger, unexpected, twice}) {
    kill(each, SIGKILL);
    EXPECT_EQ(status_of(each), SIGKILL);
  }
  EXPECT_EQ(losses.wait_for(1), (std::vector{std::pair(3, Loss::end)}));
  kill(right_one, SIGKILL);
  EXPECT_EQ(losses.wait_for(2), (std::vector{std::pair(3, Loss::end), std::pair(4, Loss::end)}));
  center.end();
}

TEST_F(HostWatchTest, WaitsForAMemberNotForEver) {
  EXPECT_TRUE(center.take(std::vector{1}, milliseconds(20)).empty());
  EXPECT_TRUE(center.begin(losses.teller()).ok());
  center.end();
}

TEST_F(HostWatchTest, IsJoinedByAnyOfItsAddresses) {
  invitation.addresses = {address("240.0.0.1"), address("127.0.0.1")};
  const pid_t one = member(1, stay);
  EXPECT_EQ(take({1}), std::vector{1});
  EXPECT_TRUE(center.begin(losses.teller()).ok());
  center.end();
  EXPECT_EQ(status_of(one), 0);
}

TEST(HostWatchOfNoHost, CannotBeJoined) {
  HostWatch watch;
  Invitation invitation;
  EXPECT_FALSE(watch.join(invitation, 1).ok()) << "no address";
  invitation.addresses = {address("127.0.0.1")};
  EXPECT_FALSE(watch.join(invitation, 1).ok()) << "no port";
}

TEST(HostWatchOfNoHost, IsNotJoinedByAnAddressOfTheHostItself) {
  HostWatch center;
  Invitation invitation;
  ASSERT_TRUE(center.invite(invitation).ok());
  HostWatch watch;
  EXPECT_FALSE(watch.join(invitation, 1).ok()) << "as a bridge of containers is on each host";
}

TEST(OwnAddresses, LeaveOutTheLoopbackDevice) {
  const std::vector<NetworkAddress> own = own_addresses();
  EXPECT_EQ(std::ranges::find(own, address("127.0.0.1")), own.end());
  for (const NetworkAddress& each : own)
    EXPECT_TRUE(each.family == AF_INET || each.family == AF_INET6);
}

}  // namespace
}  // namespace tombolo::host
