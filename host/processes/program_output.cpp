// SPDX-License-Identifier: Apache-2.0
#include "host/processes/program_output.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace tombolo::host {
namespace {

using Clock = std::chrono::steady_clock;

class Pipe {
 public:
  Pipe() {
    if (pipe2(ends_.data(), O_CLOEXEC) != 0) ends_ = {-1, -1};
  }
  ~Pipe() {
    for (const int end : ends_)
      if (end >= 0) close(end);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  bool open() const { return ends_[0] >= 0; }
  int out() const { return ends_[0]; }
  int in() const { return ends_[1]; }
  void close_in() {
    close(ends_[1]);
    ends_[1] = -1;
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

bool start(const std::vector<std::string>& command, const Pipe& output, pid_t& child) {
  std::vector<char*> arguments;
  for (const std::string& argument : command)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  char language[] = "LC_ALL=C";
  char* environment[] = {language, nullptr};  // HO1
  posix_spawn_file_actions_t actions;
  if (posix_spawn_file_actions_init(&actions) != 0) return false;
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output.in(), STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  const int error =
      posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environment);
  posix_spawn_file_actions_destroy(&actions);
  return error == 0;
}

// True if all was read before the time was over.
bool read_all(int from, Clock::time_point end, std::string& text) {
  std::array<char, 4096> some;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
    if (left <= 0) return false;
    pollfd ready{from, POLLIN, 0};
    const int found = poll(&ready, 1, static_cast<int>(left));
    if (found < 0 && errno != EINTR) return false;
    if (found <= 0) continue;
    const ssize_t count = read(from, some.data(), some.size());
    if (count == 0) return true;
    if (count < 0 && errno != EINTR) return false;
    if (count > 0) text.append(some.data(), static_cast<std::size_t>(count));
  }
}

}  // namespace

std::optional<std::string> output_of(const std::vector<std::string>& command,
                                     std::chrono::milliseconds limit) {
  Pipe output;
  pid_t child = 0;
  if (!output.open() || !start(command, output, child)) return std::nullopt;
  output.close_in();  // else the end of the output is never seen
  std::string text;
  const bool complete = read_all(output.out(), Clock::now() + limit, text);
  if (!complete) kill(child, SIGKILL);
  // A program that reaps all children, or ignores them, may have taken this one.
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (!complete) return std::nullopt;
  return text;
}

}  // namespace tombolo::host
