// SPDX-License-Identifier: Apache-2.0
// Purpose: programs of a test as server_programs.h has them, whose processes the launcher of a host
// MPI starts: the transport `mpi` over that MPI's one-sided operations.
//
// A process that fails says so on stderr and ends with a status of its own, and the launcher of the
// MPI ends the others.
// Thread safety: -
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "base/option_table.h"
#include "dsm/testing/server_programs.h"
#include "dsm/transport/mpi/load.h"

namespace tombolo::dsm::testing {

// `launcher`: a path to MPICH's.
inline runtime::Launch launch_by_mpi(const std::string& launcher, const std::string& name,
                                     int size) {
  return {.command = {launcher, "-n", std::to_string(size),
                      std::filesystem::read_symlink("/proc/self/exe").string(), "--member", name},
          .size = 1,
          .environment = {{"TOMBOLO_DSM_TRANSPORT", "mpi"},
                          // There may be more processes than processors.
                          {"MPIR_CVAR_POLLS_BEFORE_YIELD", "1"},
                          {"MPIR_CVAR_CH4_PROGRESS_THROTTLE", "1"},
                          {"MPIR_CVAR_CH4_PROGRESS_THROTTLE_NO_PROGRESS_COUNT", "1"}},
          .grace = std::chrono::seconds(30)};
}

inline bool is_started_by_mpi() { return text_of(options::dsm_transport) == "mpi"; }

// As run_member().
template <class Body>
int run_member_of_mpi(Settings settings, Body&& body, unsigned most_seconds) {
  alarm(most_seconds);
  std::unique_ptr<OneSided> job;
  MUST(load_one_sided(job));
  MUST(read_options(settings));
  runtime::Collective all(*job);
  std::unique_ptr<ComputeServer> server;
  MUST(ComputeServer::open(
           all,
           {.settings = settings, .options = runtime::read_environment(), .one_sided = job.get()},
           server)
           .status());
  body(server->memory(), server->settings());
  MUST(server->close(all).status());
  server.reset();
  job->finish();
  return 0;
}

}  // namespace tombolo::dsm::testing
