// SPDX-License-Identifier: Apache-2.0
#include "mpi/windows/create.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/rounding.h"
#include "host/flush/flush.h"
#include "host/memory/foreign_memory.h"
#include "mpi/host/host.h"
#include "mpi/windows/engines.h"
#include "mpi/windows/mpi_window.h"
#include "windows/atomic_updates.h"

namespace tombolo::mpi {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kMost = std::uint64_t{1} << 56;  // bytes; more than an address space

// Read by the right neighbour, to see whether the kernel lets it.
std::uint64_t probe = 0x746f6d626f6c6f;

std::string info_value(MPI_Info info, const char* key) {
  if (info == MPI_INFO_NULL) return {};
  char value[MPI_MAX_INFO_VAL + 1] = {};
  int found = 0;
  if (host().Info_get(info, key, MPI_MAX_INFO_VAL, value, &found) != MPI_SUCCESS || found == 0)
    return {};
  return value;
}

template <class T>
void choose(MPI_Info info, const char* key, std::optional<T> (*named)(std::string_view), T& value) {
  const std::string text = info_value(info, key);
  if (text.empty()) return;
  if (const auto found = named(text)) {
    value = *found;
  } else {
    job().report_once(fmt::format("info key {}='{}' is not understood and ignored", key, text));
  }
}

// Regions of windows over the caller's memory and of dynamic windows lie where the program put
// them.
bool has_own_memory(int flavor) {
  return flavor == MPI_WIN_FLAVOR_ALLOCATE || flavor == MPI_WIN_FLAVOR_SHARED;
}

// A file or device; files in a directory are this host's.
bool is_for_hosts(const std::string& pool) {
  struct stat shape {};
  return !pool.empty() && stat(pool.c_str(), &shape) == 0 && !S_ISDIR(shape.st_mode);
}

PeerRecord describe(const Creation& creation) {
  const Options& options = job().options();
  PeerRecord mine;
  mine.host = job().host_identity();
  mine.bytes = static_cast<std::uint64_t>(creation.bytes);
  mine.address = reinterpret_cast<std::uint64_t>(creation.memory);
  static const host::ProcessName self = host::process_named(getpid());
  mine.process = self;
  mine.disp_unit = creation.disp_unit;
  mine.probe = reinterpret_cast<std::uint64_t>(&probe);
  mine.native_atomics = options.native_atomics;
  mine.atomics_asked = options.atomics_asked;
  mine.machine = options.machine;
  mine.locks = options.locks;
  mine.backoff = options.backoff;
  mine.reader_bias = options.reader_bias;
  mine.served = options.served;
  mine.remap = options.remap;
  choose(creation.info, "tombolo_machine", machine_named, mine.machine);
  mine.threads = job().threads();
  mine.pooled = mine.machine == MachineKind::flushed && is_for_hosts(options.pool);
  choose(creation.info, "tombolo_passive_sync", locks_named, mine.locks);
  choose(creation.info, "tombolo_backoff", switch_named, mine.backoff);
  choose(creation.info, "tombolo_reader_bias", switch_named, mine.reader_bias);
  choose(creation.info, "tombolo_remap", switch_named, mine.remap);
  // Another thread may store to the memory while it is replaced. Without MPI's word that there is
  // none, the user's is needed, and neither helps where several threads call us.
  const bool asked = options.remap_asked || !info_value(creation.info, "tombolo_remap").empty();
  mine.remap = mine.remap && !job().threads() && (asked || job().one_thread());
  bool noncontiguous = false;
  choose(creation.info, "alloc_shared_noncontig", switch_named, noncontiguous);
  mine.contiguous = !noncontiguous;
  const std::string granularity = info_value(creation.info, "mpi_accumulate_granularity");
  std::from_chars(granularity.data(), granularity.data() + granularity.size(), mine.atomic_bytes);
  return mine;
}

// What of its region a process of MPI_Win_create lets the others map. Trivially copyable.
struct PartOffer {
  host::SegmentName name;
  std::uint64_t start = 0;  // in the region
  std::uint64_t bytes = 0;  // 0: nothing
};

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
  explicit Creator(const Creation& creation) : c_(creation) {}

  // As create_window().
  // False if the window is the host's to create.
  bool run(int& result);

