// SPDX-License-Identifier: Apache-2.0
// Purpose: `tombolo-svp N PROGRAM [ARGUMENT]...`: runs a program of families in N processes, of
// which the first runs it and the others hold places. `tombolo svp run` starts it.
//
// The exit status is that of process 0, as a shell tells it. Another process that ends before it
// takes its places with it, and the program goes on.
#include <signal.h>

#include <atomic>
#include <cstdio>
#include <string>
#include <vector>

#include "base/options.h"
#include "runtime/processes/launcher.h"

namespace tombolo::svp {
namespace {

constexpr int bad_usage = 2;
constexpr std::uint64_t most_processes = 4096;
std::atomic<bool> interrupted{false};

void end_at_signals() {
  struct sigaction action {};
  action.sa_handler = [](int) { interrupted = true; };
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
}

int run(int size, const std::vector<std::string>& command) {
  end_at_signals();
  runtime::Launcher launcher;
  Status status = runtime::Launcher::start(
      {.command = command, .size = size, .first_is_program = true}, launcher);
  const bool started = status.ok();
  if (started) status = launcher.wait(&interrupted);
  const int exit_status = started ? launcher.exit_status() : bad_usage;
  if (!started || exit_status > 128 || status.code() == Code::stopped)
    std::fprintf(stderr, "tombolo: %s\n", status.message().c_str());
  return exit_status;
}

}  // namespace
}  // namespace tombolo::svp

int main(int argc, char** argv) {
  const auto size = argc >= 3 ? tombolo::number_in(argv[1]) : std::nullopt;
  if (!size || *size == 0 || *size > tombolo::svp::most_processes) {
    std::fprintf(stderr, "usage: tombolo-svp N PROGRAM [ARGUMENT]...   (N from 1 to %d)\n",
                 static_cast<int>(tombolo::svp::most_processes));
    return tombolo::svp::bad_usage;
  }
  return tombolo::svp::run(static_cast<int>(*size), {argv + 2, argv + argc});
}
