// SPDX-License-Identifier: Apache-2.0
// Purpose: the end of a job that is refused at its start. A launcher kills the others once one
// process has failed, and a host MPI that is killed before it is finalized leaves its memory in
// /dev/shm behind. So the first process fails, and does so last.
// Thread safety: one thread.
#pragma once

#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "dsm/transport/mpi/one_sided.h"
#include "host/processes/host_identity.h"

namespace tombolo::dsm {

// By all processes of the job, after the cause was told.
[[noreturn]] inline void end_together(OneSided& job) {
  constexpr timespec between_looks{0, 1'000'000};
  constexpr int most_looks = 3000;  // a process that does not end is left to the launcher
  const host::Owner mine = host::this_process();
  std::vector<host::Owner> all(static_cast<std::size_t>(job.size()));
  const bool known = job.gather(&mine, all.data(), sizeof mine).ok();
  const bool first = job.rank() == 0;
  job.finish();
  // By exit(): MPICH tells its launcher in a handler that the process ends as it should.
  if (!first) std::exit(EXIT_SUCCESS);
  const auto is_there = [&](const host::Owner& other) {
    return other.host == mine.host && other != mine && !host::gone(other);
  };
  for (int looks = 0; known && looks < most_looks && std::ranges::any_of(all, is_there); ++looks)
    nanosleep(&between_looks, nullptr);
  std::exit(EXIT_FAILURE);
}

}  // namespace tombolo::dsm
