// SPDX-License-Identifier: Apache-2.0
// Purpose: a member that ends without a goodbye is told of, and one that is stopped, leaves or is a
// stranger is not; and that strangers, at either end, learn no secret and are refused. Members are
// children of the test, over the loopback device. That a host which
// answers no more is told of is cli/tests/dsm_hosts_test.py's.
// Thread safety: -
#include "host/network/host_watch.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
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
  pid_t member(int number, const std::function<void(HostWatch&)>& then) {
    std::array<int, 2> joined{};
    EXPECT_EQ(pipe2(joined.data(), O_NONBLOCK), 0);
    const pid_t made = child([&] {
      HostWatch watch(short_limit);
      if (!watch.join(invitation, number).ok()) _exit(2);
      if (write(joined[1], "j", 1) != 1) _exit(2);
      then(watch);
    });
    close(joined[1]);  // a child that does not join ends, and so does the read
    char byte = 0;
    ssize_t came = -1;
    while ((came = read(joined[0], &byte, 1)) < 0 && errno == EAGAIN) center.serve(milliseconds(1));
    EXPECT_EQ(came, 1);
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
  void serve_until_the_end_of(pid_t child) {
    siginfo_t ended{};
    while (waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           ended.si_pid == 0)
      center.serve(milliseconds(2));
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
  center.leave();  // its copy in the test
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

TEST_F(HostWatchTest, TakesOnlyMembersThatItExpectsAndEachOnce) {
  const pid_t unexpected = member(2, wait_for_ever);
  const pid_t twice = member(3, wait_for_ever);
  const pid_t second = member(3, wait_for_ever);
  const pid_t other = member(4, wait_for_ever);
  EXPECT_EQ(take({3, 4}), (std::vector{3, 4}));
  EXPECT_TRUE(center.begin(losses.teller()).ok());
  for (const pid_t each : {unexpected, second, twice}) {
    kill(each, SIGKILL);
    EXPECT_EQ(status_of(each), SIGKILL);
  }
  EXPECT_EQ(losses.wait_for(1), (std::vector{std::pair(3, Loss::end)}));
  kill(other, SIGKILL);
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

// ---- Strangers ----------------------------------------------------------------------------------

using Bytes = std::vector<std::byte>;

// The messages have the form of host_watch.h: a nonce and a number, a nonce and a proof, and a
// proof.
constexpr std::size_t hello_bytes = 20;
constexpr std::size_t answer_bytes = 32;
constexpr std::size_t proof_bytes = 16;

// All of them, or as many as come before the other end closes or is silent for some seconds.
Bytes receive(int socket, std::size_t bytes) {
  const timeval patience{.tv_sec = 5, .tv_usec = 0};
  EXPECT_EQ(setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
  Bytes all(bytes);
  const ssize_t came = recv(socket, all.data(), bytes, MSG_WAITALL);
  all.resize(static_cast<std::size_t>(std::max<ssize_t>(came, 0)));
  return all;
}
void say(int socket, const Bytes& bytes) {
  (void)send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
}
bool contains(const Bytes& all, const Secret& secret) {
  return std::search(all.begin(), all.end(), secret.begin(), secret.end()) != all.end();
}

Descriptor connected(const char* to, std::uint16_t port) {
  Descriptor made(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const SocketAddress at = with_port(address(to), port);
  EXPECT_EQ(connect(made.get(), at.get(), at.bytes), 0);
  return made;
}

// A process that listens where members look for the center.
class ListenerOfAStranger {
 public:
  explicit ListenerOfAStranger(const char* at, std::uint16_t port = 0)
      : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const SocketAddress own = with_port(address(at), port);
    EXPECT_EQ(bind(socket_.get(), own.get(), own.bytes), 0);
    EXPECT_EQ(listen(socket_.get(), 8), 0);
    const timeval patience{.tv_sec = 5, .tv_usec = 0};
    EXPECT_EQ(setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
    sockaddr_in bound{};
    socklen_t bytes = sizeof bound;
    EXPECT_EQ(getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&bound), &bytes), 0);
    port_ = ntohs(bound.sin_port);
  }
  std::uint16_t port() const { return port_; }
  Descriptor accepted() const { return Descriptor(accept(socket_.get(), nullptr, nullptr)); }

 private:
  Descriptor socket_;
  std::uint16_t port_ = 0;
};

class HostWatchOfStrangersTest : public HostWatchTest {
 protected:
  // The center's answer to these words.
  Bytes answer_to(int socket, const Bytes& hello) {
    say(socket, hello);
    for (int i = 0; i < 20; ++i) center.serve(milliseconds(1));
    return receive(socket, answer_bytes);
  }
  // Whether a member joins this stranger, which does `as` with its connection. All that the member
  // has said is without the secret.
  bool joins(const ListenerOfAStranger& stranger, const std::function<void(int, Bytes)>& as) {
    const pid_t listens = child([&] {
      const Descriptor one = stranger.accepted();
      const Bytes hello = receive(one.get(), hello_bytes);
      if (hello.size() != hello_bytes || contains(hello, invitation.secret)) _exit(2);
      as(one.get(), hello);
      if (!receive(one.get(), proof_bytes).empty()) _exit(3);
    });
    Invitation to_stranger = invitation;
    to_stranger.port = stranger.port();
    HostWatch watch(short_limit);
    const bool joined = watch.join(to_stranger, 1, milliseconds(2000)).ok();
    EXPECT_EQ(status_of(listens), 0) << "it has the secret or a proof";
    return joined;
  }
};

TEST_F(HostWatchOfStrangersTest, AMemberGoesOnFromOneThatIsMute) {
  // The stranger has the earlier address; a forwarder stands for the center at the later one.
  const ListenerOfAStranger forwarder("127.0.0.1");
  const ListenerOfAStranger mute("127.0.0.2", forwarder.port());
  const pid_t forwards = child([&] {
    const Descriptor from = forwarder.accepted();
    const Descriptor to = connected("127.0.0.1", invitation.port);
    say(to.get(), receive(from.get(), hello_bytes));
    say(from.get(), receive(to.get(), answer_bytes));
    say(to.get(), receive(from.get(), proof_bytes));
  });
  invitation.addresses = {address("127.0.0.2"), address("127.0.0.1")};
  const std::uint16_t port = std::exchange(invitation.port, forwarder.port());
  const pid_t joined = member(1, [](HostWatch&) {});
  invitation.port = port;
  EXPECT_EQ(take({1}), std::vector{1});
  EXPECT_EQ(status_of(forwards), 0);
  EXPECT_EQ(status_of(joined), 0);
}

TEST_F(HostWatchOfStrangersTest, AMemberWaitsForAMuteOneNotForEver) {
  const ListenerOfAStranger mute("127.0.0.1");
  invitation.port = mute.port();
  HostWatch watch;
  EXPECT_FALSE(watch.join(invitation, 1, milliseconds(50)).ok());
}

TEST_F(HostWatchOfStrangersTest, AMemberRefusesItsOwnWordsSentBack) {
  const ListenerOfAStranger stranger("127.0.0.1");
  EXPECT_FALSE(joins(stranger, [](int socket, Bytes hello) {
    hello.resize(answer_bytes);
    say(socket, hello);
  }));
}

TEST_F(HostWatchOfStrangersTest, AMemberRefusesAnAnswerToAnother) {
  Bytes hello(hello_bytes);
  hello[16] = std::byte{1};  // the same member's number, another nonce
  const Descriptor asks = connected("127.0.0.1", invitation.port);
  const Bytes recorded = answer_to(asks.get(), hello);
  ASSERT_EQ(recorded.size(), answer_bytes);
  EXPECT_FALSE(contains(recorded, invitation.secret));
  const ListenerOfAStranger stranger("127.0.0.1");
  EXPECT_FALSE(joins(stranger, [&](int socket, const Bytes&) { say(socket, recorded); }));
}

TEST_F(HostWatchOfStrangersTest, AMemberOfAnotherInvitationIsRefusedAndRefuses) {
  const Invitation right = invitation;
  invitation.secret[3] ^= std::byte{1};
  const pid_t other = child([&] {
    HostWatch watch(short_limit);
    _exit(watch.join(invitation, 4, milliseconds(2000)).ok() ? 1 : 0);
  });
  serve_until_the_end_of(other);
  invitation = right;
  EXPECT_EQ(status_of(other), 0);
  EXPECT_TRUE(center.take(std::vector{4}, milliseconds(50)).empty());
}

TEST_F(HostWatchOfStrangersTest, TheCenterRefusesItsOwnProofSentBack) {
  const Descriptor stranger = connected("127.0.0.1", invitation.port);
  Bytes hello(hello_bytes);
  hello[16] = std::byte{1};
  const Bytes answer = answer_to(stranger.get(), hello);
  ASSERT_EQ(answer.size(), answer_bytes);
  say(stranger.get(), Bytes(answer.begin() + 16, answer.end()));
  EXPECT_TRUE(center.take(std::vector{1}, milliseconds(50)).empty());
}

TEST_F(HostWatchOfStrangersTest, TheCenterRefusesTheWordsOfAnEarlierMember) {
  // A forwarder has recorded them, and kept the last ones back.
  const ListenerOfAStranger forwarder("127.0.0.1");
  std::array<int, 2> recorded{};
  ASSERT_EQ(pipe(recorded.data()), 0);
  const pid_t forwards = child([&] {
    const Descriptor from = forwarder.accepted();
    const Descriptor to = connected("127.0.0.1", invitation.port);
    const Bytes hello = receive(from.get(), hello_bytes);
    say(to.get(), hello);
    say(from.get(), receive(to.get(), answer_bytes));
    const Bytes proof = receive(from.get(), proof_bytes);
    if (write(recorded[1], hello.data(), hello.size()) < 0) _exit(2);
    if (write(recorded[1], proof.data(), proof.size()) < 0) _exit(2);
  });
  const std::uint16_t port = std::exchange(invitation.port, forwarder.port());
  const pid_t one = member(1, [](HostWatch&) {});
  invitation.port = port;
  EXPECT_EQ(status_of(one), 0);
  EXPECT_EQ(status_of(forwards), 0);
  Bytes words(hello_bytes + proof_bytes);
  ASSERT_EQ(read(recorded[0], words.data(), words.size()), static_cast<ssize_t>(words.size()));
  EXPECT_FALSE(contains(words, invitation.secret));
  const Descriptor stranger = connected("127.0.0.1", invitation.port);
  EXPECT_EQ(answer_to(stranger.get(), Bytes(words.begin(), words.begin() + hello_bytes)).size(),
            answer_bytes);
  say(stranger.get(), Bytes(words.begin() + hello_bytes, words.end()));
  EXPECT_TRUE(center.take(std::vector{1}, milliseconds(50)).empty());
  close(recorded[0]);
  close(recorded[1]);
}

TEST_F(HostWatchOfStrangersTest, TheCenterTakesMembersBesideMuteOnes) {
  const Descriptor mute = connected("127.0.0.1", invitation.port);
  const Descriptor half = connected("127.0.0.1", invitation.port);
  say(half.get(), Bytes(hello_bytes - 1));
  const pid_t one = member(1, stay);
  EXPECT_EQ(take({1}), std::vector{1});
  EXPECT_TRUE(center.begin(losses.teller()).ok());
  center.end();
  EXPECT_EQ(status_of(one), 0);
}

// This process has only so many descriptors while it lives.
class FewDescriptors {
 public:
  explicit FewDescriptors(rlim_t most) {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &usual_), 0);
    const rlimit few{std::min(most, usual_.rlim_max), usual_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  }
  ~FewDescriptors() { setrlimit(RLIMIT_NOFILE, &usual_); }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;

 private:
  rlimit usual_{};
};

TEST_F(HostWatchOfStrangersTest, TheCenterTakesMembersBesideMoreMuteOnesThanItHasDescriptorsFor) {
  std::array<int, 2> connections{};
  ASSERT_EQ(pipe(connections.data()), 0);
  const pid_t strangers = child([&] {
    std::vector<Descriptor> mute;
    for (int i = 0; i < 200; ++i) mute.push_back(connected("127.0.0.1", invitation.port));
    if (write(connections[1], "c", 1) != 1) _exit(2);
    for (;;) pause();
  });
  char byte = 0;
  EXPECT_EQ(read(connections[0], &byte, 1), 1);
  const FewDescriptors few(128);
  const pid_t one = member(1, stay);
  EXPECT_EQ(take({1}), std::vector{1});
  EXPECT_TRUE(center.begin(losses.teller()).ok());
  center.end();
  EXPECT_EQ(status_of(one), 0);
  kill(strangers, SIGKILL);
  EXPECT_EQ(status_of(strangers), SIGKILL);
  close(connections[0]);
  close(connections[1]);
}

TEST_F(HostWatchOfStrangersTest, TheCenterKeepsNotMoreStrangersThanItSays) {
  const FewDescriptors enough(4 * HostWatch::most_guests);
  std::vector<Descriptor> mute;
  const auto come = [&] {
    mute.push_back(connected("127.0.0.1", invitation.port));
    center.serve(milliseconds(1));
  };
  const Descriptor said_hello = connected("127.0.0.1", invitation.port);
  ASSERT_EQ(answer_to(said_hello.get(), Bytes(hello_bytes)).size(), answer_bytes);
  for (std::size_t i = 1; i < HostWatch::most_guests; ++i) come();
  const auto is_kept = [](const Descriptor& guest) {
    std::byte byte{};
    return recv(guest.get(), &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
  };
  EXPECT_TRUE(std::ranges::all_of(mute, is_kept));
  come();
  EXPECT_FALSE(is_kept(mute[0])) << "the oldest that is mute";
  EXPECT_TRUE(std::all_of(mute.begin() + 1, mute.end(), is_kept));
  EXPECT_TRUE(is_kept(said_hello));
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
