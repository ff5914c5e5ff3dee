// SPDX-License-Identifier: Apache-2.0
#include "pthreads/program/launched_processes.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <utility>

#include "base/rounding.h"
#include "dsm/memory/off_stack_memory.h"
#include "dsm/threads/runtime_hooks.h"
#include "dsm/transport/mpi/one_sided.h"
#include "pthreads/program/carried_signals.h"
#include "pthreads/program/first_process.h"
#include "pthreads/program/launched_team.h"
#include "pthreads/program/own_streams.h"
#include "pthreads/program/program_state.h"
#include "pthreads/program/thread_server.h"

namespace tombolo::dsm {
namespace {

// The team of the facts is that of the job from now on, and to the end: `out`.
Status start_team(ProgramFacts& facts, OneSided& job, LaunchedTeam*& out) {
  std::unique_ptr<LaunchedTeam> team;
  TOMBOLO_TRY(make_launched_team(job, team));
  TOMBOLO_TRY(team->start());
  out = team.get();
  facts.team = std::move(team);
  return {};
}

// In another process than the first. On a stack of its own: the caller's is of the program's
// memory, which ends.
[[noreturn]] void leave_program(ProgramFacts& facts) {
  environ = facts.environment;  // the host MPI's end reads it, when no page can be fetched any more
  const OffStackMemory::Stack stack;
  host::call_on(stack.memory(), [&facts] {
    const ThreadedProgram::Inside inside;
    const host::CallsPass of_the_runtime;
    facts.tell_counts();
    facts.team->leave();
    facts.host.exit(0);
  });
  __builtin_unreachable();
}

// One with a thread of the program. `Role` is its class where processes are forked.
template <class Role>
class Launched : public Role {
 public:
  template <class... Number>
  Launched(ProgramFacts& facts, OneSided& job, Number... number)
      : Role(facts, number...), job_(job) {
    launched_here = this;
  }

  // The C library's threads have the same addresses in all processes (WLD2), far behind the memory.
  Status meet_others() final {
    constexpr std::uint64_t between = std::uint64_t{1} << 30;
    const std::uint64_t bases = round_up(this->facts_.layout.end() + between, between);
    TOMBOLO_TRY(this->make_room_for_threads(reinterpret_cast<std::byte*>(bases)));
    TOMBOLO_TRY(start_team(this->facts_, job_, team_));
    calls_ = team_->calls({.program = this->facts_.first_process,
                           .first = job_.rank() == 0,
                           .ends = [](int status) { launched_here->end_at_once(status); },
                           .looks = &Role::look_for_end});
    return {};
  }
  Status enter() final { return this->open_memory(static_cast<Thread>(job_.rank()), calls_.get()); }

 protected:
  void take_over() final {
    Role::take_over();
    Role::served = this;
    team_->tell_end_to(&Role::exit_asked);
  }
  // In place of the kernel's call. It returns in the first process, which then makes that.
  virtual void end_at_once(int status) = 0;

 private:
  static inline constinit Launched* launched_here = nullptr;

  OneSided& job_;
  LaunchedTeam* team_ = nullptr;
  std::unique_ptr<host::CallTarget> calls_;
};

// ---- The first process --------------------------------------------------------------------------

// The others are there, and its memory ends with the job, before the process does.
class LaunchedFirstProcess final : public Launched<FirstProcess> {
 public:
  using Launched::Launched;
  bool can_become_another() const override { return false; }