 private:
  int make();
  bool reserve();
  bool agree(int& result);
  bool in_segment() const;
  bool reach();
  void lay_out();
  Status map();
  Status share();
  struct Offer {
    host::SegmentName name;
    Code code;
    char message[400];
  };
  Offer offer_of(int creator);
  void clear_sync_words();
  void share_own_memory();
  bool map_part(const PartOffer& offer, machine::DataRegion& region, coherent::Part& part);
  int carrier();
  int begin();
  Status attach();
  void finish();
  int leave_to_host(const Status& why);
  int failure(const Status& why);
  MachineChoice machine() const {
    return {window_->peers[0].machine, window_->peers[0].native_atomics};
  }
  bool all(bool mine) {
    int in = mine ? 1 : 0;
    int out = 0;
    host().Allreduce(&in, &out, 1, MPI_INT, MPI_MIN, c_.comm);
    return out != 0;
  }

  const Creation& c_;
  std::unique_ptr<MpiWindow> window_;
  bool several_hosts_ = false;
  int creator_ = 0;  // of the segment
  bool forwarded_ = false;
  bool in_segment_ = false;     // the regions' memory is in our segment
  std::size_t sync_bytes_ = 0;  // per process
  std::uint64_t data_start_ = 0;
  std::uint64_t shared_start_ = 0;
  std::uint64_t total_ = 0;
  std::vector<std::uint64_t> starts_;  // of the regions, from data_start_
  std::vector<machine::DataRegion> regions_;
  std::vector<coherent::Part> parts_;  // of the regions, or empty
};

