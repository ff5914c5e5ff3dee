// SPDX-License-Identifier: Apache-2.0
#include "runtime/processes/launcher.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "base/check.h"

extern char** environ;

namespace tombolo::runtime {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Private to a launcher and its processes: rank, size and the numbers of the
// descriptors, "3/4:17".
constexpr Option member_option{.variable = "TOMBOLO_MEMBER", .values = "set by the launcher"};
constexpr int cannot_start = 127;

// The arguments of exec(): made before the fork, after which nothing may be allocated.
class Texts {
 public:
  explicit Texts(std::vector<std::string> texts) : texts_(std::move(texts)) {
    for (std::string& text : texts_) pointers_.push_back(text.data());
    pointers_.push_back(nullptr);
  }
  char* const* data() const { return pointers_.data(); }

 private:
  std::vector<std::string> texts_;
  std::vector<char*> pointers_;
};

std::vector<std::string> environment_with(const Launch& launch, const std::string& member) {
  std::vector<std::pair<std::string, std::string>> added = launch.environment;
  added.emplace_back(member_option.variable, member);
  std::vector<std::string> all;
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string_view variable(*at);
    const auto replaced = [&](const auto& pair) {
      const std::size_t name = pair.first.size();
      return variable.starts_with(pair.first) && variable.size() > name && variable[name] == '=';
    };
    if (std::none_of(added.begin(), added.end(), replaced)) all.emplace_back(variable);
  }
  for (const auto& [name, value] : added) all.push_back(fmt::format("{}={}", name, value));
  return all;
}

// In the child, between fork and exec.
[[noreturn]] void become(const Texts& command, const Texts& environment, pid_t launcher,
                         const SocketExchange::Ends& ends, int report) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);                // LA1
  if (getppid() != launcher) _exit(cannot_start);  // it has died before that was set
  for (const host::Descriptor& end : ends) fcntl(end.get(), F_SETFD, 0);
  execvpe(command.data()[0], command.data(), environment.data());
  const int error = errno;
  [[maybe_unused]] const ssize_t written = write(report, &error, sizeof error);
  _exit(cannot_start);
}

}  // namespace

Launcher& Launcher::operator=(Launcher&& other) noexcept {
  end();
  pids_ = std::move(other.pids_);
  other.pids_.clear();
  ends_of_processes_ = std::move(other.ends_of_processes_);
  grace_ = other.grace_;
  board_ = std::move(other.board_);
  program_ended_ = other.program_ended_;
  failed_ = std::move(other.failed_);
  failed_status_ = other.failed_status_;
  return *this;
}

Status Launcher::start(const Launch& launch, Launcher& out) {
  TOMBOLO_CHECK(launch.size > 0 && !launch.command.empty(), "start of {} processes of '{}'",
                launch.size, fmt::join(launch.command, " "));
  std::vector<SocketExchange::Ends> ends;
  TOMBOLO_TRY(SocketExchange::make(launch.size, ends));
  Launcher started;
  started.grace_ = launch.grace;
  Launch with_board = launch;
  if (launch.first_is_program) TOMBOLO_TRY(started.make_board(with_board));
  for (int rank = 0; rank < launch.size; ++rank)
    TOMBOLO_TRY(started.start_one(with_board, rank, ends));  // those that run are ended (LA1)
  out = std::move(started);
  return {};
}

Status Launcher::make_board(Launch& launch) {
  board_ = std::make_unique<EndBoard>();
  TOMBOLO_TRY(EndBoard::create(launch.size, *board_));
  launch.environment.emplace_back(end_board_option.variable, board_->name());
  return {};
}

Status Launcher::start_one(const Launch& launch, int rank,
                           std::vector<SocketExchange::Ends>& ends) {
  SocketExchange::Ends mine = std::move(ends[static_cast<std::size_t>(rank)]);
  std::vector<int> numbers;
  for (const host::Descriptor& end : mine) numbers.push_back(end.get());
  const Texts command(launch.command);
  const Texts environment(environment_with(
      launch, fmt::format("{}/{}:{}", rank, launch.size, fmt::join(numbers, ","))));
  int report[2];
  if (pipe2(report, O_CLOEXEC) != 0)
    return Status::io(fmt::format("pipe: {}; see ulimit -n", std::strerror(errno)));
  const host::Descriptor hears(report[0]);
  host::Descriptor tells(report[1]);
  const pid_t launcher = getpid();
  const pid_t child = fork();
  if (child == 0) become(command, environment, launcher, mine, tells.get());
  if (child < 0)
    return Status::io(
        fmt::format("fork of process {}: {}; see ulimit -u", rank, std::strerror(errno)));
  pids_.push_back(child);
  ends_of_processes_.emplace_back(static_cast<int>(syscall(SYS_pidfd_open, child, 0)));
  tells.reset(-1);
  int error = 0;
  if (read(hears.get(), &error, sizeof error) != sizeof error) return {};  // exec closed it
  return Status::bad_configuration(
      fmt::format("{} does not start: {}", launch.command[0], std::strerror(error)));
}

