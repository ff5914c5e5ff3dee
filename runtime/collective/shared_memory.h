// SPDX-License-Identifier: Apache-2.0
// Purpose: the memory that the processes of a job share: sync blocks and a region of each, made by
// all of them together over any exchange, on the machine that they have chosen.
//
//   std::vector<Member> members(n);  all.gather(me, std::span(members));
//   SharedMemory memory({.regions = Regions::shared}, rank, std::move(members));
//   if (memory.refusal().empty()) ...                       // decided alike at all processes
//   TOMBOLO_AGREE(memory.make(all, options));
//   TOMBOLO_AGREE(all.step({}, [&] { return memory.start_engine(surroundings, engine); }));
//
// Invariants: SM1 all processes decide alike: from the members alone, which all know.
//             SM2 after an error, which is one at all processes (CL1), the destructor frees all
//                 that this process had made by then.
// Thread safety: one thread at a time.
#pragma once

#include <cstdint>
#include <memory_resource>
#include <span>
#include <string_view>
#include <vector>

#include "host/images/own_memory.h"
#include "host/images/peer_image.h"
#include "host/processes/process.h"
#include "host/processes/processors.h"
#include "host/segments/segment.h"
#include "machine/optional.h"
#include "machine/place.h"
#include "runtime/collective/collective.h"
#include "runtime/engines/engines.h"
#include "runtime/options/options.h"

namespace tombolo::runtime {

// Where the memory of the regions is.
enum class Regions : std::uint8_t {
  shared,    // in new memory that all processes map
  programs,  // in memory that the program has already, a range at each process
  anywhere,  // wherever the program says later: a region is all of a process's memory
};

// The data of one process. Trivially copyable, so that it can be gathered.
struct Member {
  std::uint64_t host = 0;  // HostIdentity::digest()
  host::ProcessName process;
  std::uint64_t bytes = 0;    // of its region
  std::uint64_t address = 0;  // Regions::programs: of the region, in its process
  std::uint64_t probe = 0;    // of a number that a peer may try to read
  MachineId machine{};
  bool native_atomics = true;
  bool atomics_asked = false;       // by the user
  bool pooled = false;              // has its memory in a pool that several hosts can map
  bool remap = false;               // Regions::programs: may make the memory mappable by peers
  bool threads = false;             // several threads may use the memory at once
  host::ProcessorShare processors;  // that it may run on
};

// This process, with the settings of the options.
Member this_member(const Options& options);

// Ok if the kernel lets this process reach the other one's memory. Errors: process_failed (there is
// no such process here, or no more), io.
Status reach(const Member& member);

class SharedMemory {
 public:
  struct Request {
    Regions regions = Regions::shared;
    bool contiguous = false;  // Regions::shared: one region directly after the other
    // Regions::programs: whether pages of it may be moved to memory that peers can map.
    host::OwnMemory::Moving moving = host::OwnMemory::Moving::held;
    std::uint64_t alignment = 0;  // Regions::shared: of the regions that start on a page; 2^n or 0
    std::size_t sync_bytes = 0;   // of each process; 0: those of a window
  };
  // Facts of its process that an engine needs.
  struct Surroundings {
    machine::WaitPolicy waiting{};
    machine::IdleHook* idle = nullptr;  // may be null; outlives the engine
    std::pmr::memory_resource* for_regions = nullptr;
    std::pmr::memory_resource* for_engine = nullptr;
  };

  // `members` by rank.
  SharedMemory(const Request& request, int rank, std::vector<Member> members);

  const std::vector<Member>& members() const { return members_; }

  MachineChoice machine() const { return choice_; }
  const ServedMachine& served_machine() const { return served(choice_); }
  bool several_hosts() const { return several_hosts_; }
  // Why these members cannot share memory; empty if they can.
  std::string_view refusal() const { return refusal_; }
  // All processes have the memory.
  bool made() const { return made_; }
  // make() failed because some may not open the memory that others offer: known to all.
  bool kept_apart() const { return kept_apart_; }

  // Whether each process reaches the memory of its neighbour, where that is needed at all. (One
  // neighbour stands for all: only a setting of the host forbids it.)
  template <Exchange X>
  bool reachable(Collective<X>& all) {
    return !reaches_by_kernel() || all.all(reaches_neighbour());
  }
  // Processes reach each other's memory by calls that the kernel may refuse: known to all.
  bool reaches_by_kernel() const { return !in_segment_; }

  template <Exchange X>
  Agreed make(Collective<X>& all, const Options& options);

  // Before make(), at all processes or none: the memory that an earlier window of them had, if it
  // has the size that make() needs. Then nothing is to be created, opened or mapped.
  void reuse(host::Segment earlier) { earlier_ = std::move(earlier); }
  // For reuse(), once no engine uses it; empty if it is not worth keeping.
  host::Segment take_segment();

  // An engine on the memory, once it is made: local.
  Status start_engine(const Surroundings& surroundings, const Options& options,
                      const windows::EngineOptions& engine_options, EnginePointer& out);

  // For a core of one's own on the memory, once it is made (attachment_of in
  // runtime/engines/attachment.h); `surroundings.for_engine` is not looked at.
  machine::Attachment attachment(const Surroundings& surroundings, const Options& options) const;
  Particulars particulars(const Surroundings& surroundings, const Options& options) const;

 private:
  struct Offer {
    host::SegmentName name;
    Code code = Code::ok;
    bool by_path = false;  // the creator knows that others may not open its descriptors
    char message[400] = {};
  };
  // The part of its region that a process lets the others map.
  struct PartOffer {
    host::ImageName image;
    std::uint64_t start = 0;  // in the region
    std::uint64_t bytes = 0;  // 0: nothing
  };

