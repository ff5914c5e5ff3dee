// SPDX-License-Identifier: Apache-2.0
#include "mpi/processes/roll_call.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "host/mpi/host.h"
#include "mpi/processes/job.h"

namespace tombolo::mpi {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds patience{10};
constexpr int most_by_name = 128;  // each of more processes would need a connection to each other

// Their ranks in MPI_COMM_WORLD, by which launchers number processes; as they are, without a world.
std::vector<int> in_world(MPI_Comm comm, const std::vector<int>& ranks) {
  std::vector<int> there(ranks.size(), MPI_UNDEFINED);
  MPI_Group group = MPI_GROUP_NULL;
  MPI_Group world = MPI_GROUP_NULL;
  if (!job().has_world() || host().Comm_group(comm, &group) != MPI_SUCCESS) return ranks;
  if (host().Comm_group(MPI_COMM_WORLD, &world) == MPI_SUCCESS) {
    host().Group_translate_ranks(group, static_cast<int>(ranks.size()), ranks.data(), world,
                                 there.data());
    host().Group_free(&world);
  }
  host().Group_free(&group);
  return std::find(there.begin(), there.end(), MPI_UNDEFINED) == there.end() ? there : ranks;
}

std::string named(std::vector<int> ranks) {
  constexpr std::size_t most = 16;
  const std::size_t more = ranks.size() - std::min(ranks.size(), most);
  ranks.resize(ranks.size() - more);
  return fmt::format("rank{} {}{}", ranks.size() == 1 ? "" : "s", fmt::join(ranks, ", "),
                     more == 0 ? "" : fmt::format(" and {} more", more));
}

class RollCall {
 public:
  RollCall(MPI_Comm comm, const char* call) : comm_(comm), call_(call) {
    host().Comm_rank(comm, &rank_);
    host().Comm_size(comm, &size_);
    begin_without_a_message();
    if (size_ > most_by_name)
      begin_together();
    else
      begin_by_name();
  }

  void wait() {
    const Clock::time_point start = Clock::now();
    for (int looks = 0; !all_are_here(); ++looks) {
      if (!told_ && Clock::now() - start > patience) tell();
      if (looks < 1000)
        sched_yield();
      else
        usleep(1000);
    }
  }

 private:
  // Open MPI creates a window by nonblocking collective calls, too, and tells them apart by their
  // numbers on the communicator: the first one of a process without Tombolo, in which it stays,
  // has the number of this one, which sends nothing and waits for nothing.
  void begin_without_a_message() {
    const auto n = static_cast<std::size_t>(size_);
    const std::vector<int> nothing(n, 0);
    char none[2] = {};
    MPI_Request done = MPI_REQUEST_NULL;
    if (host().Ialltoallv(none, nothing.data(), nothing.data(), MPI_CHAR, none + 1, nothing.data(),
                          nothing.data(), MPI_CHAR, comm_, &done) == MPI_SUCCESS)
      host().Wait(&done, MPI_STATUS_IGNORE);
  }

  void begin_together() {
    answers_.resize(1);
    if (host().Ibarrier(comm_, answers_.data()) != MPI_SUCCESS) answers_.clear();
  }

  // Each rank sends a byte to all: those of one rank come as soon as it has begun.
  void begin_by_name() {
    const auto n = static_cast<std::size_t>(size_);
    bytes_.resize(2 * n);
    counts_.assign(n, 1);
    places_.assign(n, 0);
    answers_.assign(n, MPI_REQUEST_NULL);
    for (int root = 0; root < size_; ++root)
      if (host().Iscatterv(bytes_.data(), counts_.data(), places_.data(), MPI_CHAR,
                           bytes_.data() + n + root, 1, MPI_CHAR, root, comm_,
                           &answers_[static_cast<std::size_t>(root)]) != MPI_SUCCESS)
        return;
  }

  // A request that is done becomes null, of which the next look says the same.
  bool all_are_here() {
    bool all = true;
    for (MPI_Request& answer : answers_) {
      int done = 1;
      if (host().Test(&answer, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return true;
      all &= done != 0;
    }
    return all;
  }

  // The first rank that has come names those that have not.
  void tell() {
    told_ = true;
    std::vector<int> missing;
    for (std::size_t rank = 0; rank < answers_.size(); ++rank)
      if (answers_[rank] != MPI_REQUEST_NULL) missing.push_back(static_cast<int>(rank));
    const bool by_name = size_ <= most_by_name;
    const auto lower =
        std::count_if(missing.begin(), missing.end(), [this](int rank) { return rank < rank_; });
    if (by_name ? lower != rank_ : rank_ != 0) return;
    job().reports().own_once(fmt::format(
        "{}: still waits for {} of {} processes after {} seconds, which may be slow, or have no "
        "Tombolo: then they wait in the MPI's own call, for ever. This launcher does not say which "
        "processes have it: preload the library in all of them, or in none",
        call_, by_name ? named(in_world(comm_, missing)) : "some", size_, patience.count()));
  }

  MPI_Comm comm_;
  const char* call_;
  int rank_ = 0;
  int size_ = 0;
  bool told_ = false;
  std::vector<char> bytes_;  // to send, and behind them to receive
  std::vector<int> counts_;
  std::vector<int> places_;
  std::vector<MPI_Request> answers_;
};

}  // namespace

void call_the_roll(MPI_Comm comm, const char* call) { RollCall(comm, call).wait(); }

}  // namespace tombolo::mpi
