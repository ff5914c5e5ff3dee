// SPDX-License-Identifier: Apache-2.0
#include "mpi/processes/members.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "host/mpi/host.h"
#include "host/processes/process_mark.h"
#include "mpi/processes/job.h"
#include "mpi/processes/key_holders.h"
#include "runtime/processes/processes_here.h"

namespace tombolo::mpi {
namespace {

std::string mark_of(const runtime::WorldName& world, int rank) {
  return fmt::format("{} rank {}", world.name, rank);
}

struct Known {
  MPI_Group group;
  Company company;
};

// Never destroyed: windows may be made while the destructors of a program's static objects run.
struct Members {
  std::mutex mutex;
  runtime::WorldName world;
  host::ProcessMark mark;
  host::MarkLookup marks;  // from the start: without it this process has no mark either
  std::vector<Known> groups;
  std::optional<std::vector<int>> key_holders;  // of a world over several hosts, if they are told
  bool has_key = false;
  bool by_session = false;  // it was announced by one
  bool announced = false;
  bool has_world = false;
  bool looked = false;
  int key = MPI_KEYVAL_INVALID;
};
Members& members() {
  static auto& all = *new Members;
  return all;
}

// Values of the attribute: addresses of these.
std::array<Company, 4> values{Company::without, Company::assumed, Company::called, Company::known};

int copied_to_duplicates(MPI_Comm, int, void*, void* value, void* copy, int* copied) {
  *static_cast<void**>(copy) = value;
  *copied = 1;
  return MPI_SUCCESS;
}
int not_destroyed(MPI_Comm, int, void*, void*) { return MPI_SUCCESS; }

// Not where the launcher does not name the world, or where some are on other hosts.
bool marks_are_seen(const Members& all, int size) {
  return !all.world.name.empty() && all.world.here == size;
}

std::vector<int> marked_ranks(const Members& all, int size) {
  std::vector<int> ranks;
  for (int rank = 0; rank < size; ++rank)
    if (all.marks.ok() && all.marks.is_taken(mark_of(all.world, rank))) ranks.push_back(rank);
  return ranks;
}

// The ranks of the world that have Tombolo; nothing where that is not told.
std::optional<std::vector<int>> ranks_with_tombolo(const Members& all, int size) {
  if (marks_are_seen(all, size)) return marked_ranks(all, size);
  return all.key_holders;
}

std::vector<int> all_ranks(int size) {
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

void look_at_world(Members& all) {
  if (all.looked) return;
  all.looked = true;
  // The MPI was initialized by another way than through this library. The others find no mark of
  // this process, and it must find none either.
  if (!all.announced) {
    all.world.name = "not announced";
    all.world.here = static_cast<int>(runtime::processes_here());
  }
  int size = 0;
  MPI_Group world = MPI_GROUP_NULL;
  MPI_Group marked = MPI_GROUP_NULL;
  host().Comm_size(MPI_COMM_WORLD, &size);
  if (host().Comm_group(MPI_COMM_WORLD, &world) != MPI_SUCCESS) return;
  const auto with_tombolo = ranks_with_tombolo(all, size);
  const std::vector<int> ranks = with_tombolo ? *with_tombolo : all_ranks(size);
  if (host().Group_incl(world, static_cast<int>(ranks.size()), ranks.data(), &marked) ==
      MPI_SUCCESS)
    all.groups.push_back({marked, with_tombolo ? Company::known : Company::assumed});
  host().Group_free(&world);
}

// By ranks: MPICH makes no difference of groups of which one is a session's.
bool is_part_of(MPI_Group part, MPI_Group whole) {
  int size = 0;
  if (host().Group_size(part, &size) != MPI_SUCCESS) return false;
  const std::vector<int> ranks = all_ranks(size);
  std::vector<int> there(ranks.size(), MPI_UNDEFINED);
  return host().Group_translate_ranks(part, size, ranks.data(), whole, there.data()) ==
             MPI_SUCCESS &&
         std::find(there.begin(), there.end(), MPI_UNDEFINED) == there.end();
}

Company most_of_groups(Members& all, MPI_Comm comm) {
  look_at_world(all);
  MPI_Group group = MPI_GROUP_NULL;
  if (host().Comm_group(comm, &group) != MPI_SUCCESS) return Company::without;
  Company most = Company::without;
  for (const Known& whole : all.groups)
    if (whole.company > most && is_part_of(group, whole.group)) most = whole.company;
  host().Group_free(&group);
  return most;
}

}  // namespace

void announce_process(bool by_session) {
  Members& all = members();
  const std::lock_guard guard(all.mutex);
  if (std::exchange(all.announced, true)) return;
  all.by_session = by_session;
  all.world = runtime::world_name();
  if (!all.world.name.empty() && all.marks.ok())
    (void)all.mark.take(mark_of(all.world, all.world.rank));
  // The world is on several hosts.
  if (all.world.size > all.world.here) all.has_key = put_key(all.world, by_session);
}

void note_world() {
  Members& all = members();
  const std::lock_guard guard(all.mutex);
  all.has_world = true;
  int size = 0;
  // Under the launcher of another MPI each process is a world of its own.
  if (all.has_key && host().Comm_size(MPI_COMM_WORLD, &size) == MPI_SUCCESS &&
      size == all.world.size)
    all.key_holders = key_holders(all.world, all.by_session);
}

const runtime::WorldName& own_world() { return members().world; }

namespace {

// The answer to an earlier question, about this communicator or the one that it is a duplicate of.
std::optional<Company> company_noted(Members& all, MPI_Comm comm) {
  if (all.key == MPI_KEYVAL_INVALID)
    host().Comm_create_keyval(copied_to_duplicates, not_destroyed, &all.key, nullptr);
  void* value = nullptr;
  int found = 0;
  if (all.key == MPI_KEYVAL_INVALID ||
      host().Comm_get_attr(comm, all.key, static_cast<void*>(&value), &found) != MPI_SUCCESS ||
      found == 0)
    return {};
  return *static_cast<const Company*>(value);
}

void note(const Members& all, MPI_Comm comm, Company company) {
  if (all.key != MPI_KEYVAL_INVALID)
    host().Comm_set_attr(comm, all.key, &values.at(static_cast<std::size_t>(company)));
}

}  // namespace

Company company_of(MPI_Comm comm) {
  Members& all = members();
  const std::lock_guard guard(all.mutex);
  if (const auto noted = company_noted(all, comm)) return *noted;
  // Open MPI says that MPI is initialized where a session is. Another process of the communicator
  // may have called MPI_Init, and so know the company, and call no roll.
  if (!job().has_world() || (all.announced && !all.has_world)) return Company::called;
  const Company company = most_of_groups(all, comm);
  note(all, comm, company);
  return company;
}

void note_all_have_answered(MPI_Comm comm) {
  Members& all = members();
  const std::lock_guard guard(all.mutex);
  note(all, comm, Company::called);
}

void note_all_have_tombolo(MPI_Comm inter) {
  Members& all = members();
  const std::lock_guard guard(all.mutex);
  MPI_Group local = MPI_GROUP_NULL;
  MPI_Group remote = MPI_GROUP_NULL;
  MPI_Group both = MPI_GROUP_NULL;
  if (host().Comm_group(inter, &local) != MPI_SUCCESS) return;
  if (host().Comm_remote_group(inter, &remote) == MPI_SUCCESS) {
    if (host().Group_union(local, remote, &both) == MPI_SUCCESS)
      all.groups.push_back({both, Company::known});
    host().Group_free(&remote);
  }
  host().Group_free(&local);
}

void forget_members() {
  Members& all = members();
  const std::lock_guard guard(all.mutex);
  for (Known& known : all.groups) host().Group_free(&known.group);
  all.groups.clear();
}

}  // namespace tombolo::mpi
