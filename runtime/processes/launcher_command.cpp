// SPDX-License-Identifier: Apache-2.0
#include "runtime/processes/launcher_command.h"

#include <fmt/format.h>
#include <signal.h>

#include <atomic>
#include <cstdio>
#include <vector>

#include "base/options.h"
#include "runtime/processes/launcher.h"

namespace tombolo::runtime {
namespace {

constexpr int bad_usage = 2;
constexpr std::uint64_t most_processes = 4096;
std::atomic<bool> interrupted{false};

void end_at_signals() {
  struct sigaction action {};
  action.sa_handler = [](int) { interrupted = true; };
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
}

void say(const LauncherCommand& command, const Status& status, int asked) {
  const bool named = command.naming != nullptr && status.code() == Code::process_failed;
  const std::string name = named ? command.naming(asked, status.rank()) : "";
  fmt::print(stderr, "tombolo: {}{}\n", name, status.message());
}

int run(const LauncherCommand& command, int asked, const std::vector<std::string>& program) {
  end_at_signals();
  Launcher launcher;
  int size = asked;
  Status status = command.size == nullptr ? Status() : command.size(asked, size);
  if (status.ok())
    status = Launcher::start(
        {.command = program, .size = size, .first_is_program = command.first_is_program}, launcher);
  const bool started = status.ok();
  if (started) status = launcher.wait(&interrupted);
  const int exit_status = started ? launcher.exit_status() : bad_usage;
  if (!started || exit_status > 128 || status.code() == Code::stopped) say(command, status, asked);
  return exit_status;
}

}  // namespace

int run_launcher_command(const LauncherCommand& command, int argc, char** argv) {
  const auto size = argc >= 3 ? number_in(argv[1]) : std::nullopt;
  if (size && *size != 0 && *size <= most_processes)
    return run(command, static_cast<int>(*size), {argv + 2, argv + argc});
  fmt::print(stderr, "usage: {} N PROGRAM [ARGUMENT]...   (N from 1 to {})\n", command.name,
             most_processes);
  return bad_usage;
}

}  // namespace tombolo::runtime