  void decide();
  bool reaches_neighbour() const;
  void lay_out();
  Offer offer(const Options& options);
  static void offer_by_path();  // from now on
  Status attach(const Offer& offer, const Options& options);
  Status map(const Offer& offer, const Options& options);
  void name_regions();
  bool reuses_earlier() const;
  void clear();
  bool shares_parts() const;
  PartOffer share_part();
  Status map_parts(std::span<const PartOffer> offers);
  Status map_part(const PartOffer& offer, std::size_t rank);
  void keep_or_drop_parts(bool keep);
  template <Exchange X>
  void agree_on_offer(Collective<X>& all, const Options& options, Offer& offer);
  template <Exchange X>
  Agreed share(Collective<X>& all, const Options& options, Offer& offer);
  template <Exchange X>
  Agreed share_in_some_way(Collective<X>& all, const Options& options);
  template <Exchange X>
  bool are_kept_apart(Collective<X>& all, const Agreed& failed);
  template <Exchange X>
  void share_own(Collective<X>& all);

  Request request_;
  int rank_;
  std::vector<Member> members_;
  MachineChoice choice_;
  bool several_hosts_ = false;
  bool in_segment_ = false;  // the regions' memory is in our segment
  std::string_view refusal_;
  bool made_ = false;
  bool kept_out_ = false;  // this process, from the memory that was offered last
  bool kept_apart_ = false;

  int creator_ = 0;             // of the segment
  std::size_t sync_bytes_ = 0;  // per process
  std::uint64_t data_start_ = 0;
  std::uint64_t shared_start_ = 0;
  std::uint64_t total_ = 0;
  std::vector<std::uint64_t> starts_;  // of the regions, from data_start_
  std::vector<machine::DataRegion> regions_;
  std::vector<machine::RegionPart> parts_;  // of the regions, or empty

  // In the order of destruction, last first.
  host::Segment earlier_;
  host::Segment segment_;
  host::OwnMemory::Use use_;             // Regions::programs: of this process's memory
  std::vector<host::PeerImage> mapped_;  // Regions::programs: the peers' that could be mapped
};

// The first process of each host offers a segment, in turn, until one can: a pool is handed out by
// one host, which need not be the first. All go by the creator's answer, not by their own errors,
// so that they agree which offer was the last.
template <Exchange X>
void SharedMemory::agree_on_offer(Collective<X>& all, const Options& options, Offer& offer) {
  for (std::size_t r = 0; r < members_.size(); ++r) {
    std::size_t first = 0;
    while (members_[first].host != members_[r].host) ++first;
    if (first != r) continue;
    creator_ = static_cast<int>(r);
    offer = rank_ == creator_ ? this->offer(options) : Offer{};
    all.broadcast(offer, creator_);
    if (offer.code != Code::bad_configuration) return;
  }
}

template <Exchange X>
Agreed SharedMemory::share(Collective<X>& all, const Options& options, Offer& offer) {
  agree_on_offer(all, options, offer);
  return all.step({Code::no_memory, "another process of the window could not map its memory"},
                  [&] { return map(offer, options); });
}

// Whether those whose own part failed, and there are some, were all kept from opening the memory
// that was offered.
template <Exchange X>
bool SharedMemory::are_kept_apart(Collective<X>& all, const Agreed& failed) {
  const bool no_other_cause = all.all(!failed.own() || kept_out_);
  return !all.all(!kept_out_) && no_other_cause;
}

// Processes of one user may well be kept from each other's descriptors: by namespaces, or
// PR_SET_DUMPABLE. A file with a name is open to them.
template <Exchange X>
Agreed SharedMemory::share_in_some_way(Collective<X>& all, const Options& options) {
  Offer offer;
  Agreed shared = share(all, options, offer);
  if (!shared.ok() && !offer.by_path && are_kept_apart(all, shared)) {
    offer_by_path();
    segment_ = {};
    shared = share(all, options, offer);
  }
  kept_apart_ = !shared.ok() && offer.by_path && offer.code != Code::no_memory;
  return shared;
}

template <Exchange X>
Agreed SharedMemory::make(Collective<X>& all, const Options& options) {
  TOMBOLO_AGREE(all.step({Code::no_memory, "another process has no memory for the layout"}, [&] {
    lay_out();
    return Status();
  }));
  const bool reused = reuses_earlier();
  if (reused)
    segment_ = std::move(earlier_);
  else
    TOMBOLO_AGREE(share_in_some_way(all, options));
  if (reused || several_hosts_)
    TOMBOLO_AGREE(all.step({Code::no_memory, "another process has no memory for a region"}, [&] {
      if (reused) name_regions();
      clear();
      return Status();
    }));
  segment_.seal();
  share_own(all);
  made_ = true;
  return all.done();
}

// Regions::programs: each process offers the part of its region that peers can map, and maps the
// others' offers. The rest is reached by the kernel's copies, as without this.
template <Exchange X>
void SharedMemory::share_own(Collective<X>& all) {
  if (!shares_parts()) return;
  const PartOffer mine = share_part();
  std::vector<PartOffer> offers(members_.size());
  all.gather(mine, std::span(offers));
  // All or none: one that has mapped all regions may use atomics that the others must not.
  keep_or_drop_parts(all.attempt([&] { return map_parts(offers); }));
}

}  // namespace tombolo::runtime