// Memory for the window, and for what the processes tell each other before they know whether all
// can go on.
bool Creator::reserve() try {
  window_ = std::make_unique<MpiWindow>();
  MpiWindow& w = *window_;
  host().Comm_rank(c_.comm, &w.rank);
  host().Comm_size(c_.comm, &w.size);
  w.peers.resize(static_cast<std::size_t>(w.size));
  starts_.reserve(w.peers.size());
  regions_.reserve(w.peers.size());
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

// All processes learn what each contributes, and decide alike whether the window is ours.
bool Creator::agree(int& result) {
  MpiWindow& w = *window_;
  PeerRecord mine = describe(c_);
  mine.attached = w.attached.published();
  result = host().Allgather(&mine, sizeof mine, MPI_BYTE, w.peers.data(), sizeof mine, MPI_BYTE,
                            c_.comm);
  if (result != MPI_SUCCESS) return false;
  const PeerRecord& first = w.peers[0];
  std::string why;
  for (const PeerRecord& peer : w.peers) {
    if (!peer.served) why = "TOMBOLO_DISABLE";
    several_hosts_ = several_hosts_ || peer.host != first.host;
    if (peer.machine != first.machine || peer.native_atomics != first.native_atomics ||
        peer.locks != first.locks || peer.backoff != first.backoff ||
        peer.reader_bias != first.reader_bias)
      job().report_once(
          "processes of one window ask for different machines or locks; rank 0 decides");
  }
  if (several_hosts_) {
    // Nobody has said that one host's atomics are seen by the others.
    if (!first.atomics_asked) w.peers[0].native_atomics = false;
    const bool pooled = std::all_of(w.peers.begin(), w.peers.end(),
                                    [](const PeerRecord& peer) { return peer.pooled; });
    if (!pooled) why = "processes on several hosts without a pool";
    if (pooled && !has_own_memory(c_.flavor)) why = "memory of the program on several hosts";
  }
  const bool threads = std::any_of(w.peers.begin(), w.peers.end(),
                                   [](const PeerRecord& peer) { return peer.threads; });
  // Which are built from one number for each process.
  if (threads && machine().kind == MachineKind::flushed && !machine().native_atomics)
    why = "atomics built from loads and stores serve one thread only";
  if (why.empty() && !has_own_memory(c_.flavor) && !in_segment() && !reach())
    why = "the kernel forbids access to the memory of other processes";
  if (!why.empty()) job().count_forwarded(why, !has_own_memory(c_.flavor));
  return why.empty();
}

// The regions' memory is in our segment.
bool Creator::in_segment() const {
  return has_own_memory(c_.flavor) ||
         (c_.flavor == MPI_WIN_FLAVOR_CREATE && keeps_views_apart(machine()));
}

// Can each process read its neighbour's memory? (One neighbour stands for all: what forbids it is a
// setting of the host.)
bool Creator::reach() {
  const auto right = static_cast<std::size_t>((window_->rank + 1) % window_->size);
  const PeerRecord& peer = window_->peers[right];
  std::uint64_t seen = probe;
  const bool ok = peer.process.pid == getpid() ||
                  host::read_foreign(peer.process.pid, peer.probe, &seen, sizeof seen).ok();
  return all(ok && seen == probe);
}

void Creator::lay_out() {
  const auto& peers = window_->peers;
  const bool contiguous = c_.flavor == MPI_WIN_FLAVOR_SHARED && peers[0].contiguous;
  in_segment_ = in_segment();
  sync_bytes_ = round_up(sync_bytes(machine(), static_cast<machine::Home>(peers.size())), 64);
  data_start_ = round_up(sync_bytes_ * peers.size(), kPage);
  std::uint64_t next = 0;
  for (const PeerRecord& peer : peers) {
    starts_.push_back(next);
    machine::DataRegion region;
    region.bytes = c_.flavor == MPI_WIN_FLAVOR_DYNAMIC ? ~std::uint64_t{0} >> 1 : peer.bytes;
    region.pid = peer.process.pid;
    region.foreign_address = c_.flavor == MPI_WIN_FLAVOR_DYNAMIC ? 0 : peer.address;
    regions_.push_back(region);
    // Sizes are the program's. What no host has is refused when the segment is made; the sum of
    // many of those must not come out as something small.
    if (in_segment_) next = std::min(next + std::min(peer.bytes, kMost), kMost);
    if (in_segment_ && !contiguous) next = round_up(next, kPage);
  }
  shared_start_ = round_up(data_start_ + next, kPage);
  total_ = shared_start_ + (in_segment_ ? shared_bytes(machine(), regions_) : 0);
}

// The first process of a host creates the segment, the others attach. A pool is handed out by one
// host, which need not be the first. Which attempt was the last is known to all alike: they go by
// what the creator says and not by what they meet themselves.
Status Creator::share() {
  const auto& peers = window_->peers;
  Offer offer{};
  for (std::size_t r = 0; r < peers.size(); ++r) {
    const auto same_host = [&](const PeerRecord& peer) { return peer.host == peers[r].host; };
    if (static_cast<std::size_t>(std::find_if(peers.begin(), peers.end(), same_host) -
                                 peers.begin()) != r)
      continue;
    creator_ = static_cast<int>(r);
    offer = offer_of(creator_);
    if (offer.code != Code::bad_configuration) break;
  }
  if (offer.code == Code::no_memory) return Status::no_memory(offer.message);
  if (offer.code != Code::ok) return Status::io(offer.message);
  TOMBOLO_TRY(available(machine()));
  if (window_->rank != creator_) {
    if (several_hosts_)  // where each finds the pool is its own business
      std::strncpy(offer.name.path, job().options().pool.c_str(), sizeof offer.name.path - 1);
    TOMBOLO_TRY(host::Segment::attach(offer.name, window_->segment_));
  }
  // This host may still have lines of the memory from what was there before.
  if (several_hosts_) host::flush::refresh(window_->segment_.data(), total_);
  return {};
}

Creator::Offer Creator::offer_of(int creator) {
  Offer offer{};
  if (window_->rank == creator) {
    const Options& options = job().options();
    Status status = available(machine());
    if (status.ok()) {
      const bool pooled = machine().kind == MachineKind::flushed && !options.pool.empty();
      status = pooled
                   ? host::Segment::create_in_pool(options.pool, total_, window_->segment_)
                   : host::Segment::create_anonymous(total_, "tombolo-window", window_->segment_);
    }
    offer.code = status.code();
    std::strncpy(offer.message, status.message().c_str(), sizeof offer.message - 1);
    if (status.ok()) offer.name = window_->segment_.name();
  }
  host().Bcast(&offer, sizeof offer, MPI_BYTE, creator, c_.comm);
  return offer;
}

// Lines that a host had changed for an earlier window, whose processes were killed, went to memory
// when that host attached, perhaps over the zeros that the sync words start with.
void Creator::clear_sync_words() {
  if (window_->rank == creator_) {
    std::memset(window_->segment_.data(), 0, data_start_);
    host::flush::publish(window_->segment_.data(), data_start_);  // the other hosts read memory
  }
  all(true);
}

Status Creator::map() {
  TOMBOLO_TRY(share());
  if (!in_segment_) return {};
  for (std::size_t r = 0; r < regions_.size(); ++r)
    regions_[r].memory = window_->segment_.data() + data_start_ + starts_[r];
  return {};
}

// MPI_Win_create: each process offers what of its region peers can map, and maps what the others
// offer. What cannot be mapped is reached by the kernel's copies, as without this.
void Creator::share_own_memory() {
  MpiWindow& w = *window_;
  const auto& peers = w.peers;
  if (c_.flavor != MPI_WIN_FLAVOR_CREATE) return;
  w.use_ = host::own_memory().enter(c_.memory, static_cast<std::uint64_t>(c_.bytes));
  const bool anybody =
      w.size > 1 && machine().kind == MachineKind::coherent &&
      std::any_of(peers.begin(), peers.end(), [](const PeerRecord& peer) { return peer.remap; });
  if (!anybody) return;
  PartOffer mine;
  host::ReplacedMemory* own = nullptr;
  // The host MPI's windows over the same memory may be in use meanwhile.
  if (peers[static_cast<std::size_t>(w.rank)].remap && !job().forwarded_created())
    own = host::own_memory().replace(w.use_, peers.size());
  if (own != nullptr)
    mine = {own->name(), own->range().low - w.use_.range().low, own->range().bytes()};
  std::vector<PartOffer> offers(peers.size());
  bool mapped = host().Allgather(&mine, sizeof mine, MPI_BYTE, offers.data(), sizeof mine, MPI_BYTE,
                                 c_.comm) == MPI_SUCCESS;
  auto regions = regions_;
  std::vector<coherent::Part> parts(regions.size());
  for (std::size_t r = 0; mapped && r < regions.size(); ++r)
    if (offers[r].bytes > 0) mapped = map_part(offers[r], regions[r], parts[r]);
  // All or nobody: who has mapped all regions may use atomics that the others must not (A3).
  if (all(mapped)) {
    regions_ = std::move(regions);
    if (std::any_of(parts.begin(), parts.end(), [](const auto& part) { return part.bytes > 0; }))
      parts_ = std::move(parts);
  } else {
    w.mapped_.clear();
  }
  if (own != nullptr) own->seal();
}

bool Creator::map_part(const PartOffer& offer, machine::DataRegion& region, coherent::Part& part) {
  const bool whole = offer.bytes == region.bytes;
  if (region.pid == getpid()) {
    // The program's own mapping; of a part nothing need be said, since all is reached by address.
    if (whole) region.memory = static_cast<std::byte*>(c_.memory);
    return true;
  }
  host::Segment segment;
  if (!host::Segment::attach(offer.name, segment).ok()) return false;
  if (whole) {
    region.memory = segment.data();
  } else {
    part = {segment.data(), offer.start, offer.bytes};
  }
  window_->mapped_.push_back(std::move(segment));
  return true;
}

// A window of the host MPI without memory; which kind is cheapest and always there differs. Either
// all processes have it afterwards, or they fail. Where some have it, it cannot be freed: that
// takes all.
int Creator::carrier() {
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
    if (all(error == MPI_SUCCESS)) return MPI_SUCCESS;
    if (!all(error != MPI_SUCCESS)) break;
  }
  if (error != MPI_SUCCESS) return error;
  return failure(Status::io("the host MPI of another process could not create the window"));
}

