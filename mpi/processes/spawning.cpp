// SPDX-License-Identifier: Apache-2.0
#include "mpi/processes/spawning.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/option_table.h"
#include "base/options.h"
#include "host/mpi/host.h"
#include "host/processes/process_mark.h"
#include "mpi/processes/job.h"
#include "mpi/processes/members.h"

namespace tombolo::mpi {
namespace {

constexpr int tag = 0x7b1;  // no other message can be there yet
constexpr Option preload{.variable = "LD_PRELOAD"};
constexpr Option offer_of_parents{.variable = "TOMBOLO_SPAWNED_BY"};  // the root's mark

// Of MPICH's launcher, which gives children nothing that names their parents: a name for their
// number. One such spawn at a time has it.
std::string offer_by_number(const std::string& launcher, int processes) {
  return fmt::format("spawn {} {}", launcher, processes);
}
std::string answer_to(const std::string& offer) { return offer + " child"; }
// Tells the first child, which may name no MPI_ANY_SOURCE: MPICH 5 may lose such a message of an
// intercommunicator.
std::string root_of(const std::string& offer, int root) {
  return fmt::format("{} root {}", offer, root);
}

// --- The children's environment -----------------------------------------------------------------

constexpr const char* old_key = "env";  // Open MPI 5 takes it with a warning

// Open MPI's info key for it; null where the launcher hands its environment on by itself.
const char* environment_key() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING + 1> text{};
  int length = 0;
  host().Get_library_version(text.data(), &length);
  const std::string_view version(text.data());
  constexpr std::string_view name = "Open MPI v";
  if (!version.starts_with(name)) return nullptr;
  return std::atoi(text.data() + name.size()) >= 5 ? "PMIX_ENVAR" : old_key;
}

// The program's own lines come first, and a line of its own for LD_PRELOAD holds.
std::string lines_for(const std::string& programs, const std::string& offer) {
  std::string lines = programs;
  std::string left_out;
  // Whether there was room.
  const auto add = [&](std::string_view variable, const std::string& value) {
    const std::string line = fmt::format("{}{}={}", lines.empty() ? "" : "\n", variable, value);
    if (value.empty() || value.find('\n') != std::string::npos) return true;
    const bool room = lines.size() + line.size() < MPI_MAX_INFO_VAL;
    if (room) lines += line;
    return room;
  };
  const bool own_preload = ("\n" + programs).find("\nLD_PRELOAD=") != std::string::npos;
  if (!((own_preload || add(preload.variable, text_of(preload))) &&
        add(offer_of_parents.variable, offer)))
    job().reports().own_once(fmt::format(
        "MPI_Comm_spawn: windows with the children become the MPI's, since the {} characters of "
        "environment that Open MPI takes for them do not hold LD_PRELOAD and the name of their "
        "parents; a shorter LD_PRELOAD helps",
        MPI_MAX_INFO_VAL - 1));
  for (const Option* option : options::all)
    if (option->reader == OptionReader::library && !option->variable.empty() &&
        !add(option->variable, text_of(*option)))
      left_out += " " + std::string(option->variable);
  if (!left_out.empty())
    job().reports().own_once(fmt::format(
        "MPI_Comm_spawn: the children do not get{}, since Open MPI takes {} characters of "
        "environment for them; give them to the launcher's own environment",
        left_out, MPI_MAX_INFO_VAL - 1));
  return lines;
}

// The infos of a spawn, each with the environment.
class Infos {
 public:
  Infos(std::span<const MPI_Info> given, const std::string& offer)
      : infos_(given.begin(), given.end()) {
    const char* const key = environment_key();
    if (key == nullptr) return;
    for (MPI_Info& info : infos_) {
      MPI_Info made = MPI_INFO_NULL;
      const bool none = info == MPI_INFO_NULL;
      if ((none ? host().Info_create(&made) : host().Info_dup(info, &made)) != MPI_SUCCESS)
        continue;
      std::array<char, MPI_MAX_INFO_VAL + 1> programs{};
      int found = 0;
      host().Info_get(made, key, MPI_MAX_INFO_VAL, programs.data(), &found);
      if (found == 0) {
        host().Info_get(made, old_key, MPI_MAX_INFO_VAL, programs.data(), &found);
        if (found != 0) host().Info_delete(made, old_key);
      }
      host().Info_set(made, key, lines_for(found != 0 ? programs.data() : "", offer).c_str());
      info = made;
      made_.push_back(made);
    }
  }
  ~Infos() {
    for (MPI_Info& info : made_) host().Info_free(&info);
  }
  Infos(const Infos&) = delete;
  Infos& operator=(const Infos&) = delete;

