// SPDX-License-Identifier: Apache-2.0
#include "mpi/windows/create.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "host/images/own_memory.h"
#include "host/memory/foreign_memory.h"
#include "host/mpi/host.h"
#include "host/processes/taken_output.h"
#include "mpi/processes/job.h"
#include "mpi/processes/members.h"
#include "mpi/processes/roll_call.h"
#include "mpi/windows/findings.h"
#include "mpi/windows/mpi_exchange.h"
#include "mpi/windows/mpi_window.h"
#include "runtime/collective/collective.h"
#include "runtime/findings/call_sites.h"

namespace tombolo::mpi {
namespace {

using runtime::Agreed;
using runtime::Regions;

std::string info_value(MPI_Info info, const char* key) {
  if (info == MPI_INFO_NULL) return {};
  char value[MPI_MAX_INFO_VAL + 1] = {};
  int found = 0;
  if (host().Info_get(info, key, MPI_MAX_INFO_VAL, value, &found) != MPI_SUCCESS || found == 0)
    return {};
  return value;
}

// Regions of windows over the caller's memory and of dynamic windows lie where the program put
// them.
bool has_own_memory(int flavor) {
  return flavor == MPI_WIN_FLAVOR_ALLOCATE || flavor == MPI_WIN_FLAVOR_SHARED;
}

Regions regions_of(int flavor) {
  if (has_own_memory(flavor)) return Regions::shared;
  return flavor == MPI_WIN_FLAVOR_CREATE ? Regions::programs : Regions::anywhere;
}

// The facts that each process tells the others. Trivially copyable.
struct Contribution {
  runtime::Member member;
  PeerRecord record;
  bool misconfigured = false;  // some variable of its environment is not understood
  bool hints = false;          // the program gives some
  bool may_team = false;       // Team::possible()
  bool reaches = true;         // Team::still_reaches()
  std::uint64_t carrier = 0;   // Team::next()
};

// The job's options, changed by the window's info keys.
runtime::Options options_for(MPI_Info info) {
  runtime::Options options = job().options();
  for (const std::string_view key : runtime::info_keys()) {
    const std::string text = info_value(info, std::string(key).c_str());
    if (text.empty()) continue;
    const Status applied = runtime::apply_info(options, key, text);
    if (!applied.ok()) job().reports().once(applied.message());
  }
  return options;
}

// 0 unless it is one that memory can have: a hint that makes no sense is ignored.
std::uint64_t alignment_asked(const runtime::Options& options) {
  constexpr std::uint64_t most = std::uint64_t{1} << 30;
  return std::has_single_bit(options.alignment) && options.alignment <= most ? options.alignment
                                                                             : 0;
}

Contribution describe(const Creation& creation) {
  // Before the others know of this process.
  if (!has_own_memory(creation.flavor)) host::allow_foreign_copies();
  const runtime::Options options = options_for(creation.info);
  runtime::Member member = runtime::this_member(options);
  member.bytes = static_cast<std::uint64_t>(creation.bytes);
  member.address = reinterpret_cast<std::uint64_t>(creation.memory);
  member.threads = job().threads();
  member.remap = options.remap;
  PeerRecord record;
  record.disp_unit = creation.disp_unit;
  record.locks = options.locks;
  record.backoff = options.backoff;
  record.reader_bias = options.reader_bias;
  record.served = !options.disabled;
  record.contiguous = !options.shared_apart;
  record.atomic_bytes = options.atomic_bytes;
  record.alignment = alignment_asked(options);
  return {.member = member,
          .record = record,
          .misconfigured = !options.complaints.empty(),
          .hints = creation.info != MPI_INFO_NULL,
          .may_team = Team::possible()};
}

// By the memory that the communicator's processes share, if they do, else by the host's calls.
class CommunicatorExchange {
 public:
  // `team`: the communicator's.
  CommunicatorExchange(MPI_Comm comm, std::shared_ptr<Team> team)
      : by_calls_(comm),
        team_(std::move(team)),
        by_memory_(team_ != nullptr ? team_->meet(by_calls_) : nullptr) {}

