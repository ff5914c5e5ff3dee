// SPDX-License-Identifier: Apache-2.0
#include "pthreads/program/first_process.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "host/processes/no_signals.h"
#include "host/stacks/other_stack.h"
#include "pthreads/program/carried_signals.h"
#include "pthreads/program/forked_servers.h"
#include "pthreads/program/thread_server.h"

namespace tombolo::dsm {
namespace {

constinit FirstProcess* the_first = nullptr;

}  // namespace

void FirstProcess::run(const Main& main) {
  take_over();
  served = this;
  the_first = this;
  std::atexit([] { the_first->end_program(); });
  main.begun();
  stack_ = facts_.first_stack();
  host::OtherStack stack(stack_);
  catch_calls();
  stack.run([&] { main.run(main.object); });
  std::abort();  // main() ends by exit()
}

// ---- The other processes ------------------------------------------------------------------------

int FirstProcess::prepare_threads() {
  if (has_processes()) return 0;
  const Status status = start_team();
  if (status.ok()) return 0;
  tell("no process for a thread: " + status.message());
  return EAGAIN;
}

Status FirstProcess::start_team() {
  std::fflush(nullptr);  // else the new processes would write it once more
  const Busy busy(*this);
  const Inside inside;
  // The C++ library counts references without atomic operations as long as this is set.
  if (facts_.host.single_threaded != nullptr) *facts_.host.single_threaded = 0;
  TOMBOLO_TRY(keep_carriers());
  // Of a server, too, until it runs a thread: a signal for that one may come before.
  const host::NoSignals before_its_thread;
  auto servers = std::make_unique<ForkedServers>();
  ForkedServers& forked = *servers;
  facts_.team = std::move(servers);  // before the fork
  const ProgramLayout& layout = facts_.layout;
  Status started = forked.start({.most = static_cast<int>(layout.servers + layout.memory_servers),
                                 .naming = [this](int rank) { return name_of_member(rank); },
                                 .member = [this](int rank) { be_member(rank); },
                                 .exit_asked = &exit_asked});
  for (Thread i = 0; i < layout.memory_servers && started.ok(); ++i)
    started = forked.add(layout.servers + i);
  if (!started.ok()) facts_.team.reset();
  return started;
}

// The compute servers first, whose rank 0 stays free, then the memory servers.
std::string FirstProcess::name_of_member(int rank) const {
  const auto number = static_cast<Thread>(rank);
  const Thread servers = facts_.layout.servers;
  return number < servers ? fmt::format("compute server {}", number)
                          : fmt::format("memory server {}", number - servers);
}

// The objects that the fork has left here are the first process's.
void FirstProcess::be_member(int rank) {
  const auto number = static_cast<Thread>(rank);
  if (number < facts_.layout.servers) (new ThreadServer(facts_, number))->run({});
  // It holds the memory that was mapped before it was forked, until the keeper ends it.
  prctl(PR_SET_NAME, "tombolo-memory");
  block_all_but_faults();
  for (;;) pause();
}

// ---- The end ------------------------------------------------------------------------------------

void FirstProcess::end_others() {
  ends_ = true;
  const Inside inside;
  if (has_processes()) facts_.team->end();
  facts_.tell_counts();
}

void FirstProcess::end_program() {
  ends_ = true;
  facts_.host.flush();
  end_others();
}

void FirstProcess::exit(int status) {
  facts_.host.exit(status);
  __builtin_unreachable();
}

void FirstProcess::thread_ends() {
  threads().wait_for_all();
  exit(0);
}

void FirstProcess::end_here(int status) {
  if (!facts_.team->asked_at_once()) exit(status);
  // It runs no handlers of atexit(), and leaves streams as they are.
  end_others();
  _exit(status);
}

}  // namespace tombolo::dsm
