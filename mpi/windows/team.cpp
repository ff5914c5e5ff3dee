// SPDX-License-Identifier: Apache-2.0
#include "mpi/windows/team.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "host/mpi/host.h"
#include "mpi/processes/job.h"

namespace tombolo::mpi {
namespace {

// In the order in which they were founded, which is that of some window of theirs. Never destroyed:
// MPI_Finalize may be called by an exit handler.
std::vector<std::shared_ptr<Team>>& teams() {
  static auto& all = *new std::vector<std::shared_ptr<Team>>;
  return all;
}

// The team belongs to the one communicator, not to its duplicates.
int not_copied(MPI_Comm, int, void*, void*, void*, int* copied) {
  *copied = 0;
  return MPI_SUCCESS;
}

}  // namespace

bool Team::possible() {
  return job().has_world() && !job().threads() && key() != MPI_KEYVAL_INVALID;
}

int Team::key() {
  static const int the_key = [] {
    int made = MPI_KEYVAL_INVALID;
    if (host().Comm_create_keyval(not_copied, at_end_of_communicator, &made, nullptr) !=
        MPI_SUCCESS)
      return int{MPI_KEYVAL_INVALID};
    return made;
  }();
  return the_key;
}

Team::Team(MPI_Comm comm, const std::vector<runtime::Member>& members)
    : comm_(comm), size_(static_cast<int>(members.size())) {
  host().Comm_rank(comm, &rank_);
  for (const runtime::Member& member : members) processes_.push_back(member.process);
  neighbour_ = members[static_cast<std::size_t>(rank_ + 1) % members.size()];
}

bool Team::still_reaches() const {
  const Status reached = runtime::reach(neighbour_);
  return reached.ok() || reached.code() == Code::process_failed;
}

std::shared_ptr<Team> Team::of(MPI_Comm comm) {
  void* value = nullptr;
  int found = 0;
  if (!possible() ||
      host().Comm_get_attr(comm, key(), static_cast<void*>(&value), &found) != MPI_SUCCESS ||
      found == 0)
    return nullptr;
  const auto team = std::find_if(teams().begin(), teams().end(),
                                 [value](const auto& each) { return each.get() == value; });
  return team == teams().end() ? nullptr : *team;
}

Status Team::found(MPI_Comm comm, const std::vector<runtime::Member>& members) {
  teams().push_back(std::make_shared<Team>(comm, members));
  if (host().Comm_set_attr(comm, key(), teams().back().get()) == MPI_SUCCESS) return {};
  teams().pop_back();
  return Status::io("the host MPI keeps no attribute of the communicator");
}

void Team::disband(MPI_Comm comm) {
  if (of(comm) != nullptr) host().Comm_delete_attr(comm, key());
}

void Team::prepare() {
  kept_.reserve(most_kept);
  in_use_.reserve(in_use_.size() + 1);
}

// Called by the host while the communicator is freed, by all of its processes.
int Team::at_end_of_communicator(MPI_Comm, int, void* value, void*) {
  const auto found = std::find_if(teams().begin(), teams().end(),
                                  [value](const auto& each) { return each.get() == value; });
  if (found == teams().end()) return MPI_SUCCESS;
  const std::shared_ptr<Team> team = std::move(*found);
  teams().erase(found);
  team->end();
  return MPI_SUCCESS;
}

void Team::end_all() {
  while (!teams().empty()) {
    const std::shared_ptr<Team> first = teams().front();
    host().Comm_delete_attr(first->comm_, key());
    // The host has not called back.
    if (!teams().empty() && teams().front() == first) teams().erase(teams().begin());
  }
}

// Windows may still be there: for them the exchange stays.
void Team::end() {
  ended_ = true;
  for (Kept& kept : kept_) free(kept);
  kept_.clear();
}

void Team::free(Kept& kept) {
  if (kept.handler != MPI_ERRHANDLER_NULL) host().Errhandler_free(&kept.handler);
  if (kept.carrier.group != MPI_GROUP_NULL) host().Group_free(&kept.carrier.group);
  host().Win_free(&kept.carrier.handle);
}

runtime::Agreed Team::share_memory(runtime::Collective<MpiExchange>& all) {
  TOMBOLO_AGREE(all.step({}, [&]() -> Status {
    if (rank_ != 0) return {};
    return host::Segment::create_anonymous(runtime::MemoryExchange::bytes_for(size_),
                                           "tombolo-team", memory_);
  }));
  host::SegmentName name = memory_.name();
  all.broadcast(name, 0);
  TOMBOLO_AGREE(all.step({}, [&]() -> Status {
    if (rank_ != 0) TOMBOLO_TRY(host::Segment::attach(name, memory_));
    TOMBOLO_TRY(progress_.open());
    watch_.emplace(rank_, processes_, &progress_);
    return {};
  }));
  memory_.seal();
  return all.done();
}

// Not with the first window: many programs make one for each communicator. A host without memory
// for it is told of by the window that is made next.
runtime::MemoryExchange* Team::meet(MpiExchange& slow) {
  if (!tried_) {
    tried_ = true;
    runtime::Collective all(slow);
    if (share_memory(all).ok())
      exchange_.emplace(memory_.data(), rank_, size_,
                        job().waiting(static_cast<machine::Home>(size_)), &*watch_);
  }
  return exchange_ ? &*exchange_ : nullptr;
}

Carrier Team::take() {
  Kept kept = std::move(kept_.back());
  kept_.pop_back();
  Carrier carrier = std::move(kept.carrier);
  kept.carrier.handle = carrier.handle;
  in_use_.push_back(std::move(kept));
  return carrier;
}

void Team::note_new(MPI_Win handle) {
  Kept kept;
  kept.carrier.handle = handle;
  std::array<char, MPI_MAX_OBJECT_NAME + 1> name{};
  int length = 0;
  if (host().Win_get_name(handle, name.data(), &length) == MPI_SUCCESS) kept.name = name.data();
  host().Win_get_errhandler(handle, &kept.handler);
  in_use_.push_back(std::move(kept));
}

Status Team::agree(bool as_new, bool& keep) {
  keep = exchange_ && exchange_->all(as_new && !ended_ && kept_.size() < most_kept);
  return exchange_ ? exchange_->broken() : Status{};
}

Team::Kept Team::out_of_use(MPI_Win handle) {
  const auto used = std::find_if(in_use_.begin(), in_use_.end(), [handle](const Kept& each) {
    return each.carrier.handle == handle;
  });
  TOMBOLO_CHECK(used != in_use_.end(), "a team gets a carrier that is not of it");
  Kept kept = std::move(*used);
  in_use_.erase(used);
  return kept;
}

void Team::forget(MPI_Win handle) {
  Kept freed = out_of_use(handle);
  if (freed.handler != MPI_ERRHANDLER_NULL) host().Errhandler_free(&freed.handler);
}

void Team::keep(Carrier carrier) {
  Kept kept = out_of_use(carrier.handle);
  kept.carrier = std::move(carrier);
  kept.number = ++times_kept_;
  if (kept.handler != MPI_ERRHANDLER_NULL)
    host().Win_set_errhandler(kept.carrier.handle, kept.handler);
  host().Win_set_name(kept.carrier.handle, kept.name.c_str());
  kept_.push_back(std::move(kept));
}

}  // namespace tombolo::mpi
