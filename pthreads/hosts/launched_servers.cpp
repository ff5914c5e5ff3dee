// SPDX-License-Identifier: Apache-2.0
#include "pthreads/hosts/launched_servers.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "host/processes/taken_output.h"
#include "pthreads/hosts/launched_calls.h"

namespace tombolo::dsm {
namespace {

// As for forked processes (runtime/processes/forked_team.h): programs leave it alone.
int notice() { return SIGRTMAX; }

std::atomic<LaunchedServers*> the_team{nullptr};

// A process that is asked to end does so in a wait, in the program's code, or at the end of an
// operation of the runtime, once it gets a processor.
constexpr std::chrono::seconds longest_leave{30};

}  // namespace

LaunchedServers::LaunchedServers(OneSided& job, TeamRuntime& runtime)
    : job_(job), runtime_(runtime), service_([this](int to, const ForwardedCall::Bytes& made) {
        const ForwardedCall::Bytes message = message_of(Kind::answer, made);
        const std::lock_guard lock(mutex_);
        if (!finished_) job_.post(to, message);
      }) {}

Status LaunchedServers::start() {
  if (!stack_) return Status::no_memory("no address space for a stack of the runtime");
  the_team = this;
  struct sigaction noticed = {};
  noticed.sa_handler = &LaunchedServers::on_signal;
  noticed.sa_flags = SA_RESTART | SA_ONSTACK;
  if (sigaction(notice(), &noticed, nullptr) != 0)
    return Status::io(fmt::format("sigaction: {}", std::strerror(errno)));
  if (job_.rank() != 0) TOMBOLO_TRY(runtime_.keep_carriers());
  job_.listen(this);
  return {};
}

std::unique_ptr<host::CallTarget> LaunchedServers::calls(const Facts& facts) {
  return std::make_unique<LaunchedCalls>(*this, facts);
}

ForwardedCall::Bytes LaunchedServers::message_of(Kind kind, std::span<const std::byte> contents) {
  ForwardedCall::Bytes message(sizeof kind + contents.size());
  std::memcpy(message.data(), &kind, sizeof kind);
  std::ranges::copy(contents, message.begin() + sizeof kind);
  return message;
}

void LaunchedServers::send(int to, Kind kind, std::span<const std::byte> contents) {
  const ForwardedCall::Bytes message = message_of(kind, contents);
  runtime_.apart(stack_.memory(), &signals_,
                 [this, to, whole = std::span(message)] { job_.post(to, whole); });
}

void LaunchedServers::send(int to, Kind kind, int value) {
  send(to, kind, std::as_bytes(std::span(&value, 1)));
}

void LaunchedServers::forward(host::SystemCall& call, void (*looks)()) {
  // A wait for an answer that has come to the end of the program: the process writes the rest of
  // its output by itself.
  if (forwards_) {
    call.result = -EIO;
    return;
  }
  forwards_ = true;
  forward_now(call, looks);
  forwards_ = false;
}

void LaunchedServers::forward_now(host::SystemCall& call, void (*looks)()) {
  ForwardedCall::Bytes request;
  if (!ForwardedCall::request_of(call, request)) return;
  const int before = interruptions_;
  for (;;) {
    send(0, Kind::call, request);
    if (ForwardedCall::finish(call, wait_for_answer(looks))) return;
    if (interruptions_ == before && !runtime_.will_be_woken()) continue;
    call.result = -EINTR;  // its thread looks at the question
    return;
  }
}

ForwardedCall::Bytes LaunchedServers::wait_for_answer(void (*looks)()) {
  constexpr unsigned between_looks_us = 20;
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (answer_) return *std::exchange(answer_, std::nullopt);
    }
    looks();
    runtime_.apart(stack_.memory(), nullptr, [this] { job_.progress(); });
    usleep(between_looks_us);
  }
}

int LaunchedServers::signal(Thread server, int number) {
  send(static_cast<int>(server), Kind::signal, number);
  return 0;
}

void LaunchedServers::wake_up(Thread server) { send(static_cast<int>(server), Kind::wake_up); }

void LaunchedServers::ask_exit(int status) { send(0, Kind::exit, status & 0xff); }

// The first status counts.
void LaunchedServers::ask(int status) {
  int none = 0;
  asked_.compare_exchange_strong(none, status + 1);
  kill(getpid(), notice());
}

void LaunchedServers::hear(int from, std::span<const std::byte> message) {
  Kind kind{};
  if (message.size() < sizeof kind) return;
  std::memcpy(&kind, message.data(), sizeof kind);
  const std::span<const std::byte> contents = message.subspan(sizeof kind);
  if (kind == Kind::call) return service_.take(from, contents);
  if (kind == Kind::answer) {
    const std::lock_guard lock(mutex_);
    answer_.emplace(contents.begin(), contents.end());
    return;
  }
  int value = 0;
  std::memcpy(&value, contents.data(), std::min(sizeof value, contents.size()));
  hear(kind, value);
}

void LaunchedServers::hear(Kind kind, int value) {
  switch (kind) {
    case Kind::signal:
      ++interruptions_;
      runtime_.take_signal(value, job_.rank() == 0);
      return;
    case Kind::wake_up:
      ++interruptions_;
      runtime_.wake_up();
      return;
    case Kind::exit:
    case Kind::end:
      ask(value);
      return;
    default:
      ++left_;
      return;
  }
}

void LaunchedServers::on_signal(int) {
  const int error = errno;
  const LaunchedServers* const team = the_team;
  void (*const exit_asked)(int) = team == nullptr ? nullptr : team->exit_asked_.load();
  if (exit_asked != nullptr && team->asked_status() >= 0) exit_asked(team->asked_status());
  errno = error;
}

bool LaunchedServers::all_have_left() const { return left_ == job_.size() - 1; }

void LaunchedServers::end() {
  runtime_.apart(stack_.memory(), nullptr, [this] {
    const int none = 0;
    const auto letter = message_of(Kind::end, std::as_bytes(std::span(&none, 1)));
    for (int other = 1; other < job_.size(); ++other) job_.post(other, letter);
    const auto begin = std::chrono::steady_clock::now();
    while (!all_have_left() && std::chrono::steady_clock::now() - begin < longest_leave)
      usleep(100);
    if (!all_have_left())
      host::fail_with("tombolo: a process of the program does not end when it is asked to\n");
    the_team = nullptr;
    {
      // A call may return only now that its caller has left.
      const std::lock_guard lock(mutex_);
      finished_ = true;
    }
    job_.finish();  // LNS1
  });
}

void LaunchedServers::leave() {
  the_team = nullptr;
  send(0, Kind::left);
  runtime_.apart(stack_.memory(), nullptr, [this] { job_.finish(); });
}

}  // namespace tombolo::dsm
