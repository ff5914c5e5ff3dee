// SPDX-License-Identifier: Apache-2.0
#include "dsm/transport/mpi/module/host_losses.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "host/mpi/host.h"

namespace tombolo::dsm {
namespace {

using host::HostWatch;
using std::chrono::milliseconds;

// Without stdio, whose locks the program may hold.
void tell(const std::string& text) {
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
}

template <class T>
void from_first(MPI_Comm comm, T* data, std::size_t count = 1) {
  TOMBOLO_HOST(Bcast)(data, static_cast<int>(count * sizeof(T)), MPI_BYTE, 0, comm);
}

}  // namespace

HostLosses::HostLosses(MPI_Comm comm) {
  TOMBOLO_HOST(Comm_rank)(comm, &rank_);
  learn_places(comm);
  std::vector<int> elsewhere;
  for (std::size_t rank = 1; rank < places_.size(); ++rank)
    if (!places_[rank].is_on_host_of(places_[0])) elsewhere.push_back(static_cast<int>(rank));
  if (elsewhere.empty()) return;
  connect(comm, elsewhere);
  const Status watched = watch_.begin([this](int member, HostWatch::Loss how) {
    lost(member == HostWatch::center ? 0 : member, how);
  });
  if (!watched.ok())
    tell(fmt::format("tombolo: rank {}: {}: if a host is lost, only the host MPI notices\n", rank_,
                     watched.message()));
}

void HostLosses::learn_places(MPI_Comm comm) {
  int size = 0;
  TOMBOLO_HOST(Comm_size)(comm, &size);
  Place mine{.boot = host::this_host().boot, .process = getpid()};
  gethostname(mine.host.data(), mine.host.size() - 1);
  places_.resize(static_cast<std::size_t>(size));
  TOMBOLO_HOST(Allgather)
  (&mine, sizeof mine, MPI_BYTE, places_.data(), sizeof mine, MPI_BYTE, comm);
}

void HostLosses::connect(MPI_Comm comm, const std::vector<int>& elsewhere) {
  const bool is_elsewhere = std::ranges::find(elsewhere, rank_) != elsewhere.end();
  HostWatch::Invitation invitation;
  if (rank_ == 0 && !watch_.invite(invitation).ok()) invitation = {};  // no process reaches port 0
  from_first(comm, &invitation);
  const char mine = is_elsewhere && watch_.join(invitation, rank_).ok() ? 1 : 0;
  std::vector<char> joined(places_.size());
  MPI_Request all_have_tried = MPI_REQUEST_NULL;
  TOMBOLO_HOST(Iallgather)
  (&mine, 1, MPI_BYTE, joined.data(), 1, MPI_BYTE, comm, &all_have_tried);
  for (int done = 0; rank_ == 0 && done == 0;) {
    watch_.serve(milliseconds(2));
    TOMBOLO_HOST(Test)(&all_have_tried, &done, MPI_STATUS_IGNORE);
  }
  TOMBOLO_HOST(Wait)(&all_have_tried, MPI_STATUS_IGNORE);
  std::vector<char> taken(places_.size());
  if (rank_ == 0) {
    std::vector<int> members;
    for (const int rank : elsewhere)
      if (joined[static_cast<std::size_t>(rank)] != 0) members.push_back(rank);
    for (const int rank : watch_.take(members)) taken[static_cast<std::size_t>(rank)] = 1;
    warn(elsewhere, taken);
  }
  from_first(comm, taken.data(), taken.size());
  if (taken[static_cast<std::size_t>(rank_)] == 0 && rank_ != 0) watch_.leave();
}

// HLS3
void HostLosses::warn(const std::vector<int>& elsewhere, const std::vector<char>& taken) const {
  const auto missed = std::ranges::find_if(
      elsewhere, [&](int rank) { return taken[static_cast<std::size_t>(rank)] == 0; });
  if (missed == elsewhere.end()) return;
  tell(fmt::format(
      "tombolo: rank 0: no TCP connection from host {} to host {}: if a host is lost, only the "
      "host MPI notices\n",
      places_[static_cast<std::size_t>(*missed)].host.data(), places_[0].host.data()));
}

void HostLosses::lost(int rank, HostWatch::Loss how) const {
  const Place& place = places_[static_cast<std::size_t>(rank)];
  const Place& here = places_[static_cast<std::size_t>(rank_)];
  const auto first =
      std::ranges::find_if(places_, [&](const Place& other) { return other.is_on_host_of(here); });
  if (how == HostWatch::Loss::end) {
    // The launcher sees more of it, and ends this process.
    std::this_thread::sleep_for(milliseconds(2000));
    tell(fmt::format("tombolo: rank {}: rank {} (process {} on host {}) of the program has ended\n",
                     rank_, rank, place.process, place.host.data()));
  } else {
    if (first != places_.begin() + rank_) std::this_thread::sleep_for(milliseconds(300));
    tell(
        fmt::format("tombolo: rank {}: host {}, where rank {} (process {}) of the program runs, "
                    "does not answer any more\n",
                    rank_, place.host.data(), rank, place.process));
  }
  _exit(1);
}

}  // namespace tombolo::dsm