bool Launcher::running() const {
  return std::any_of(pids_.begin(), pids_.end(), [](pid_t pid) { return pid > 0; });
}

void Launcher::signal_all(int signal) {
  for (const pid_t pid : pids_)
    if (pid > 0) kill(pid, signal);
}

void Launcher::note_end(std::size_t rank, int status) {
  pids_[rank] = -1;
  if (board_ != nullptr) board_->note(static_cast<int>(rank), status);
  if (board_ != nullptr && rank != 0) return;
  program_ended_ = Clock::now();
  if (status == 0 || !failed_.ok()) return;
  failed_status_ = status;
  failed_ = Status::process_failed(static_cast<int>(rank),
                                   fmt::format("process {} {}", rank, text_of_end(status)));
}

void Launcher::look(milliseconds most) {
  constexpr milliseconds without_descriptors{2};
  std::vector<pollfd> ends;
  bool known = true;
  for (std::size_t rank = 0; rank < pids_.size(); ++rank) {
    if (pids_[rank] <= 0) continue;
    known = known && ends_of_processes_[rank].valid();
    ends.push_back({ends_of_processes_[rank].get(), POLLIN, 0});
  }
  if (known)
    poll(ends.data(), ends.size(), static_cast<int>(most.count()));
  else
    std::this_thread::sleep_for(std::min(most, without_descriptors));
  for (std::size_t rank = 0; rank < pids_.size(); ++rank) {
    int status = 0;
    if (pids_[rank] > 0 && waitpid(pids_[rank], &status, WNOHANG) == pids_[rank])
      note_end(rank, status);
  }
}

Status Launcher::wait(const std::atomic<bool>* interrupt) {
  constexpr milliseconds between_looks{50};
  while (running()) {
    look(between_looks);
    if (interrupt != nullptr && interrupt->load() && failed_.ok())
      failed_ = Status::stopped("interrupted");
    if (!failed_.ok()) end();
    end_after_program();
  }
  return failed_;
}

// Those that serve it end by themselves, but for one whose families would not be killed.
void Launcher::end_after_program() {
  if (board_ == nullptr || pids_[0] > 0) return;
  if (Clock::now() - program_ended_ >= grace_) end();
}

int Launcher::exit_status() const {
  if (failed_.ok()) return 0;
  if (WIFSIGNALED(failed_status_)) return 128 + WTERMSIG(failed_status_);
  return failed_status_ == 0 ? 1 : WEXITSTATUS(failed_status_);
}

void Launcher::end() {
  if (!running()) return;
  signal_all(SIGTERM);
  const auto until = Clock::now() + grace_;
  while (running() && Clock::now() < until) look(milliseconds(10));
  signal_all(SIGKILL);
  while (running()) look(milliseconds(10));
}

bool is_launched() { return is_set(member_option); }

int launched_rank() { return std::atoi(text_of(member_option).c_str()); }

Status join(std::unique_ptr<SocketExchange>& out) {
  const std::string text = text_of(member_option);
  int rank = -1;
  int size = 0;
  int length = 0;
  if (std::sscanf(text.c_str(), "%d/%d:%n", &rank, &size, &length) != 2 || length == 0 ||
      rank < 0 || rank >= size)
    return Status::bad_configuration("this process was not started by a launcher of Tombolo");
  SocketExchange::Ends ends;
  for (const char* at = text.c_str() + length; *at != '\0';) {
    char* end = nullptr;
    const long number = std::strtol(at, &end, 10);
    if (end == at || fcntl(static_cast<int>(number), F_SETFD, FD_CLOEXEC) != 0)
      return Status::bad_configuration("the launcher's sockets are not open in this process");
    ends.emplace_back(static_cast<int>(number));
    at = *end == ',' ? end + 1 : end;
  }
  if (ends.size() != static_cast<std::size_t>(rank == 0 ? size - 1 : 1) && size > 1)
    return Status::bad_configuration("the launcher's sockets are not all there");
  out = std::make_unique<SocketExchange>(rank, size, std::move(ends));
  return {};
}

}  // namespace tombolo::runtime
