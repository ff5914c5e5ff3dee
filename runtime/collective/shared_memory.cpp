// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/shared_memory.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>

#include "base/rounding.h"
#include "host/flush/flush.h"
#include "host/memory/foreign_memory.h"
#include "host/memory/page.h"
#include "host/processes/host_identity.h"

namespace tombolo::runtime {
namespace {

constexpr std::uint64_t more_than_an_address_space = std::uint64_t{1} << 56;
constexpr std::uint64_t all_of_a_process = ~std::uint64_t{0} >> 1;
constexpr std::uint64_t line_bytes = 64;
// To clear more costs as much as new memory.
constexpr std::uint64_t most_reused_bytes = std::uint64_t{64} << 10;

// Whether this process has seen that others may not open its descriptors. Its offers alone depend
// on it, so that the processes need not agree. relaxed: nothing else is told by it.
std::atomic<bool> paths_only{false};

// Read by the left neighbour, to see whether the kernel lets it.
std::uint64_t probe = 0x746f6d626f6c6f;

// A file or device; files in a directory are this host's.
bool is_for_hosts(const std::string& pool) {
  struct stat shape {};
  return !pool.empty() && stat(pool.c_str(), &shape) == 0 && !S_ISDIR(shape.st_mode);
}

}  // namespace

Member this_member(const Options& options) {
  static const host::ProcessName self = host::process_named(getpid());
  static const std::uint64_t here = host::this_host().digest();
  static const host::ProcessorShare processors = host::processor_share();
  Member me;
  me.host = here;
  me.process = self;
  me.probe = reinterpret_cast<std::uint64_t>(&probe);
  me.machine = options.machine;
  me.native_atomics = options.native_atomics();
  me.atomics_asked = options.atomics.has_value();
  me.pooled = served({options.machine, options.native_atomics()}).traits().takes_pools &&
              is_for_hosts(options.pool);
  me.remap = options.remap;
  me.processors = processors;
  return me;
}

Status reach(const Member& member) {
  if (member.process.pid == getpid()) return {};
  std::uint64_t seen = 0;
  TOMBOLO_TRY(host::read_foreign(member.process.pid, member.probe, &seen, sizeof seen));
  return seen == probe ? Status{} : Status::io("another process has its number");
}

SharedMemory::SharedMemory(const Request& request, int rank, std::vector<Member> members)
    : request_(request),
      rank_(rank),
      members_(std::move(members)),
      choice_{members_[0].machine, members_[0].native_atomics} {
  decide();
}

void SharedMemory::decide() {
  const auto any = [this](bool Member::*is) {
    return std::any_of(members_.begin(), members_.end(),
                       [is](const Member& member) { return member.*is; });
  };
  several_hosts_ = std::any_of(members_.begin(), members_.end(), [this](const Member& member) {
    return member.host != members_[0].host;
  });
  if (several_hosts_) {
    // No user has said that one host's atomics are seen by the others.
    if (!members_[0].atomics_asked) choice_.native_atomics = false;
    const bool pooled = std::all_of(members_.begin(), members_.end(),
                                    [](const Member& member) { return member.pooled; });
    if (!pooled) refusal_ = "processes on several hosts without a pool";
    if (pooled && request_.regions != Regions::shared)
      refusal_ = "memory of the program on several hosts";
  }
  const Traits traits = served_machine().traits();
  if (any(&Member::threads) && !traits.serves_threads)
    refusal_ = "atomics built from loads and stores serve one thread only";
  in_segment_ = request_.regions == Regions::shared ||
                (request_.regions == Regions::programs && traits.keeps_views_apart);
}

bool SharedMemory::reaches_neighbour() const {
  return reach(members_[static_cast<std::size_t>(rank_ + 1) % members_.size()]).ok();
}

void SharedMemory::lay_out() {
  const auto cores = static_cast<machine::Home>(members_.size());
  starts_.reserve(cores);
  regions_.reserve(cores);
  const std::uint64_t alignment = std::max(host::page_bytes(), request_.alignment);
  const std::size_t wanted =
      request_.sync_bytes > 0 ? request_.sync_bytes : served_machine().sync_bytes(cores);
  sync_bytes_ = round_up(wanted, line_bytes);
  data_start_ = round_up(std::uint64_t{sync_bytes_} * cores, alignment);
  std::uint64_t next = 0;
  for (const Member& member : members_) {
    starts_.push_back(next);
    machine::DataRegion region;
    region.bytes = request_.regions == Regions::anywhere ? all_of_a_process : member.bytes;
    region.pid = member.process.pid;
    region.foreign_address = request_.regions == Regions::anywhere ? 0 : member.address;
    regions_.push_back(region);
    if (!in_segment_) continue;
    // Sizes are the program's. A size that no host has is refused when the segment is made; the sum
    // of many of those must not come out as a small one.
    next = std::min(next + std::min(member.bytes, more_than_an_address_space),
                    more_than_an_address_space);
    if (!request_.contiguous) next = round_up(next, alignment);
  }
  shared_start_ = round_up(data_start_ + next, host::page_bytes());
  total_ = shared_start_ + (in_segment_ ? served_machine().shared_bytes(regions_) : 0);
}

void SharedMemory::offer_by_path() { paths_only.store(true, std::memory_order_relaxed); }

// The others wait for the offer, so that nothing may be thrown.
SharedMemory::Offer SharedMemory::offer(const Options& options) try {
  Offer offer;
  offer.by_path = paths_only.load(std::memory_order_relaxed);
  Status status = served_machine().available();
  if (status.ok()) {
    const bool pooled = served_machine().traits().takes_pools && !options.pool.empty();
    const auto found =
        offer.by_path ? host::Segment::Found::by_path : host::Segment::Found::by_descriptor;
    status = pooled
                 ? host::Segment::create_in_pool(options.pool, total_, segment_, request_.alignment)
                 : host::Segment::create_anonymous(total_, "tombolo-window", segment_,
                                                   request_.alignment, found);
  }
  offer.code = status.code();
  std::strncpy(offer.message, status.message().c_str(), sizeof offer.message - 1);
  if (status.ok()) offer.name = segment_.name();
  return offer;
} catch (const std::bad_alloc&) {
  Offer none;
  none.code = Code::no_memory;
  std::strcpy(none.message, "no memory for the description of a segment");
  return none;
}

Status SharedMemory::attach(const Offer& offer, const Options& options) {
  if (offer.code == Code::no_memory) return Status::no_memory(offer.message);
  if (offer.code != Code::ok) return Status::io(offer.message);
  TOMBOLO_TRY(served_machine().available());
  if (rank_ != creator_) {
    host::SegmentName name = offer.name;
    if (several_hosts_)  // where each finds the pool is its own business
      std::strncpy(name.path, options.pool.c_str(), sizeof name.path - 1);
    Status attached = host::Segment::attach(name, segment_);
    kept_out_ = attached.code() == Code::unsupported;
    TOMBOLO_TRY(std::move(attached));
  }
  // This host may still have lines of the memory's former contents.
  if (several_hosts_) host::flush::refresh(segment_.data(), total_);
  return {};
}

Status SharedMemory::map(const Offer& offer, const Options& options) {
  TOMBOLO_TRY(attach(offer, options));
  name_regions();
  return {};
}

// With the segment mapped.
void SharedMemory::name_regions() {
  if (in_segment_)
    for (std::size_t r = 0; r < regions_.size(); ++r)
      regions_[r].memory = segment_.data() + data_start_ + starts_[r];
  if (request_.regions == Regions::programs) {
    const Member& me = members_[static_cast<std::size_t>(rank_)];
    use_ = host::own_memory().enter(reinterpret_cast<const void*>(me.address), me.bytes);
  }
}

// The same at all processes: the sizes are.
bool SharedMemory::reuses_earlier() const {
  return earlier_.data() != nullptr && earlier_.bytes() == total_ && request_.alignment == 0;
}

host::Segment SharedMemory::take_segment() {
  if (several_hosts_ || total_ > most_reused_bytes || segment_.name().path[0] != '\0') return {};
  return std::move(segment_);
}

// The memory of an earlier window is as new. On several hosts lines that a host had changed for an
// earlier window, whose processes were killed, went to memory when that host attached, perhaps over
// the zeros that the sync words start with.
void SharedMemory::clear() {
  if (rank_ != creator_) return;
  const std::uint64_t bytes = several_hosts_ ? data_start_ : total_;
  std::memset(segment_.data(), 0, bytes);
  if (several_hosts_) host::flush::publish(segment_.data(), bytes);  // the other hosts read memory
}

bool SharedMemory::shares_parts() const {
  return request_.regions == Regions::programs && members_.size() > 1 &&
         served_machine().traits().maps_parts &&
         std::any_of(members_.begin(), members_.end(),
                     [](const Member& member) { return member.remap; });
}

// The others wait for the offer, as above.
SharedMemory::PartOffer SharedMemory::share_part() try {
  const Member& me = members_[static_cast<std::size_t>(rank_)];
  if (!me.remap) return {};
  const host::AddressRange part = host::own_memory().share(use_, request_.moving);
  if (part.empty()) return {};
  return {host::own_memory().image(), part.low - use_.range().low, part.bytes()};
} catch (const std::bad_alloc&) {
  return {};
}

Status SharedMemory::map_parts(std::span<const PartOffer> offers) {
  parts_.resize(regions_.size());
  for (std::size_t r = 0; r < offers.size(); ++r)
    if (offers[r].bytes > 0) TOMBOLO_TRY(map_part(offers[r], r));
  return {};
}

Status SharedMemory::map_part(const PartOffer& offer, std::size_t rank) {
  parts_[rank] = {nullptr, offer.start, offer.bytes};
  // The program's own mapping is there already.
  if (rank == static_cast<std::size_t>(rank_)) return {};
  const std::uint64_t low = regions_[rank].foreign_address + offer.start;
  host::PeerImage& image = mapped_.emplace_back();
  TOMBOLO_TRY(host::PeerImage::map(offer.image, {low, low + offer.bytes}, image));
  parts_[rank].memory = image.at(low);
  return {};
}

// A part that is all of a region is the region's memory.
void SharedMemory::keep_or_drop_parts(bool keep) {
  if (!keep) {
    parts_.clear();
    mapped_.clear();
    return;
  }
  for (std::size_t r = 0; r < regions_.size(); ++r) {
    machine::RegionPart& part = parts_[r];
    const bool own = r == static_cast<std::size_t>(rank_);
    if (part.bytes > 0 && part.bytes == regions_[r].bytes)
      regions_[r].memory =
          own ? reinterpret_cast<std::byte*>(regions_[r].foreign_address) : part.memory;
    // Of the own region all is reached by address.
    if (own || regions_[r].memory != nullptr) part = {};
  }
  const bool none = std::all_of(parts_.begin(), parts_.end(),
                                [](const machine::RegionPart& part) { return part.bytes == 0; });
  if (none) parts_.clear();
}

machine::Attachment SharedMemory::attachment(const Surroundings& surroundings,
                                             const Options& options) const {
  machine::Attachment at{.data = {regions_.begin(), regions_.end(), surroundings.for_regions}};
  at.self = static_cast<machine::Home>(rank_);
  at.cores = static_cast<machine::Home>(members_.size());
  at.sync = segment_.data();
  at.sync_bytes_per_home = sync_bytes_;
  at.waiting = surroundings.waiting;
  at.several_hosts = several_hosts_;
  at.idle = surroundings.idle;
  at.seed = options.seed;
  return at;
}

Particulars SharedMemory::particulars(const Surroundings& surroundings,
                                      const Options& options) const {
  Particulars particulars{.evictions = options.evictions,
                          .parts = {parts_.begin(), parts_.end(), surroundings.for_regions}};
  if (request_.regions == Regions::programs)
    particulars.own_view =
        reinterpret_cast<std::byte*>(members_[static_cast<std::size_t>(rank_)].address);
  if (total_ > shared_start_) particulars.shared = segment_.data() + shared_start_;
  return particulars;
}

Status SharedMemory::start_engine(const Surroundings& surroundings, const Options& options,
                                  const windows::EngineOptions& engine_options,
                                  EnginePointer& out) {
  out =
      served_machine().engine(attachment(surroundings, options), particulars(surroundings, options),
                              engine_options, *surroundings.for_engine);
  return {};
}

}  // namespace tombolo::runtime