// With all carriers there: all processes begin to use the window, or none does.
int Creator::begin() {
  const int error = host().Win_get_group(window_->handle, &window_->group);
  const Status attached = error == MPI_SUCCESS ? attach() : Status();
  if (!all(error == MPI_SUCCESS && attached.ok())) {
    if (window_->group != MPI_GROUP_NULL) host().Group_free(&window_->group);
    host().Win_free(&window_->handle);
    if (error != MPI_SUCCESS) return error;
    return failure(attached.ok() ? Status::io("another process could not begin to use the window")
                                 : attached);
  }
  // An engine may start by moving the owner's bytes to memory; nobody may look before that.
  const Status started = window_->engine().barrier();
  if (started.ok()) return MPI_SUCCESS;
  // A process has died, so that the carrier, which takes all, cannot be freed.
  host().Group_free(&window_->group);
  return failure(started);
}

Status Creator::attach() try {
  MpiWindow& w = *window_;
  w.extend();
  machine::Attachment at{.data = {regions_.begin(), regions_.end(), &w.memory_for_peers()}};
  at.self = static_cast<machine::Home>(w.rank);
  at.cores = static_cast<machine::Home>(w.size);
  at.sync = w.segment_.data();
  at.sync_bytes_per_home = sync_bytes_;
  // A window of few processes does not make the host a quiet one.
  at.waiting =
      machine::WaitPolicy::for_host(std::max(at.cores, job().processes_here()), job().processors());
  std::vector<host::ProcessName> processes;
  for (const PeerRecord& peer : w.peers)
    processes.push_back(peer.host == job().host_identity() ? peer.process : host::ProcessName{});
  w.watch_ = std::make_unique<PeerWatch>(w.rank, std::move(processes));
  at.several_hosts = several_hosts_;
  at.idle = w.watch_.get();
  at.seed = job().options().seed;
  Particulars particulars{.evictions = job().options().evictions,
                          .parts = {parts_.begin(), parts_.end(), &w.memory_for_peers()}};
  if (c_.flavor == MPI_WIN_FLAVOR_CREATE)
    particulars.own_memory = static_cast<std::byte*>(c_.memory);
  if (total_ > shared_start_) particulars.shared = w.segment_.data() + shared_start_;
  windows::EngineOptions options;
  options.locks = w.peers[0].locks;
  options.backoff = w.peers[0].backoff;
  options.reader_bias = w.peers[0].reader_bias;
  options.threads = job().threads();
  options.atomic_bytes = w.peers[0].atomic_bytes;
  options.memory_moves_on = several_hosts_;
  options.program_reads_peers = c_.flavor == MPI_WIN_FLAVOR_SHARED;
  w.serve_by(make_engine(machine(), std::move(at), std::move(particulars), options, w.memory()));
  w.sited = names_sites(machine());
  return {};
} catch (const std::bad_alloc&) {
  return Status::no_memory(
      fmt::format("no memory for what {} processes need to know of each other{}", window_->size,
                  keeps_views_apart(machine()) ? ", and for private copies of their regions" : ""));
}