  const MPI_Info* get() const { return infos_.data(); }

 private:
  std::vector<MPI_Info> infos_;
  std::vector<MPI_Info> made_;
};

// --- The parents --------------------------------------------------------------------------------

std::string random_offer() {
  std::uint64_t random = 0;
  if (getrandom(&random, sizeof random, 0) != sizeof random) return {};
  return fmt::format("{:016x}", random);
}

// The mark of the parents' root while children start.
class Offer {
 public:
  Offer(std::span<const int> processes, int root) {
    const std::string& launcher = own_world().launcher;
    if (environment_key() != nullptr)
      name_ = random_offer();
    else if (!launcher.empty() && own_world().here == own_world().size &&
             company_of(MPI_COMM_WORLD) == Company::known)
      name_ = offer_by_number(launcher, sum(processes));
    if (name_.empty() || !marks_.ok()) return;
    // Another spawn of as many children has it until they have started: all that take part in that
    // one are there already. No limit ends the wait: the children could not tell, without an offer
    // of their own, that the other one's is not for them.
    const auto start = std::chrono::steady_clock::now();
    while (mark_.take(name_) == host::Taken::by_another) {
      usleep(1000);
      if (std::chrono::steady_clock::now() - start > std::chrono::seconds(10))
        job().reports().own_once(
            "MPI_Comm_spawn: waits for another spawn of as many children under this mpiexec, whose "
            "children have not all called MPI_Init yet");
    }
    if (mark_.held()) (void)root_.take(root_of(name_, root));
  }

  std::string name() const { return root_.held() ? name_ : ""; }
  // With all children connected: whether all of them, and so all on both sides, have Tombolo.
  bool accepted(MPI_Comm inter) const {
    if (!root_.held() || !marks_.is_taken(answer_to(name_))) return false;
    int all = 0;
    return host().Send(nullptr, 0, MPI_INT, 0, tag, inter) == MPI_SUCCESS &&
           host().Recv(&all, 1, MPI_INT, 0, tag, inter, MPI_STATUS_IGNORE) == MPI_SUCCESS &&
           all != 0;
  }

 private:
  static int sum(std::span<const int> processes) {
    int all = 0;
    for (const int each : processes) all += each;
    return all;
  }

  std::string name_;
  host::MarkLookup marks_;  // in front of the marks: without it, none is taken
  host::ProcessMark mark_;
  host::ProcessMark root_;  // taken behind mark_ and dropped in front of it: none is stale
};

int spawn_with_tombolo(const Spawning& s, bool is_root,
                       const std::function<int(const MPI_Info*)>& call) {
  int met = 0;
  int result = MPI_SUCCESS;
  // None waits for the offer's name while another of this spawn is in another one.
  host().Barrier(s.comm);
  if (is_root) {
    const Offer offer(s.processes, s.root);
    const Infos infos(s.infos, offer.name());
    result = call(infos.get());
    met = result == MPI_SUCCESS && *s.inter != MPI_COMM_NULL && offer.accepted(*s.inter) ? 1 : 0;
    host().Bcast(&met, 1, MPI_INT, s.root, s.comm);
  } else {
    result = call(s.infos.data());
    host().Bcast(&met, 1, MPI_INT, s.root, s.comm);
  }
  if (met != 0 && result == MPI_SUCCESS) note_all_have_tombolo(*s.inter);
  return result;
}

}  // namespace

