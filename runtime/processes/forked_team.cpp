// SPDX-License-Identifier: Apache-2.0
#include "runtime/processes/forked_team.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <string_view>
#include <thread>
#include <utility>

#include "base/check.h"
#include "host/descriptor.h"
#include "host/interrupts/reserved_signal.h"
#include "host/processes/shared_fork.h"
#include "host/stacks/other_stack.h"

namespace tombolo::runtime {
namespace {

// To the keeper: look at the page.
constexpr int wake = SIGUSR1;
// To the starter: an exit was asked for, or the keeper has ended. It is not held back (TEM4).
constexpr int notice = host::first_reserved;

std::atomic<ForkedTeam*> the_team{nullptr};

// Not by the kernel's number: a thread whose system calls are caught would have to ask for it.
thread_local bool is_starters_thread = false;

// Of a member, in the page; larger ones are process numbers.
constexpr std::int32_t absent = 0;
constexpr std::int32_t wanted = -1;
constexpr std::int32_t refused = -2;

// Of an exit that was asked for: statuses are smaller.
constexpr std::int32_t at_once = 1 << 16;

// Allocates nothing: in the keeper (TEM6), and in a handler of a signal.
template <class... Parts>
void tell(fmt::format_string<Parts...> sentence, Parts&&... parts) {
  std::array<char, 512> line;
  const std::size_t room = line.size() - 1;
  char* end = fmt::format_to_n(line.data(), room, "tombolo: ").out;
  end =
      fmt::format_to_n(end, line.data() + room - end, sentence, std::forward<Parts>(parts)...).out;
  end = std::min(end, line.data() + room);
  *end++ = '\n';
  [[maybe_unused]] const ssize_t written =
      write(STDERR_FILENO, line.data(), static_cast<std::size_t>(end - line.data()));
}

// Not by the program's language: its texts may be in memory that the keeper does not have.
const char* description_of(int signal) {
  const char* const text = sigdescr_np(signal);
  return text != nullptr ? text : "unknown";
}

void nap(std::chrono::milliseconds time) { std::this_thread::sleep_for(time); }

}  // namespace

struct ForkedTeam::Page {
  std::atomic<std::int32_t> keeper;  // its process number
  std::atomic<std::int32_t> ending;  // end() was called
  std::atomic<std::int32_t> asked;   // status + 1 of an exit, or 0; + `at_once`
  std::atomic<std::int32_t> fork_error;
  std::atomic<std::int32_t> members[];

  static std::size_t bytes(int most) {
    return sizeof(Page) + static_cast<std::size_t>(most) * sizeof(std::atomic<std::int32_t>);
  }
};

// The life of the keeper's process.
class ForkedTeam::Keeper {
 public:
  // All signals are blocked. `mask`: those that members have blocked.
  Keeper(const ForkedTeam& team, const sigset_t& mask)
      : plan_(team.plan_),
        names_(team.names_),
        page_(team.page()),
        starter_(team.starter_),
        mask_(mask) {}

  [[noreturn]] void run() {
    prctl(PR_SET_PDEATHSIG, wake);  // TEM1
    prctl(PR_SET_NAME, "tombolo-keeper");
    watch_children();
    sigset_t mine;
    sigemptyset(&mine);
    sigaddset(&mine, SIGCHLD);
    sigaddset(&mine, wake);
    for (;;) {
      if (getppid() != starter_) end_after_starter();
      for (int rank = 0; rank < plan_.most; ++rank)
        if (page_.members[rank].load() == wanted) fork_member(rank);
      for (int status = 0, pid = next_ended(status); pid > 0; pid = next_ended(status))
        note_end(pid, status);
      if (page_.ending.load() != 0) finish();
      constexpr timespec between_looks{0, 100'000'000};
      sigtimedwait(&mine, nullptr, &between_looks);
    }
  }

 private:
  static pid_t next_ended(int& status) { return waitpid(-1, &status, WNOHANG | __WALL); }

  void watch_children() {
    // If it were ignored, the kernel would forget how children have ended.
    struct sigaction as_usual = {};
    as_usual.sa_handler = SIG_DFL;
    sigaction(SIGCHLD, &as_usual, &of_children_);
  }

