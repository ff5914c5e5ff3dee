// SPDX-License-Identifier: Apache-2.0
#include "dsm/api/program.h"

#include <fmt/format.h>
#include <stdio_ext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "base/check.h"
#include "runtime/counters/counters.h"
#include "runtime/options/dsm_options.h"
#include "runtime/processes/launcher.h"

namespace tombolo::dsm {
namespace {

// This process's number in its job, for a message from a signal handler.
int rank_here = 0;

// Without stdio, whose locks the program may hold at a page fault.
void say(const std::string& text) {
  const std::string line = fmt::format("tombolo: {}\n", text);
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace

Program::Program() {
  // Those that are not understood are told of once the processes can agree who tells.
  Settings settings;
  (void)read_settings(settings).ok();
  must(Job::join(settings.transport, exchange_));
  rank_here = exchange_->rank();
  all_.emplace(*exchange_);
  if (const runtime::Agreed opened = open(); !opened.ok()) {
    tell(opened);
    _exit(1);
  }
  if (server_->holds_memory()) serve();
  blocks_ = std::make_unique<CollectiveBlocks>(memory().memory(), memory().page_bytes());
}

void Program::serve() {
  // It fails only where others have left early, and these, or the launcher, tell why.
  if (!server_->close(*all_).ok())
    give_up(Status::process_failed(0, "another process has left the program"));
  server_.reset();
  exchange_->finish();
  // Without the rest of main(), and without output of the program that waits to be written.
  if (exchange_->one_sided() == nullptr) _exit(0);
  // MPICH tells its launcher in a handler of exit() that the process ends as it should.
  __fpurge(stdout);
  std::exit(0);
}

runtime::Agreed Program::open() {
  request_.options = runtime::read_environment();
  request_.give_up = &Program::give_up;
  request_.one_sided = exchange_->one_sided();
  request_.settings.timed = request_.options.statistics != runtime::Statistics::off;
  TOMBOLO_AGREE(all_->step({.message = "another process has settings that are not understood"},
                           [&] { return read_settings(request_.settings); }));
  return ComputeServer::open(*all_, request_, server_);
}

// By the first of the processes that know a cause. None leaves before it has told: the launcher
// ends all once one has left.
void Program::tell(const runtime::Agreed& failed) {
  const auto n = static_cast<std::size_t>(exchange_->size());
  const char mine = failed.own() ? 1 : 0;
  std::vector<char> knows(n, 0);
  const bool asked = exchange_->gather(&mine, knows.data(), sizeof mine).ok();
  const auto first = std::find(knows.begin(), knows.end(), 1) - knows.begin();
  if (!asked || first == exchange_->rank()) say(failed.status().message());
  (void)exchange_->gather(&mine, knows.data(), sizeof mine).ok();
}

void Program::give_up(const Status& why) {
  using std::chrono::milliseconds;
  // The launcher names a process that was killed, and ends the others: one message, not one of
  // each. Where it has seen no failure, the first of those that wait tells.
  if (why.code() == Code::process_failed && runtime::is_launched())
    std::this_thread::sleep_for(milliseconds(2000 + 250 * std::min(rank_here, 8)));
  say(fmt::format("rank {}: {}", rank_here, why.message()));
  _exit(1);
}

Lock Program::take_lock() {
  TOMBOLO_CHECK(next_lock_ < memory().locks(), "tombolo_dsm_mutex_create: all {} locks are taken",
                memory().locks());
  return next_lock_++;
}

WordIndex Program::take_words(WordIndex count) {
  TOMBOLO_CHECK(next_word_ + count <= memory().words(),
                "tombolo_dsm_cond_create: all {} words are taken", memory().words());
  next_word_ += count;
  return next_word_ - count;
}

void Program::close() {
  must(server_->close(*all_).status());
  write_counters();
  server_.reset();
  exchange_->finish();
}

void Program::write_counters() {
  using runtime::Counters;
  const runtime::Options& options = request_.options;
  if (options.statistics == runtime::Statistics::off) return;
  const Settings& settings = server_->settings();
  const auto choice = [](const Option& option, auto kind) {
    return std::string(option.choices[static_cast<std::size_t>(kind)]);
  };
  const std::array facts{
      Counters::Fact{"rank", std::to_string(rank_here)},
      Counters::Fact{"machine", std::string(name(options.machine))},
      Counters::Fact{"transport", choice(runtime::dsm_transport_option, settings.transport)},
      Counters::Fact{"protocol", choice(runtime::dsm_protocol_option, settings.protocol)}};
  const bool json = options.statistics == runtime::Statistics::json;
  say("stats " + (json ? runtime::counters().as_json(facts) : runtime::counters().as_text(facts)));
}

}  // namespace tombolo::dsm
