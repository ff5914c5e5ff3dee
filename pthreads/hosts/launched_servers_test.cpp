// SPDX-License-Identifier: Apache-2.0
// Purpose: a process of a program between hosts goes on waiting for a forwarded call, or leaves it
// when something has come for its thread; it is told of an end while it computes; and the first one
// waits until all have left. The other processes are a script.
// Thread safety: -
#include "pthreads/hosts/launched_servers.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "host/interrupts/wake_up.h"
#include "pthreads/program/carried_signals.h"

#if defined(__x86_64__)

namespace tombolo::dsm {
namespace {

using Bytes = ForwardedCall::Bytes;
using Kind = LaunchedServers::Kind;

Bytes message(Kind kind, std::span<const std::byte> contents = {}) {
  Bytes made(sizeof kind);
  std::memcpy(made.data(), &kind, sizeof kind);
  made.insert(made.end(), contents.begin(), contents.end());
  return made;
}
Bytes message(Kind kind, int value) { return message(kind, std::as_bytes(std::span(&value, 1))); }

Kind kind_of(std::span<const std::byte> message) {
  Kind kind{};
  std::memcpy(&kind, message.data(), sizeof kind);
  return kind;
}

// A job whose other processes are `answers`, which is called with each message to them.
class Script final : public OneSided {
 public:
  Script(int rank, int size) : rank_(rank), size_(size) {}

  std::function<void(int to, std::span<const std::byte> message)> answers;
  std::vector<std::pair<int, Kind>> posted;
  bool finished = false;

  void hear(int from, const Bytes& message) { listener_->hear(from, message); }
  // Process 0's answer to a call that it makes.
  void answer(std::span<const std::byte> request) {
    hear(0, message(Kind::answer, ForwardedCall::execute(request.subspan(sizeof(Kind)))));
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void post(int to, std::span<const std::byte> message) override {
    posted.emplace_back(to, kind_of(message));
    if (answers) answers(to, message);
  }
  void listen(Listener* listener) override { listener_ = listener; }
  void progress() override {}
  void finish() override { finished = true; }

  Status gather(const void*, void*, std::size_t) override { return {}; }
  Status broadcast(void*, std::size_t, int) override { return {}; }
  bool all(bool yes) override { return yes; }
  Status make(std::size_t, std::size_t) override { return {}; }
  std::uint64_t data_bytes(machine::Home) const override { return 0; }
  std::uint64_t load(machine::SyncPlace) override { return 0; }
  std::uint64_t exchange(machine::SyncPlace, std::uint64_t) override { return 0; }
  std::uint64_t fetch_add(machine::SyncPlace, std::uint64_t) override { return 0; }
  std::uint64_t compare_exchange(machine::SyncPlace, std::uint64_t, std::uint64_t) override {
    return 0;
  }
  void get(machine::DataPlace, void*, std::size_t) override {}
  void put(machine::DataPlace, const void*, std::size_t) override {}
  void accumulate_xor(machine::DataPlace, const void*, std::size_t) override {}

 private:
  int rank_;
  int size_;
  Listener* listener_ = nullptr;
};

// A team is one of its process for good, and with it its job.
template <class T>
T& for_good(std::unique_ptr<T> made) {
  static auto& all = *new std::vector<std::unique_ptr<T>>;  // the leak checker finds them by it
  return *all.emplace_back(std::move(made));
}

std::atomic<int> exit_status{-1};
void note_exit(int status) { exit_status = status; }
void look_at_nothing() {}

// Of rank 1 of 2, whose call reads from a pipe.
class ForwardingServer : public testing::Test {
 protected:
  ForwardingServer() {
    EXPECT_EQ(pipe(pipe_.data()), 0);
    EXPECT_TRUE(team.start().ok());
    static const bool are_served = host::serve_wake_ups().ok();
    EXPECT_TRUE(are_served);
    signal(SIGUSR1, [](int) {});
  }
  ~ForwardingServer() override {
    host::forget_wake_ups();
    for (const int end : pipe_) close(end);
  }

  long read_forwarded(void (*looks)() = &look_at_nothing) {
    host::SystemCall call{.number = SYS_read,
                          .arguments = {static_cast<std::uint64_t>(pipe_[0]),
                                        reinterpret_cast<std::uint64_t>(bytes.data()), 3}};
    team.forward(call, looks);
    return call.result;
  }
  void fill_pipe() const { EXPECT_EQ(write(pipe_[1], "abc", 3), 3); }
  std::size_t calls() const { return job.posted.size(); }

