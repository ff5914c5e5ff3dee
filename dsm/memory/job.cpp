// SPDX-License-Identifier: Apache-2.0
#include "dsm/memory/job.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "dsm/transport/mpi/load.h"
#include "runtime/processes/launcher.h"

namespace tombolo::dsm {
namespace {

// Without stdio: the program may not have begun.
void tell(std::string_view cause) {
  const std::string line = fmt::format("tombolo: {}\n", cause);
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace

Job::Job()
    : sockets_(std::make_unique<runtime::SocketExchange>(0, 1, runtime::SocketExchange::Ends())) {}
Job::Job(std::unique_ptr<OneSided> mpi) : mpi_(std::move(mpi)) {}

Status Job::join(TransportKind transport, std::unique_ptr<Job>& out) {
  auto job = std::make_unique<Job>();
  if (runtime::is_launched())
    TOMBOLO_TRY(runtime::join(job->sockets_));
  else if (transport == TransportKind::mpi)
    TOMBOLO_TRY(load_one_sided(job->mpi_));
  out = std::move(job);
  return {};
}

void Job::end(const runtime::Agreed& failure, std::string_view cause) {
  const char mine = failure.own() ? 1 : 0;
  std::vector<char> all(static_cast<std::size_t>(size()), 0);
  const bool asked = gather(&mine, all.data(), sizeof mine).ok();
  const auto first = std::ranges::find(all, 1) - all.begin();
  if (!asked || first == rank()) tell(cause);         // DJB1
  (void)gather(&mine, all.data(), sizeof mine).ok();  // DJB2
  if (!mpi_) _exit(EXIT_FAILURE);
  const bool is_first = rank() == 0;
  finish();  // DJB3
  // Not _exit(): MPICH tells its launcher in a handler that the process ends as it should. The
  // first process fails for all.
  std::exit(is_first ? EXIT_FAILURE : EXIT_SUCCESS);
}

}  // namespace tombolo::dsm