  const std::shared_ptr<Team>& team() const { return team_; }
  bool by_memory() const { return by_memory_ != nullptr; }

  int rank() const { return by_calls_.rank(); }
  int size() const { return by_calls_.size(); }
  Status gather(const void* mine, void* everyones, std::size_t bytes) {
    return by_memory() ? by_memory_->gather(mine, everyones, bytes)
                       : by_calls_.gather(mine, everyones, bytes);
  }
  Status broadcast(void* data, std::size_t bytes, int root) {
    return by_memory() ? by_memory_->broadcast(data, bytes, root)
                       : by_calls_.broadcast(data, bytes, root);
  }
  bool all(bool yes) { return by_memory() ? by_memory_->all(yes) : by_calls_.all(yes); }
  Status broken() const { return by_memory() ? by_memory_->broken() : Status{}; }

 private:
  MpiExchange by_calls_;
  std::shared_ptr<Team> team_;
  runtime::MemoryExchange* by_memory_;
};
static_assert(runtime::Exchange<CommunicatorExchange>);

// The host's own calls of the communicator's error handler kept back: of several attempts one may
// succeed, and the handler is to be called once.
class SilentCommunicator {
 public:
  explicit SilentCommunicator(MPI_Comm comm) : comm_(comm) {
    if (host().Comm_get_errhandler(comm_, &handler_) == MPI_SUCCESS)
      host().Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  }
  ~SilentCommunicator() {
    if (handler_ == MPI_ERRHANDLER_NULL) return;
    host().Comm_set_errhandler(comm_, handler_);
    host().Errhandler_free(&handler_);
  }
  SilentCommunicator(const SilentCommunicator&) = delete;
  SilentCommunicator& operator=(const SilentCommunicator&) = delete;

 private:
  MPI_Comm comm_;
  MPI_Errhandler handler_ = MPI_ERRHANDLER_NULL;
};

host::OwnMemory::Moving moving() {
  using Moving = host::OwnMemory::Moving;
  return job().one_thread() ? Moving::yes : Moving::held;
}

class Creator {
 public:
  Creator(const Creation& creation, std::shared_ptr<Team> team)
      : c_(creation), exchange_(creation.comm, std::move(team)), all_(exchange_) {}

  // As create_window(): false if the window is the host's to create.
  bool run(int& result);

 private:
  Status reserve();
  void take_contributions();
  bool agree_on_carrier() const;
  bool can_keep_carrier() const;
  void stop_if_misconfigured();
  bool is_ours();
  bool team_reaches_by_kernel() const;
  bool reachable();
  Agreed make();
  void take_kept();
  Agreed carrier();
  Agreed new_carrier();
  Agreed begin();
  Status attach();
  void finish();
  bool founds_team() const;
  // The status for an error of the host MPI, whose code the program gets.
  Status host_error(int error);
  void drop_carrier();
  const char* reason_for_host() const;
  bool leave_to_host(const Agreed& why, const char* reason);
  int failure(const Status& why);
  bool fail(int error, int& result);

