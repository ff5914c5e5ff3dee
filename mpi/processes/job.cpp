// SPDX-License-Identifier: Apache-2.0
#include "mpi/processes/job.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "host/images/own_memory.h"
#include "host/mpi/host.h"
#include "host/processes/processors.h"
#include "runtime/engines/machine_id.h"
#include "runtime/processes/processes_here.h"
#include "runtime/processes/processors_here.h"

namespace tombolo::mpi {
namespace {

constexpr const char* forwarded = "windows_forwarded";

// The rank in the world; 0 where there is none. A program of sessions alone has no world.
int rank_in_world(bool& has_world) {
  int initialized = 0;
  has_world = host().Initialized(&initialized) == MPI_SUCCESS && initialized != 0;
  int rank = 0;
  if (!has_world || host().Comm_rank(MPI_COMM_WORLD, &rank) != MPI_SUCCESS) return 0;
  return rank;
}

}  // namespace

Job::Job()
    : options_(runtime::read_environment()),
      world_rank_(rank_in_world(has_world_)),
      reports_(world_rank_),
      served_(runtime::counters().counter("windows_served")),
      reused_(runtime::counters().counter("windows_from_kept_parts")),
      processors_(host::processors()) {
  runtime::counters().counter(forwarded);  // written as 0 where none is
  // Sessions have a level each: the highest is assumed.
  int level = 0;
  threads_ = true;
  if (has_world_ && host().Query_thread(&level) == MPI_SUCCESS) {
    threads_ = level == MPI_THREAD_MULTIPLE;
    threads_in_turn_ = level == MPI_THREAD_SERIALIZED;
    one_thread_ = level == MPI_THREAD_SINGLE;
  }
}

void Job::report_complaints() {
  for (const auto& complaint : options_.complaints) reports_.once(complaint);
}

machine::WaitPolicy Job::waiting(machine::Home cores) const {
  // Relaxed: a number by itself.
  return machine::WaitPolicy::for_host(std::max(cores, runtime::processes_here()),
                                       processors_.load(std::memory_order_relaxed));
}

// Of some processes alone the sets say nothing of the others: each may be bound to a part. Where a
// launcher does not tell their number, the most that a window has had count as all.
void Job::learn_processors(std::span<const runtime::Member> members, std::uint64_t host) {
  const std::lock_guard guard(learning_);  // two windows of two threads
  if (learned_from_ >= members.size()) return;
  runtime::ProcessorsHere here;
  for (const runtime::Member& member : members)
    if (member.host == host) here.add(member.processors);
  if (here.processes() < 2 || here.processes() < runtime::processes_here()) return;
  if (here.processes() <= learned_from_) return;
  // Relaxed: a window of another thread that does not know of it yet waits as before.
  processors_.store(here.count(), std::memory_order_relaxed);
  learned_from_ = here.processes();
}

void Job::count_forwarded(const std::string& why, bool created) {
  if (created) host::own_memory().settle();  // the host may use the memory from now on
  runtime::counters().count(forwarded, why);
}

void Job::print_stats() {
  using runtime::Counters;
  if (options_.statistics == runtime::Statistics::off) return;
  const std::array facts{
      Counters::Fact{"rank", std::to_string(world_rank_)},
      Counters::Fact{"machine", std::string(name(options_.machine))},
      Counters::Fact{"processors", std::to_string(processors_.load(std::memory_order_relaxed))}};
  const bool json = options_.statistics == runtime::Statistics::json;
  const std::string line =
      json ? runtime::counters().as_json(facts) : runtime::counters().as_text(facts);
  std::fprintf(stderr, "tombolo: stats %s\n", line.c_str());
}

Job& job() {
  // Never destroyed: windows may outlive the destructors of a program's own static objects.
  static Job* const the_job = new Job;
  return *the_job;
}

}  // namespace tombolo::mpi