  Script& job = for_good(std::make_unique<Script>(1, 2));
  LaunchedServers& team = for_good(std::make_unique<LaunchedServers>(job, TeamRuntime::here()));
  std::array<char, 4> bytes{};

 private:
  std::array<int, 2> pipe_{};
};

TEST_F(ForwardingServer, SendsACallAgainUntilItIsMade) {
  job.answers = [&](int to, std::span<const std::byte> request) {
    EXPECT_EQ(to, 0);
    if (calls() == 3) fill_pipe();
    job.answer(request);
  };
  EXPECT_EQ(read_forwarded(), 3);
  EXPECT_EQ(calls(), 3u);
  EXPECT_STREQ(bytes.data(), "abc");
}

TEST_F(ForwardingServer, LeavesACallWhenASignalComesMeanwhile) {
  job.answers = [&](int, std::span<const std::byte> request) {
    if (calls() == 2) job.hear(0, message(Kind::signal, SIGUSR1));
    if (calls() == 4) fill_pipe();
    job.answer(request);
  };
  EXPECT_EQ(read_forwarded(), -EINTR);
  EXPECT_EQ(calls(), 2u);
  EXPECT_EQ(read_forwarded(), 3) << "an earlier signal is none of this call's";
  EXPECT_EQ(calls(), 4u);
}

TEST_F(ForwardingServer, LeavesACallWhenItIsWokenUpMeanwhile) {
  job.answers = [&](int, std::span<const std::byte> request) {
    if (calls() == 2) job.hear(0, message(Kind::wake_up, 0));
    if (calls() == 4) fill_pipe();
    job.answer(request);
  };
  EXPECT_EQ(read_forwarded(), -EINTR);
  EXPECT_EQ(calls(), 2u);
}

// As in the handler of a caught call, where signals wait.
TEST_F(ForwardingServer, LeavesACallWhenItWasWokenUpJustBefore) {
  std::uint64_t kernels_set = ~std::uint64_t{0};
  std::uint64_t kernels_before = 0;
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &kernels_set, &kernels_before, sizeof kernels_set);
  job.hear(0, message(Kind::wake_up, 0));
  job.answers = [&](int, std::span<const std::byte> request) {
    if (calls() == 2) fill_pipe();
    job.answer(request);
  };
  EXPECT_EQ(read_forwarded(), -EINTR);
  EXPECT_EQ(calls(), 1u);
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &kernels_before, nullptr, sizeof kernels_before);
}

TEST_F(ForwardingServer, MakesACallThatIsReadyThoughASignalHasCome) {
  job.answers = [&](int, std::span<const std::byte> request) {
    job.hear(0, message(Kind::signal, SIGUSR1));
    fill_pipe();
    job.answer(request);
  };
  EXPECT_EQ(read_forwarded(), 3);
}

TEST_F(ForwardingServer, LooksWhileItWaitsAndRefusesACallOfTheLook) {
  static std::function<void()> look;
  long within = 0;
  look = [&] {
    within = read_forwarded();
    job.hear(0, message(Kind::answer, Bytes(sizeof(std::int64_t))));
  };
  job.answers = [&](int, std::span<const std::byte>) {};
  const long made = read_forwarded([] { look(); });
  EXPECT_EQ(made, 0);
  EXPECT_EQ(within, -EIO);
  EXPECT_EQ(calls(), 1u);
}

// OSM4: not on the stack that its handler's own calls would use.
TEST_F(ForwardingServer, SignalsThatComeWhileItSendsAreHandledOnTheCallersStack) {
  static std::uint64_t stack_pointer = 0;
  struct sigaction action {};
  action.sa_sigaction = [](int, siginfo_t*, void* context) {
    stack_pointer =
        static_cast<std::uint64_t>(static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RSP]);
  };
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGUSR1, &action, nullptr);
  runtime_hooks.has_signal_handlers = true;
  std::uint64_t within = 1;
  job.answers = [&](int, std::span<const std::byte>) {
    raise(SIGUSR1);
    within = stack_pointer;
  };
  team.wake_up(0);
  runtime_hooks.has_signal_handlers = false;
  EXPECT_EQ(within, 0u);
  const auto here = reinterpret_cast<std::uint64_t>(__builtin_frame_address(0));
  EXPECT_LT(here - stack_pointer, 65536u);
}

