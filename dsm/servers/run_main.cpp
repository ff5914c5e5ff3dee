// SPDX-License-Identifier: Apache-2.0
// Purpose: `tombolo-dsm N PROGRAM [ARGUMENT]...`: runs the program in N processes, which are the
// threads of one program on virtual shared memory, and in as many more as TOMBOLO_DSM_SERVERS asks
// for, which are its memory servers (003 figure 4.3). `tombolo dsm run` starts it.
//
// The exit status is that of the first process that failed, as a shell tells it. A process that was
// killed is named on stderr; one that ends with a status of its own has told the cause itself.
#include <fmt/format.h>
#include <signal.h>

#include <atomic>
#include <cstdio>
#include <string>

#include "base/options.h"
#include "dsm/servers/settings.h"
#include "runtime/processes/launcher.h"

namespace tombolo::dsm {
namespace {

constexpr int bad_usage = 2;
constexpr std::uint64_t most_processes = 4096;
std::atomic<bool> interrupted{false};

void end_at_signals() {
  struct sigaction action {};
  action.sa_handler = [](int) { interrupted = true; };
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
}

void say(const Status& status, int threads) {
  const bool server = status.code() == Code::process_failed && status.rank() >= threads;
  const std::string who = server ? fmt::format("memory server {}: ", status.rank() - threads) : "";
  std::fprintf(stderr, "tombolo: %s%s\n", who.c_str(), status.message().c_str());
}

int run(int threads, const std::vector<std::string>& command) {
  end_at_signals();
  runtime::Launcher launcher;
  Thread servers = 0;
  Status status = read_servers(servers);
  const int size = threads + static_cast<int>(servers);
  if (status.ok()) status = runtime::Launcher::start({.command = command, .size = size}, launcher);
  const bool started = status.ok();
  if (started) status = launcher.wait(&interrupted);
  const int exit_status = started ? launcher.exit_status() : bad_usage;
  if (!started || exit_status > 128 || status.code() == Code::stopped) say(status, threads);
  return exit_status;
}

}  // namespace
}  // namespace tombolo::dsm

int main(int argc, char** argv) {
  const auto size = argc >= 3 ? tombolo::number_in(argv[1]) : std::nullopt;
  if (!size || *size == 0 || *size > tombolo::dsm::most_processes) {
    std::fprintf(stderr, "usage: tombolo-dsm N PROGRAM [ARGUMENT]...   (N from 1 to %d)\n",
                 static_cast<int>(tombolo::dsm::most_processes));
    return tombolo::dsm::bad_usage;
  }
  return tombolo::dsm::run(static_cast<int>(*size), {argv + 2, argv + argc});
}