void Creator::finish() {
  MpiWindow& w = *window_;
  w.flavor = c_.flavor;
  if (w.dynamic()) w.views.resize(w.peers.size());
  w.model = is_coherent(machine()) ? MPI_WIN_UNIFIED : MPI_WIN_SEPARATE;
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

// The code of a fault of the world, which is reported.
int Creator::failure(const Status& why) {
  job().report_once(fmt::format("{}: {}", c_.call, why.message()));
  return error_code(why, c_.call);
}

// Everybody or nobody: a process that fails must not leave the others waiting for it.
int Creator::make() {
  const SilentCommunicator silent(c_.comm);
  const Status mapped = map();
  if (!all(mapped.ok())) {
    if (several_hosts_) return leave_to_host(mapped);
    return failure(mapped.ok()
                       ? Status::no_memory("another process of the window could not map its memory")
                       : mapped);
  }
  if (several_hosts_) clear_sync_words();
  window_->segment_.seal();
  share_own_memory();
  const int error = carrier();
  return error != MPI_SUCCESS ? error : begin();
}

// The hosts turn out to have no pool in common, or not enough of one.
int Creator::leave_to_host(const Status& why) {
  if (!why.ok()) job().report_own_once(fmt::format("{}: {}", c_.call, why.message()));
  job().count_forwarded("no room in one pool for several hosts", !has_own_memory(c_.flavor));
  forwarded_ = true;
  return MPI_SUCCESS;
}

bool Creator::run(int& result) {
  const bool reserved = reserve();
  if (!all(reserved)) {
    result = failure(Status::no_memory(reserved ? "another process has no memory for the window"
                                                : "no memory for the window"));
    host().Comm_call_errhandler(c_.comm, result);
    return true;
  }
  if (!agree(result)) return result != MPI_SUCCESS;
  lay_out();
  result = make();
  if (forwarded_) return false;
  if (result == MPI_SUCCESS)
    finish();
  else
    host().Comm_call_errhandler(c_.comm, result);
  return true;
}

}  // namespace

bool create_window(const Creation& creation, int& result) {
  // Handles of another kind would be taken for what they are not, by us and then by the host.
  static const Status fits = check_host();
  if (!fits.ok()) {
    std::fprintf(stderr, "tombolo: %s\n", fits.message().c_str());
    std::_Exit(1);
  }
  // What is plainly wrong gets the host's own error; so does an intercommunicator.
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
  // After everybody's last access, and before anything of the window goes away.
  const Status arrived = window->engine().barrier();
  if (!arrived.ok()) return raise(*window, arrived, "MPI_Win_free");
  if (window->group != MPI_GROUP_NULL) host().Group_free(&window->group);
  // Attribute callbacks run inside and may still ask about the window.
  const int result = host().Win_free(win);
  if (result != MPI_SUCCESS) return result;
  unregister_window(window);
  const Status given_back = host::own_memory().take_fault();
  if (!given_back.ok())
    job().report_own_once(fmt::format(
        "MPI_Win_free: memory of the program stays shared, with its contents, so that forked "
        "children see each other's stores ({}); TOMBOLO_REMAP=0 leaves such memory alone",
        given_back.message()));
  return result;
}

}  // namespace tombolo::mpi
