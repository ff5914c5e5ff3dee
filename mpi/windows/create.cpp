// SPDX-License-Identifier: Apache-2.0
#include "mpi/windows/create.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "host/memory/own_memory.h"
#include "host/mpi/host.h"
#include "mpi/windows/job.h"
#include "mpi/windows/mpi_exchange.h"
#include "mpi/windows/mpi_window.h"
#include "runtime/collective/collective.h"

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

Contribution describe(const Creation& creation) {
  const runtime::Options options = options_for(creation.info);
  runtime::Member member = runtime::this_member(options);
  member.bytes = static_cast<std::uint64_t>(creation.bytes);
  member.address = reinterpret_cast<std::uint64_t>(creation.memory);
  member.threads = job().threads();
  // Another thread may store to the memory while it is replaced. Without MPI's word that there is
  // none, the user's is needed, and neither helps where several threads call us.
  member.remap = options.remap && !job().threads() && (options.remap_asked || job().one_thread());
  PeerRecord record;
  record.disp_unit = creation.disp_unit;
  record.locks = options.locks;
  record.backoff = options.backoff;
  record.reader_bias = options.reader_bias;
  record.served = options.served;
  record.contiguous = !options.shared_apart;
  record.atomic_bytes = options.atomic_bytes;
  return {member, record};
}

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

class Creator {
 public:
  explicit Creator(const Creation& creation)
      : c_(creation), exchange_(creation.comm), all_(exchange_) {}

  // As create_window(): false if the window is the host's to create.
  bool run(int& result);

 private:
  Status reserve();
  void take_contributions();
  bool is_ours();
  Agreed make();
  Agreed carrier();
  Agreed begin();
  Status attach();
  void finish();
  // The status for an error of the host MPI, whose code the program gets.
  Status host_error(int error);
  bool leave_to_host(const Agreed& why);
  int failure(const Status& why);
  bool fail(int error, int& result);

  const Creation& c_;
  MpiExchange exchange_;
  runtime::Collective<MpiExchange> all_;
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
  return {};
}

void Creator::take_contributions() {
  MpiWindow& w = *window_;
  Contribution mine = describe(c_);
  mine.record.attached = w.attached.published();
  all_.gather(mine, std::span(contributions_));
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
  w.memory.emplace(
      runtime::SharedMemory::Request{
          .regions = regions_of(c_.flavor),
          .contiguous = c_.flavor == MPI_WIN_FLAVOR_SHARED && w.peers[0].contiguous,
          // The host MPI's windows over the same memory may be in use meanwhile.
          .may_replace = !job().forwarded_created()},
      w.rank, std::move(members_));
}

// All processes decide alike whether the window is ours.
bool Creator::is_ours() {
  MpiWindow& w = *window_;
  std::string why(w.memory->refusal());
  if (std::any_of(w.peers.begin(), w.peers.end(), [](const auto& peer) { return !peer.served; }))
    why = "TOMBOLO_DISABLE";
  if (why.empty() && !w.memory->reachable(all_))
    why = "the kernel forbids access to the memory of other processes";
  if (!why.empty()) job().count_forwarded(why, !has_own_memory(c_.flavor));
  return why.empty();
}

Status Creator::host_error(int error) {
  if (error == MPI_SUCCESS) return {};
  host_error_ = error;
  return Status::io("the host MPI could not create the window");
}

// A window of the host MPI without memory; which kind is cheapest and always there differs. Either
// all processes have it afterwards, or they fail. Where some have it, it cannot be freed: that
// takes all.
Agreed Creator::carrier() {
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
  options.atomic_bytes = first.atomic_bytes;
  options.memory_moves_on = w.memory->several_hosts();
  options.program_reads_peers = c_.flavor == MPI_WIN_FLAVOR_SHARED;
  return window_->serve(job().options(), options, job().waiting(static_cast<machine::Home>(w.size)),
                        host_progress());
}

// With all carriers there: all processes begin to use the window, or none does.
Agreed Creator::begin() {
  return all_.step({Code::io, "another process could not begin to use the window"}, [&] {
    TOMBOLO_TRY(host_error(host().Win_get_group(window_->handle, &window_->group)));
    return attach();
  });
}

Agreed Creator::make() {
  TOMBOLO_AGREE(window_->memory->make(all_, job().options()));
  TOMBOLO_AGREE(carrier());
  return begin();
}

void Creator::finish() {
  MpiWindow& w = *window_;
  if (w.dynamic()) w.views.resize(w.peers.size());
  const runtime::Traits traits = w.memory->served_machine().traits();
  w.sited = traits.names_sites;
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

// The code of an error of the world, which is reported.
int Creator::failure(const Status& why) {
  job().reports().once(fmt::format("{}: {}", c_.call, why.message()));
  return error_code(why, c_.call);
}

// The hosts turn out to have no pool in common, or not enough of one.
bool Creator::leave_to_host(const Agreed& why) {
  if (why.own()) job().reports().own_once(fmt::format("{}: {}", c_.call, why.status().message()));
  job().count_forwarded("no room in one pool for several hosts", !has_own_memory(c_.flavor));
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
  if (!is_ours()) return false;
  const Agreed made = [&] {
    const SilentCommunicator silent(c_.comm);
    return make();
  }();
  MpiWindow& w = *window_;
  if (!made.ok()) {
    if (w.memory->several_hosts() && !w.memory->made()) return leave_to_host(made);
    if (w.group != MPI_GROUP_NULL) host().Group_free(&w.group);
    if (has_carrier_) host().Win_free(&w.handle);
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
  // Handles of another kind would be mistaken, by us and then by the host.
  static const Status fits = check_host();
  if (!fits.ok()) {
    std::fprintf(stderr, "tombolo: %s\n", fits.message().c_str());
    std::_Exit(1);
  }
  // Wrong arguments get the host's own error; so does an intercommunicator.
  if (creation.win == nullptr || creation.bytes < 0 || creation.disp_unit <= 0) return false;
  if (creation.comm == MPI_COMM_NULL) return false;
  if (has_own_memory(creation.flavor) && creation.base_out == nullptr) return false;
  int inter = 0;
  if (host().Comm_test_inter(creation.comm, &inter) != MPI_SUCCESS || inter != 0) return false;
  return Creator(creation).run(result);
}

int free_window(MPI_Win* win) {
  MpiWindow* const window = find_window(*win);
  const Status open = window->engine().closable();
  if (!open.ok()) return raise(*window, open, "MPI_Win_free");
  // The owner's memory is not brought up to date here, nor looked at later than now: the standard
  // does not ask for it, and programs free the memory of a window before the window.
  const std::string findings = window->engine().close();
  if (!findings.empty())
    std::fprintf(stderr, "tombolo: rank %d, %s: %s", job().world_rank(), "MPI_Win_free",
                 findings.c_str());
  // After the last access of all processes, and before anything of the window goes away.
  const Status arrived = window->engine().barrier();
  if (!arrived.ok()) return raise(*window, arrived, "MPI_Win_free");
  if (window->group != MPI_GROUP_NULL) host().Group_free(&window->group);
  // Attribute callbacks run inside and may still ask about the window.
  const int result = host().Win_free(win);
  if (result != MPI_SUCCESS) return result;
  unregister_window(window);
  const Status given_back = host::own_memory().take_error();
  if (!given_back.ok())
    job().reports().own_once(fmt::format(
        "MPI_Win_free: memory of the program stays shared, with its contents, so that forked "
        "children see each other's stores ({}); TOMBOLO_REMAP=0 leaves such memory alone",
        given_back.message()));
  return result;
}

}  // namespace tombolo::mpi