  void fork_member(int rank) {
    const pid_t keeper = getpid();
    const pid_t child = host::fork_sharing_files(SIGCHLD);
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);  // TEM1
      if (getppid() != keeper) _exit(1);
      sigaction(SIGCHLD, &of_children_, nullptr);
      sigprocmask(SIG_SETMASK, &mask_, nullptr);
      plan_.member(rank);
      page_.members[rank].store(absent);
      _exit(0);
    }
    if (child < 0) page_.fork_error.store(errno);
    page_.members[rank].store(child < 0 ? refused : child);
  }

  void note_end(pid_t pid, int status) {
    int rank = 0;
    while (rank < plan_.most && page_.members[rank].load() != pid) ++rank;
    if (rank == plan_.most) return;  // it has left the team
    page_.members[rank].store(absent);
    if (WIFEXITED(status)) return have_exit(WEXITSTATUS(status));
    have_killed(rank, pid, WTERMSIG(status));
  }

  void have_exit(int status) {
    std::int32_t none = 0;
    page_.asked.compare_exchange_strong(none, (status + 1) | at_once);
    kill(starter_, notice);
  }

  [[noreturn]] void have_killed(int rank, pid_t pid, int signal) {
    tell("{} (process {}) was killed by signal {} ({}); the program ends",
         names_[static_cast<std::size_t>(rank)], pid, signal, description_of(signal));
    kill_members();
    kill(starter_, signal);
    // It may handle that one, or block it.
    constexpr int looks = 50;
    for (int i = 0; i < looks && getppid() == starter_; ++i) nap(std::chrono::milliseconds(10));
    if (getppid() == starter_) kill(starter_, SIGKILL);
    _exit(1);
  }

  // One that has left by end() or _exit() is no loss. It is told of SIGKILL alone: other signals
  // come from the user or were told of by their handlers.
  [[noreturn]] void end_after_starter() {
    kill_members();
    if (page_.ending.load() == 0 && signal_of_starter() == SIGKILL)
      tell(
          "the first process of this program (process {}) was killed by signal {} ({}); "
          "the program ends",
          starter_, SIGKILL, description_of(SIGKILL));
    _exit(1);
  }

  // That has ended it, while its parent has not collected it; else 0. The keeper is no parent of
  // it, and has no descriptor that the program could not close.
  int signal_of_starter() const {
    std::array<char, 64> path{};
    fmt::format_to_n(path.data(), path.size() - 1, "/proc/{}/stat", starter_);
    const host::Descriptor file(open(path.data(), O_RDONLY | O_CLOEXEC));
    std::array<char, 1024> text{};
    const ssize_t bytes = read(file.get(), text.data(), text.size() - 1);
    if (bytes <= 0) return 0;
    std::string_view fields(text.data(), static_cast<std::size_t>(bytes));
    fields.remove_prefix(std::min(fields.size(), fields.rfind(')') + 1));
    constexpr int fields_between = 49;  // from the state, behind the name, to the status: proc(5)
    for (int i = 0; i < fields_between; ++i)  // a space is in front of each
      fields.remove_prefix(std::min(fields.size(), fields.find(' ', 1)));
    fields.remove_prefix(std::min(fields.size(), fields.find_first_not_of(' ')));
    int status = 0;  // by no locale: its tables may be in memory that the keeper does not have
    std::from_chars(fields.data(), fields.data() + fields.size(), status);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  }

  void kill_members() {
    for (int rank = 0; rank < plan_.most; ++rank)
      if (const pid_t pid = page_.members[rank].load(); pid > 0) kill(pid, SIGKILL);
  }

  [[noreturn]] void finish() {
    kill_members();
    while (waitpid(-1, nullptr, __WALL) > 0 || errno == EINTR) {
    }
    _exit(0);
  }

  const ForkedTeamPlan& plan_;
  const std::vector<std::string>& names_;  // of members
  Page& page_;
  pid_t starter_;
  sigset_t mask_;
  struct sigaction of_children_ = {};
};

ForkedTeam::Page& ForkedTeam::page() const { return *reinterpret_cast<Page*>(segment_.data()); }