 private:
  int prepare_threads() override;
  void end_program() override;
  void end_at_once(int status) override;
  void keep_stack_open();
};

// The others adopt the state that it has at the first create().
int LaunchedFirstProcess::prepare_threads() {
  if (memory().load(layout().state()) != 0) return 0;
  void* const block = heap().allocate(sizeof(ProgramState), alignof(ProgramState), true);
  if (block == nullptr) return EAGAIN;
  memory().store(layout().state(), reinterpret_cast<std::uint64_t>(new (block) ProgramState()));
  return 0;
}

// The rest of the program's end is the C library's and the host MPI's.
void LaunchedFirstProcess::end_program() {
  ends_ = true;
  facts_.host.flush();
  keep_stack_open();
  end_others();
  served = nullptr;
  catching = false;
  host::leave_calls();
}

void LaunchedFirstProcess::end_at_once(int /*status*/) {
  ends_ = true;
  const Inside inside;
  facts_.team->end();
}

// No page of the memory can be fetched once the job is finished: the rest of exit() on this stack,
// and with the program's streams, is to find its pages open. Open MPI's end reads the environment.
void LaunchedFirstProcess::keep_stack_open() {
  environ = facts_.environment;
  constexpr std::size_t above = std::size_t{64} << 10;
  constexpr std::size_t below = std::size_t{128} << 10;
  std::fflush(nullptr);
  give_own_buffers(facts_);
  auto* const at = static_cast<std::byte*>(__builtin_frame_address(0));
  std::byte* const low = std::max(at - below, stack_.data());
  std::byte* const high = std::min(at + above, stack_.data() + stack_.size());
  const OffStackMemory::Stack stack;
  if (low >= high || !stack) return;
  host::call_on(stack.memory(), [this, low, high] {
    const host::CallsPass of_the_runtime;
    std::size_t touched = 0;
    must(memory().touch(low, static_cast<std::size_t>(high - low), true, touched));
  });
}

// ---- A server of threads ------------------------------------------------------------------------

// It adopts the state that a fork would have copied, and leaves the job by itself when the program
// ends.
class LaunchedThreadServer final : public Launched<ThreadServer> {
 public:
  using Launched::Launched;
  [[noreturn]] void run(const Main& main) override;
  bool starts_programs() const override { return false; }

 private:
  void adopt_program() override;
  Status serve_signals_of_thread(sigset_t mask) override;
  [[noreturn]] void wait_for_end() override;
  void end_here(int status) override;
  void end_at_once(int status) override;

  bool has_run_ = false;  // a thread
};

void LaunchedThreadServer::run(const Main& main) {
  take_over();
  main.begun();
  served = nullptr;
  block_all_but_faults();
  serve();
}

// Before its first thread, whose creator's stores are seen by now: the program's variables are
// among them, and such as `stdout`.
void LaunchedThreadServer::adopt_program() {
  if (std::exchange(has_run_, true)) return;
  reinterpret_cast<const ProgramState*>(memory().load(layout().state()))->adopt();
  write_by_line(stdout);
}

Status LaunchedThreadServer::serve_signals_of_thread(sigset_t mask) {
  sigdelset(&mask, SIGRTMAX);  // LNS2
  return serve_signals(mask, 0);
}

void LaunchedThreadServer::wait_for_end() {
  constexpr timespec between_looks{0, 1'000'000};
  for (;;) {
    look_for_end();
    nanosleep(&between_looks, nullptr);
  }
}

void LaunchedThreadServer::end_here(int /*status*/) {
  ends_ = true;
  if (has_run_) std::fflush(stdout);
  leave_program(facts_);
}

void LaunchedThreadServer::end_at_once(int status) {
  facts_.team->ask_exit(status);
  wait_for_end();
}

// ---- A memory server ----------------------------------------------------------------------------

// The others reach its memory by themselves. No page of the program's is cached here, and none of
// its code runs.
class LaunchedMemoryServer final : public ProgramProcess {
 public:
  LaunchedMemoryServer(ProgramFacts& facts, OneSided& job) : facts_(facts), job_(job) {}

  Status meet_others() override {
    LaunchedTeam* team = nullptr;
    return start_team(facts_, job_, team);
  }
  Status enter() override { return {}; }
  [[noreturn]] void run(const Main& /*main*/) override {
    prctl(PR_SET_NAME, "tombolo-memory");
    block_all_but_faults();
    sigset_t notice;
    sigemptyset(&notice);
    sigaddset(&notice, SIGRTMAX);  // LNS2
    while (facts_.team->asked_status() < 0) sigwaitinfo(&notice, nullptr);
    leave_program(facts_);
  }

 private:
  ProgramFacts& facts_;
  OneSided& job_;
};

}  // namespace

std::unique_ptr<ProgramProcess> make_launched_process(ProgramFacts& facts, OneSided& job) {
  const auto number = static_cast<Thread>(job.rank());
  if (number == 0) return std::make_unique<LaunchedFirstProcess>(facts, job);
  if (number < facts.layout.servers)
    return std::make_unique<LaunchedThreadServer>(facts, job, number);
  return std::make_unique<LaunchedMemoryServer>(facts, job);
}

}  // namespace tombolo::dsm