int spawn(const Spawning& s, const std::function<int(const MPI_Info*)>& call) {
  need_host();
  int rank = 0;
  int inter = 0;
  int size = 0;
  // Wrong arguments get the host's own error.
  if (s.comm == MPI_COMM_NULL || s.inter == nullptr ||
      host().Comm_test_inter(s.comm, &inter) != MPI_SUCCESS || inter != 0 ||
      host().Comm_rank(s.comm, &rank) != MPI_SUCCESS ||
      host().Comm_size(s.comm, &size) != MPI_SUCCESS || s.root < 0 || s.root >= size)
    return call(s.infos.data());
  const bool is_root = rank == s.root;
  // A program may make no window, so that an assumption is not enough to wait for the others.
  if (company_of(s.comm) == Company::known) return spawn_with_tombolo(s, is_root, call);
  if (!is_root) return call(s.infos.data());
  return call(Infos(s.infos, "").get());
}

// --- The children -------------------------------------------------------------------------------

namespace {

struct Child {
  std::string offer;
  host::MarkLookup marks;  // in front of the answer: without it, there is none
  host::ProcessMark answer;
};

// The rank of the parents' root; -1 if it offers nothing.
int root_of_parents(MPI_Comm parents, const Child& c) {
  int size = 0;
  if (!c.answer.held() || !c.marks.is_taken(c.offer) ||
      host().Comm_remote_size(parents, &size) != MPI_SUCCESS)
    return -1;
  for (int root = 0; root < size; ++root)
    if (c.marks.is_taken(root_of(c.offer, root))) return root;
  return -1;
}

// At the first child, whether all parents have Tombolo: they are told of the children.
bool parents_answer(Child& c, MPI_Comm parents, bool all_children) {
  const int root = root_of_parents(parents, c);
  const int all = all_children ? 1 : 0;
  if (root < 0 ||
      host().Recv(nullptr, 0, MPI_INT, root, tag, parents, MPI_STATUS_IGNORE) != MPI_SUCCESS)
    return false;
  c.answer.drop();  // before the next spawn can look for a mark of this name
  return host().Send(&all, 1, MPI_INT, root, tag, parents) == MPI_SUCCESS;
}

void prepare_for_parents(Child& c) {
  const runtime::WorldName& world = own_world();
  if (world.rank != 0 || !c.marks.ok()) return;
  c.offer = text_of(offer_of_parents);
  if (c.offer.empty() && !world.launcher.empty() && world.spawned > 0)
    c.offer = offer_by_number(world.launcher, world.spawned);
  if (!c.offer.empty()) (void)c.answer.take(answer_to(c.offer));
}

void meet_parents(Child& c) {
  MPI_Comm parents = MPI_COMM_NULL;
  int rank = 0;
  if (host().Comm_get_parent(&parents) == MPI_SUCCESS && parents != MPI_COMM_NULL) {
    const bool all_children = company_of(MPI_COMM_WORLD) == Company::known;
    host().Comm_rank(MPI_COMM_WORLD, &rank);
    int met = rank == 0 && parents_answer(c, parents, all_children) ? 1 : 0;
    if (all_children) {
      host().Bcast(&met, 1, MPI_INT, 0, MPI_COMM_WORLD);
      if (met != 0) note_all_have_tombolo(parents);
    }
  }
}

}  // namespace

int initialize(const std::function<int()>& call) {
  announce_process(false);
  Child child;
  prepare_for_parents(child);
  const int result = call();
  if (result != MPI_SUCCESS || !check_host().ok()) return result;
  note_world();
  meet_parents(child);
  return result;
}

}  // namespace tombolo::mpi