Status ForkedTeam::start(ForkedTeamPlan plan, std::unique_ptr<ForkedTeam>& out) {
  TOMBOLO_CHECK(plan.most > 0 && plan.naming && plan.member && the_team.load() == nullptr,
                "a team of {} members, in a process that has {} team", plan.most,
                the_team.load() == nullptr ? "no" : "a");
  std::unique_ptr<ForkedTeam> team(new ForkedTeam());
  TOMBOLO_TRY(host::Segment::create_anonymous(Page::bytes(plan.most), "team", team->segment_));
  team->segment_.seal();
  team->plan_ = std::move(plan);
  for (int rank = 0; rank < team->plan_.most; ++rank)
    team->names_.push_back(team->plan_.naming(rank));
  team->starter_ = getpid();
  the_team.store(team.get());
  team->starters_thread_ = static_cast<pid_t>(syscall(SYS_gettid));
  is_starters_thread = true;
  TOMBOLO_TRY(host::handle_reserved_signal(notice, &ForkedTeam::on_signal, SA_RESTART));
  out = std::move(team);  // before the fork: members have it, too
  // The starter's stack may lie in memory that the child shares.
  host::OtherStack stack;
  if (stack.valid())
    stack.run([&] { out->start_keeper(); });
  else
    out->start_keeper();
  if (out->page().keeper.load() > 0) return {};
  const int error = errno;
  out.reset();
  return Status::io(fmt::format("fork: {}; see ulimit -u", std::strerror(error)));
}

void ForkedTeam::start_keeper() {
  sigset_t all;
  sigset_t mask;
  sigfillset(&all);
  // The keeper is sent a signal as soon as it is there.
  sigprocmask(SIG_BLOCK, &all, &mask);
  const pid_t child = host::fork_sharing_files(notice);
  if (child == 0) {
    is_starters_thread = false;
    Keeper(*this, mask).run();
  }
  page().keeper.store(child);
  // One that has ended before was not known by its number.
  if (child > 0) syscall(SYS_tgkill, starter_, starters_thread_, notice);
  sigprocmask(SIG_SETMASK, &mask, nullptr);
}

ForkedTeam::~ForkedTeam() {
  if (getpid() == starter_) end();
  the_team.store(nullptr);
}

Status ForkedTeam::add(int rank) {
  TOMBOLO_CHECK(rank >= 0 && rank < plan_.most, "member {} of a team of {}", rank, plan_.most);
  std::atomic<std::int32_t>& member = page().members[rank];
  std::int32_t none = absent;
  TOMBOLO_CHECK(member.compare_exchange_strong(none, wanted), "member {} is there already", rank);
  kill(page().keeper.load(), wake);
  while (member.load() == wanted) {
    sched_yield();
    if (page().ending.load() != 0) return Status::io("the team has ended");
  }
  std::int32_t failed = refused;
  if (!member.compare_exchange_strong(failed, absent)) return {};
  return Status::io(fmt::format("fork of {}: {}; see ulimit -u",
                                names_[static_cast<std::size_t>(rank)],
                                std::strerror(page().fork_error.load())));
}

pid_t ForkedTeam::process(int rank) const {
  return std::max<pid_t>(page().members[rank].load(), absent);
}

void ForkedTeam::ask_exit(int status) {
  std::int32_t none = 0;
  page().asked.compare_exchange_strong(none, (status & 0xff) + 1);
  kill(starter_, notice);
}

int ForkedTeam::asked_status() const { return (page().asked.load() & ~at_once) - 1; }

bool ForkedTeam::asked_at_once() const { return (page().asked.load() & at_once) != 0; }

void ForkedTeam::on_signal(int, siginfo_t*, void*) {
  const int error = errno;
  ForkedTeam* const team = the_team.load();
  if (team == nullptr || team->page().keeper.load() <= 0) return;
  if (!is_starters_thread) {
    // A process that it is to be sent on from has such a thread (TEM4); a member has none.
    const auto process = static_cast<pid_t>(syscall(SYS_getpid));
    if (process == team->starter_) syscall(SYS_tgkill, process, team->starters_thread_, notice);
    errno = error;
    return;
  }
  if (const int status = team->asked_status(); status >= 0) {
    if (team->plan_.exit_asked == nullptr) _exit(status);
    team->plan_.exit_asked(status);
  } else if (team->page().ending.load() == 0 &&
             waitpid(team->page().keeper.load(), nullptr, WNOHANG | __WALL) > 0) {
    tell("the keeper of this program's processes was killed; the program ends");
    _exit(1);
  }
  errno = error;
}

void ForkedTeam::end() {
  const pid_t keeper = page().keeper.load();
  if (page().ending.exchange(1) != 0 || keeper <= 0) return;
  kill(keeper, wake);
  constexpr int most_looks = 2000;
  for (int looks = 0; looks < most_looks; ++looks) {
    const pid_t ended = waitpid(keeper, nullptr, WNOHANG | __WALL);
    if (ended == keeper || (ended < 0 && errno == ECHILD)) return;
    nap(std::chrono::milliseconds(1));
  }
  kill(keeper, SIGKILL);  // its members follow it (TEM1)
  waitpid(keeper, nullptr, __WALL);
}

}  // namespace tombolo::runtime