  const Creation& c_;
  CommunicatorExchange exchange_;
  runtime::Collective<CommunicatorExchange> all_;
  std::unique_ptr<MpiWindow> window_;
  std::vector<Contribution> contributions_;
  std::vector<runtime::Member> members_;
  bool has_carrier_ = false;
  int host_error_ = MPI_SUCCESS;
};

// Memory for the window, and for the facts that the processes tell each other before they know
// whether all can go on.
Status Creator::reserve() {
  window_ = std::make_unique<MpiWindow>();
  MpiWindow& w = *window_;
  w.rank = exchange_.rank();
  w.size = exchange_.size();
  w.flavor = c_.flavor;
  const auto n = static_cast<std::size_t>(w.size);
  w.peers.resize(n);
  members_.resize(n);
  contributions_.resize(n);
  if (exchange_.team() != nullptr) exchange_.team()->prepare();
  return {};
}

void Creator::take_contributions() {
  MpiWindow& w = *window_;
  Contribution mine = describe(c_);
  mine.record.attached = w.attached.published();
  if (exchange_.by_memory()) mine.carrier = exchange_.team()->next();
  if (team_reaches_by_kernel() && !has_own_memory(c_.flavor))
    mine.reaches = exchange_.team()->still_reaches();
  all_.gather(mine, std::span(contributions_));
  stop_if_misconfigured();
  for (std::size_t r = 0; r < contributions_.size(); ++r) {
    members_[r] = contributions_[r].member;
    w.peers[r] = contributions_[r].record;
  }
  const runtime::Member first = members_[0];
  const PeerRecord& record = w.peers[0];
  const bool same =
      std::all_of(contributions_.begin(), contributions_.end(), [&](const Contribution& peer) {
        return peer.member.machine == first.machine &&
               peer.member.native_atomics == first.native_atomics &&
               peer.record.locks == record.locks && peer.record.backoff == record.backoff &&
               peer.record.reader_bias == record.reader_bias;
      });
  if (!same)
    job().reports().once(
        "processes of one window ask for different machines or locks; rank 0 decides");
  const auto most = std::max_element(
      w.peers.begin(), w.peers.end(),
      [](const PeerRecord& a, const PeerRecord& b) { return a.alignment < b.alignment; });
  job().learn_processors(members_, members_[static_cast<std::size_t>(w.rank)].host);
  w.memory.emplace(
      runtime::SharedMemory::Request{
          .regions = regions_of(c_.flavor),
          .contiguous = c_.flavor == MPI_WIN_FLAVOR_SHARED && w.peers[0].contiguous,
          .moving = moving(),
          .alignment = most->alignment},
      w.rank, std::move(members_));
}

// Ends the job: on another machine than the one asked for, a check would turn green by a typing
// error. The first process that has one tells it, as a rule that of all.
void Creator::stop_if_misconfigured() {
  const auto first = std::find_if(contributions_.begin(), contributions_.end(),
                                  [](const Contribution& peer) { return peer.misconfigured; });
  if (first == contributions_.end()) return;
  if (window_->rank == static_cast<int>(first - contributions_.begin())) {
    for (const std::string& complaint : job().options().complaints)
      std::fprintf(stderr, "tombolo: %s; the job is ended\n", complaint.c_str());
    host::wait_until_taken(STDERR_FILENO, std::chrono::seconds(2));
  }
  all_.all(true);  // none ends the job before the text is out
  // From another host the text has a way of its own to the launcher, which cannot be watched.
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  host().Abort(c_.comm, 1);
  std::_Exit(1);
}

// All processes decide alike whether the window is ours.
bool Creator::is_ours() {
  MpiWindow& w = *window_;
  std::string why(w.memory->refusal());
  if (std::any_of(w.peers.begin(), w.peers.end(), [](const auto& peer) { return !peer.served; }))
    why = "TOMBOLO_DISABLE";
  if (why.empty() && !reachable())
    why = "the kernel forbids access to the memory of other processes";
  if (!why.empty() && exchange_.broken().ok())
    job().count_forwarded(why, !has_own_memory(c_.flavor));
  return why.empty();
}

bool Creator::team_reaches_by_kernel() const {
  return exchange_.team() != nullptr && exchange_.team()->reaches_by_kernel();
}

// Where the kernel was asked for an earlier window of the communicator, its answer of today comes
// with the contributions: to ask for each window by a step of its own takes longer.
bool Creator::reachable() {
  runtime::SharedMemory& memory = *window_->memory;
  if (team_reaches_by_kernel())
    return !memory.reaches_by_kernel() ||
           std::all_of(contributions_.begin(), contributions_.end(),
                       [](const Contribution& peer) { return peer.reaches; });
  if (!memory.reachable(all_)) return false;
  if (exchange_.team() != nullptr && memory.reaches_by_kernel())
    exchange_.team()->note_reach_by_kernel();
  return true;
}

Status Creator::host_error(int error) {
  if (error == MPI_SUCCESS) return {};
  host_error_ = error;
  return Status::io("the host MPI could not create the window");
}

// All would take the same one of those that the team keeps.
bool Creator::agree_on_carrier() const {
  const std::uint64_t first = contributions_[0].carrier;
  return first != 0 && can_keep_carrier() &&
         std::all_of(contributions_.begin(), contributions_.end(),
                     [first](const Contribution& peer) { return peer.carrier == first; });
}

bool Creator::can_keep_carrier() const {
  return exchange_.by_memory() && std::none_of(contributions_.begin(), contributions_.end(),
                                               [](const Contribution& peer) { return peer.hints; });
}

void Creator::take_kept() {
  if (!agree_on_carrier()) return;
  MpiWindow& w = *window_;
  w.team = exchange_.team();
  Carrier kept = w.team->take();
  w.handle = kept.handle;
  w.group = kept.group;
  w.memory->reuse(std::move(kept.memory));
  has_carrier_ = true;
  job().count_reused();
}

Agreed Creator::carrier() {
  if (has_carrier_) return all_.done();
  return new_carrier();
}

// A window of the host MPI without memory; which kind is cheapest and always there differs. Either
// all processes have it afterwards, or they fail. Where some have it, it cannot be freed: that
// takes all.
Agreed Creator::new_carrier() {
  MPI_Win* win = &window_->handle;
  void* nothing = nullptr;
#if defined(OPEN_MPI)
  const bool allocate_first = true;
#else
  const bool allocate_first = false;
#endif
  int error = MPI_SUCCESS;
  for (const bool allocate : {allocate_first, !allocate_first}) {
    error = allocate ? host().Win_allocate(0, 1, c_.info, c_.comm, &nothing, win)
                     : host().Win_create_dynamic(c_.info, c_.comm, win);
    has_carrier_ = all_.all(error == MPI_SUCCESS);
    if (has_carrier_) return all_.done();
    if (!all_.all(error != MPI_SUCCESS)) break;
  }
  return all_.step({Code::io, "the host MPI of another process could not create the window"},
                   [&] { return host_error(error); });
}

Status Creator::attach() {
  const MpiWindow& w = *window_;
  const PeerRecord& first = w.peers[0];
  windows::EngineOptions options;
  options.locks = first.locks;
  options.backoff = first.backoff;
  options.reader_bias = first.reader_bias;
  options.threads = job().threads();
  options.threads_in_turn = job().threads_in_turn();
  options.atomic_bytes = first.atomic_bytes;
  options.memory_moves_on = w.memory->several_hosts();
  options.program_reads_peers = c_.flavor == MPI_WIN_FLAVOR_SHARED;
  return window_->serve(job().options(), options,
                        job().waiting(static_cast<machine::Home>(w.size)));
}

// With all carriers there: all processes begin to use the window, or none does.
Agreed Creator::begin() {
  MpiWindow& w = *window_;
  const Agreed begun =
      all_.step({Code::io, "another process could not begin to use the window"}, [&] {
        if (w.group == MPI_GROUP_NULL)
          TOMBOLO_TRY(host_error(host().Win_get_group(w.handle, &w.group)));
        if (can_keep_carrier() && w.team == nullptr) {
          exchange_.team()->note_new(w.handle);
          w.team = exchange_.team();
        }
        if (founds_team()) TOMBOLO_TRY(Team::found(c_.comm, w.memory->members()));
        return attach();
      });
  if (!begun.ok() && founds_team()) Team::disband(c_.comm);
  return begun;
}

Agreed Creator::make() {
  take_kept();
  TOMBOLO_AGREE(window_->memory->make(all_, job().options()));
  TOMBOLO_AGREE(carrier());
  return begin();
}

void Creator::finish() {
  MpiWindow& w = *window_;
  if (w.dynamic()) w.views.resize(w.peers.size());
  const runtime::Traits traits = w.memory->served_machine().traits();
  w.sited = traits.names_sites;
  w.tells_losses = traits.tells_losses;
  if (w.sited) w.made_at = runtime::call_site(c_.caller);
  if (w.tells_losses) watch_for_exit();
  w.model = traits.coherent ? MPI_WIN_UNIFIED : MPI_WIN_SEPARATE;
  w.bytes = c_.bytes;
  w.disp_unit = static_cast<int>(c_.disp_unit);
  w.base = MPI_BOTTOM;
  if (c_.flavor == MPI_WIN_FLAVOR_CREATE) w.base = c_.memory;
  if (has_own_memory(c_.flavor)) {
    w.base = c_.bytes == 0 && (c_.flavor == MPI_WIN_FLAVOR_ALLOCATE || !w.peers[0].contiguous)
                 ? nullptr
                 : w.engine().view(static_cast<machine::Home>(w.rank));
    std::memcpy(c_.base_out, &w.base, sizeof w.base);
  }
  *c_.win = w.handle;
  job().count_served();
  register_window(std::move(window_));
}

// A communicator with one window often gets more.
bool Creator::founds_team() const {
  const bool all_may = std::all_of(contributions_.begin(), contributions_.end(),
                                   [](const Contribution& peer) { return peer.may_team; });
  return all_may && exchange_.team() == nullptr && !window_->memory->several_hosts();
}

// The code of an error of the world, which is reported.
int Creator::failure(const Status& why) {
  job().reports().once(fmt::format("{}: {}", c_.call, why.message()));
  return error_code(why, c_.call);
}

// Of a window that is not made. To free it takes all processes: after the death of one the host
// would wait for it.
void Creator::drop_carrier() {
  MpiWindow& w = *window_;
  if (w.team != nullptr) w.team->forget(w.handle);
  if (w.group != MPI_GROUP_NULL) host().Group_free(&w.group);
  if (has_carrier_ && exchange_.broken().ok()) host().Win_free(&w.handle);
}

// Why a window that could not be made is the host's to make; null: it is not. The processes turn
// out to have no memory in common: the hosts no pool, or not enough of one; or they are kept apart.
const char* Creator::reason_for_host() const {
  const runtime::SharedMemory& memory = *window_->memory;
  if (!exchange_.broken().ok()) return nullptr;
  if (memory.kept_apart()) return "processes may not open each other's memory";
  return memory.several_hosts() && !memory.made() ? "no room in one pool for several hosts"
                                                  : nullptr;
}

bool Creator::leave_to_host(const Agreed& why, const char* reason) {
  if (why.own()) job().reports().own_once(fmt::format("{}: {}", c_.call, why.status().message()));
  job().count_forwarded(reason, !has_own_memory(c_.flavor));
  return false;
}

bool Creator::fail(int error, int& result) {
  result = error;
  host().Comm_call_errhandler(c_.comm, result);
  return true;
}

bool Creator::run(int& result) {
  const Agreed reserved = all_.step(
      {Code::no_memory, "another process has no memory for the window"}, [&] { return reserve(); });
  if (!reserved.ok()) return fail(failure(reserved.status()), result);
  take_contributions();
  const bool ours = is_ours();
  // The host would wait for the process that has died.
  if (!exchange_.broken().ok()) return fail(failure(exchange_.broken()), result);
  if (!ours) return false;
  const Agreed made = [&] {
    const SilentCommunicator silent(c_.comm);
    return make();
  }();
  MpiWindow& w = *window_;
  if (!made.ok()) {
    drop_carrier();
    if (const char* const reason = reason_for_host(); reason != nullptr)
      return leave_to_host(made, reason);
    return fail(host_error_ != MPI_SUCCESS ? host_error_ : failure(made.status()), result);
  }
  // An engine may start by moving the owner's bytes to memory; no process may look before that.
  if (const Status started = w.engine().barrier(); !started.ok()) {
    // A process has died, so that the carrier, which takes all, cannot be freed.
    host().Group_free(&w.group);
    return fail(failure(started), result);
  }
  result = MPI_SUCCESS;
  finish();
  return true;
}

}  // namespace

bool create_window(const Creation& creation, int& result) {
  need_host();
  // Wrong arguments get the host's own error; so does an intercommunicator.
  if (creation.win == nullptr || creation.bytes < 0 || creation.disp_unit <= 0) return false;
  if (creation.comm == MPI_COMM_NULL) return false;
  if (has_own_memory(creation.flavor) && creation.base_out == nullptr) return false;
  int inter = 0;
  if (host().Comm_test_inter(creation.comm, &inter) != MPI_SUCCESS || inter != 0) return false;
  std::shared_ptr<Team> team = Team::of(creation.comm);
  // One without would wait for the others in the host's creation, and they for it here.
  const Company company = team == nullptr ? company_of(creation.comm) : Company::known;
  if (company == Company::without) {
    job().count_forwarded("processes without Tombolo, or of a program started apart",
                          !has_own_memory(creation.flavor));
    return false;
  }
  if (company == Company::assumed) {
    call_the_roll(creation.comm, creation.call);
    note_all_have_answered(creation.comm);
  }
  return Creator(creation, std::move(team)).run(result);
}

namespace {

// With all processes: the owner's memory gets the bytes that others have put there, and no process
// looks at anything of the window afterwards. The standard's list of calls that bring the private
// copy up to date does not name this one, but after it no call could.
Status end_use(MpiWindow& window) {
  windows::Engine& engine = window.engine();
  engine.close();
  TOMBOLO_TRY(engine.barrier());  // all have closed
  engine.hand_back();
  if (!window.tells_losses) return {};
  TOMBOLO_TRY(engine.barrier());  // all have noted their findings
  note_mistakes(window);
  if (window.rank == 0) tell_findings(window);
  return {};
}

}  // namespace

namespace {

int free_carrier(MpiWindow& window, MPI_Win* win) {
  // Once: the program may call again if a callback refuses.
  if (const std::shared_ptr<Team> team = std::exchange(window.team, nullptr))
    team->forget(window.handle);
  if (window.group != MPI_GROUP_NULL) host().Group_free(&window.group);
  // Attribute callbacks run inside and may still ask about the window.
  const int result = host().Win_free(win);
  if (result == MPI_SUCCESS) unregister_window(&window);
  return result;
}

void keep_carrier(MpiWindow& window) {
  const std::shared_ptr<Team> team = window.team;
  Carrier carrier{window.handle, window.group, window.memory->take_segment()};
  unregister_window(&window);  // with its engine, which uses the memory
  team->keep(std::move(carrier));
}

}  // namespace

int free_window(MPI_Win* win, const void* caller) {
  MpiWindow* const window = find_window(*win);
  if (window->sited) window->engine().set_site(runtime::call_site(caller));
  const Status open = window->engine().closable();
  if (!open.ok()) return raise(*window, open, "MPI_Win_free");
  const Status ended = end_use(*window);
  if (!ended.ok()) return raise(*window, ended, "MPI_Win_free");
  bool keep = false;
  if (window->team != nullptr)
    // The host would wait in its MPI_Win_free for a process that has died since all have closed.
    if (const Status agreed = window->team->agree(window->as_new, keep); !agreed.ok())
      return raise(*window, agreed, "MPI_Win_free");
  if (keep) {
    keep_carrier(*window);
    *win = MPI_WIN_NULL;
  } else if (const int error = free_carrier(*window, win); error != MPI_SUCCESS) {
    return error;
  }
  const Status given_back = host::own_memory().take_error();
  if (!given_back.ok())
    job().reports().own_once(fmt::format(
        "MPI_Win_free: memory of the program stays where other processes have mapped it, with its "
        "contents ({}); TOMBOLO_REMAP=off leaves such memory alone",
        given_back.message()));
  return MPI_SUCCESS;
}

}  // namespace tombolo::mpi