// Signals of a terminal, which such a process holds back but for its own thread.
TEST_F(ForwardingServer, AnySignalForItsThreadReachesIt) {
  static volatile sig_atomic_t came = 0;
  struct sigaction action {};
  action.sa_handler = [](int number) { came = number; };
  sigaction(SIGTERM, &action, nullptr);
  sigset_t mask;
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, nullptr, &before);
  sigemptyset(&mask);
  ASSERT_TRUE(serve_signals(mask, 0).ok());
  let_signals_come();
  job.hear(0, message(Kind::signal, SIGTERM));
  EXPECT_EQ(came, SIGTERM);
  leave_signals();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST_F(ForwardingServer, DropsAMessageThatIsNone) {
  Bytes shorter = message(Kind::exit, 0);
  shorter.resize(3);
  job.hear(0, shorter);
  EXPECT_EQ(team.asked_status(), -1);
}

TEST_F(ForwardingServer, LeavesWithAWordToTheFirst) {
  team.leave();
  EXPECT_EQ(job.posted, (std::vector{std::pair(0, Kind::left)}));
  EXPECT_TRUE(job.finished);
}

class FirstServer : public testing::Test {
 protected:
  FirstServer() {
    exit_status = -1;
    EXPECT_TRUE(team.start().ok());
  }
  Script& job = for_good(std::make_unique<Script>(0, 3));
  LaunchedServers& team = for_good(std::make_unique<LaunchedServers>(job, TeamRuntime::here()));
};

// As of a process that still waits for the others while the first one runs the program.
TEST_F(FirstServer, IsNotToldOfAnEndBeforeItCanEnd) {
  job.hear(2, message(Kind::exit, 5));
  EXPECT_EQ(kill(getpid(), SIGRTMAX), 0);  // also where the one before has gone to this thread
  EXPECT_EQ(exit_status, -1);
  EXPECT_EQ(team.asked_status(), 5);
}

TEST_F(FirstServer, IsToldOfAnEndByASignalWhileItComputes) {
  team.tell_end_to(&note_exit);
  EXPECT_EQ(team.asked_status(), -1);
  job.hear(2, message(Kind::exit, 5));
  const auto begin = std::chrono::steady_clock::now();
  while (exit_status < 0 && std::chrono::steady_clock::now() - begin < std::chrono::seconds(10)) {
  }
  EXPECT_EQ(exit_status, 5);
  job.hear(1, message(Kind::exit, 6));
  EXPECT_EQ(team.asked_status(), 5) << "the first status counts";
}

TEST_F(FirstServer, TellsAllOfTheEndAndWaitsUntilTheyHaveLeft) {
  std::atomic<int> left = 0;
  std::vector<std::thread> others;
  job.answers = [&](int to, std::span<const std::byte>) {
    others.emplace_back([&, to] {
      usleep(20'000U * static_cast<unsigned>(to));
      ++left;
      job.hear(to, message(Kind::left, 0));
    });
  };
  team.end();
  EXPECT_EQ(job.posted, (std::vector{std::pair(1, Kind::end), std::pair(2, Kind::end)}));
  EXPECT_EQ(left, 2);
  EXPECT_TRUE(job.finished);
  for (std::thread& other : others) other.join();
}

TEST_F(FirstServer, AnswersCallsOfOthers) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  host::SystemCall call{.number = SYS_write,
                        .arguments = {static_cast<std::uint64_t>(ends[1]),
                                      reinterpret_cast<std::uint64_t>("xyz"), 3}};
  Bytes request;
  ASSERT_TRUE(ForwardedCall::request_of(call, request));
  std::atomic<bool> answered = false;
  job.answers = [&](int to, std::span<const std::byte> answer) {
    EXPECT_EQ(to, 2);
    EXPECT_EQ(kind_of(answer), Kind::answer);
    EXPECT_TRUE(ForwardedCall::finish(call, answer.subspan(sizeof(Kind))));
    answered = true;
  };
  job.hear(2, message(Kind::call, request));
  while (!answered) usleep(100);
  EXPECT_EQ(call.result, 3);
  std::array<char, 4> back{};
  EXPECT_EQ(read(ends[0], back.data(), 3), 3);
  EXPECT_STREQ(back.data(), "xyz");
  for (const int end : ends) close(end);
}

}  // namespace
}  // namespace tombolo::dsm

#endif
