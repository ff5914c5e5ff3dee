// SPDX-License-Identifier: Apache-2.0
#include "svp/records/process_records.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "base/option_table.h"
#include "runtime/host_mpi/launched.h"
#include "runtime/options/options.h"
#include "runtime/processes/launcher.h"

namespace tombolo::svp {
namespace {

using runtime::counters;

void say(const std::string& text) { std::fprintf(stderr, "tombolo: %s\n", text.c_str()); }

std::string rank() {
  const bool ours = runtime::is_launched();
  return std::to_string(ours ? runtime::launched_rank() : runtime::rank_in_mpi_job());
}

// The program may change its folder.
std::string path_of_trace() {
  const std::string path = text_of(options::svp_trace);
  if (path.empty()) return path;
  std::error_code error;
  const std::string whole = std::filesystem::absolute(path, error);
  const bool one_of_several = runtime::is_launched() || runtime::processes_of_mpi_job() > 1;
  return one_of_several ? whole + "." + rank() : whole;
}

}  // namespace

ProcessRecords& ProcessRecords::here() {
  static ProcessRecords records;
  return records;
}

ProcessRecords::ProcessRecords()
    : created_(counters().counter("families_created")),
      inlined_(counters().counter("families_inlined")),
      killed_(counters().counter("families_killed")),
      broken_(counters().counter("families_broken")),
      failed_(counters().counter("families_failed")),
      stolen_(counters().counter("tasks_stolen")),
      delegated_(counters().counter("tasks_delegated")),
      blocked_(counters().counter("reads_blocked")),
      parked_(counters().counter("stacks_parked")),
      remote_creates_(counters().counter("remote_creates")),
      remote_bytes_(counters().counter("remote_bytes")) {
  const std::string path = path_of_trace();
  traced_ = !path.empty();
  if (traced_) begin_trace(path);
}

void ProcessRecords::begin_trace(const std::string& path) {
  owner_ = getpid();
  trace_ = runtime::TraceFile(path, options::svp_trace);
  if (const Status fits = trace_.check(); !fits.ok()) {
    say(fits.message());
    std::_Exit(1);
  }
}

void ProcessRecords::add(const WorkerCounts& counts) {
  created_.add(counts.inlined.value() + counts.awaited.value());
  inlined_.add(counts.inlined.value());
  stolen_.add(counts.stolen.value());
  delegated_.add(counts.delegated.value());
  blocked_.add(counts.blocked.value());
  parked_.add(counts.parked.value());
}

void ProcessRecords::add(std::unique_ptr<FamilyTrace> trace) {
  if (getpid() != owner_) return;
  trace->shrink();
  const std::lock_guard lock(mutex_);
  ended_.push_back(std::move(trace));
}

Status ProcessRecords::write_trace() {
  TOMBOLO_TRY(trace_.begin());
  TOMBOLO_TRY(trace_.append(runtime::TraceFile::head()));
  std::uint32_t tracks = 0;
  for (std::unique_ptr<FamilyTrace>& trace : ended_)
    TOMBOLO_TRY(trace_.append(std::exchange(trace, nullptr)->lines(tracks)));
  TOMBOLO_TRY(trace_.append(runtime::TraceFile::end("families, process " + rank())));
  return trace_.replace();
}

// A trace that cannot be written fails nothing else.
ProcessRecords::~ProcessRecords() {
  if (traced_ && getpid() == owner_) {
    if (const Status written = write_trace(); !written.ok()) say(written.message());
  }
  const runtime::Options options = runtime::read_environment();
  if (options.statistics == runtime::Statistics::off) return;
  const runtime::Counters::Fact facts[] = {{.name = "rank", .value = rank()}};
  const bool json = options.statistics == runtime::Statistics::json;
  say("stats " + (json ? counters().as_json(facts) : counters().as_text(facts)));
}

}  // namespace tombolo::svp
