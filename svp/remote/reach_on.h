// SPDX-License-Identifier: Apache-2.0
// Purpose: the memory of other processes of this host, as a process reaches it: the shared parts by
// their address, which is one in all processes, the rest by the kernel's copies. That of other
// hosts is not reached.
//
// On a machine whose view of a region is not its memory, each process has a copy of the shared
// parts at that address, and the bytes go to memory and back at the create and the sync.
//
// Invariants: RCH1 shown memory fills its lines: so a line is never two families' (R2). Where the
//                 hardware keeps caches coherent all shared memory is shown.
// Data: publish() publishes before the request is sent, map() refreshes after it was taken; unmap()
// publishes before the completion is sent, refresh() refreshes after it was taken.
// Thread safety: yes, as the core is; distinct ranges at once.
#pragma once

#include <cstring>
#include <vector>

#include "host/memory/foreign_memory.h"
#include "machine/optional.h"
#include "svp/links/link.h"
#include "svp/remote/heap.h"

namespace tombolo::svp {

// The shared memory of a process, at the same address in all.
struct SharedParts {
  std::uint64_t first = 0;       // the address of the first process's
  std::uint64_t part_bytes = 0;  // of each
  std::uint64_t parts = 0;
  machine::Offset offset = 0;  // in the region of its home
};

// In place of the number of a process that is not on this host.
inline constexpr std::int32_t of_another_host = -1;

template <machine::Core C>
class ReachOn {
 public:
  static constexpr bool copies_views = machine::KeepsViewsApart<C>;

  // `processes` by site.
  ReachOn(C& core, const SharedParts& shared, const Heap& heap, std::vector<std::int32_t> processes,
          bool may_copy)
      : core_(core),
        shared_(shared),
        heap_(heap),
        processes_(std::move(processes)),
        may_copy_(may_copy) {}

  bool copies(Site site) const { return may_copy_ && is_here(site); }
  Status get(Site site, std::uint64_t address, void* to, std::size_t bytes) const {
    return bytes == 0 ? Status() : host::read_foreign(processes_[site], address, to, bytes);
  }
  Status put(Site site, std::uint64_t address, const void* from, std::size_t bytes) const {
    return bytes == 0 ? Status() : host::write_foreign(processes_[site], address, from, bytes);
  }

  bool can_show(Site site, const void* at, std::size_t bytes) const {
    if (!is_here(site) || !is_shared(address_of(at), bytes)) return false;
    if constexpr (C::properties.coherent) return true;
    const auto* const start = static_cast<const std::byte*>(at);
    const std::uint64_t end = address_of(at) + bytes;
    if (address_of(at) % Heap::line != 0) return false;  // RCH1
    return end % Heap::line == 0 || heap_.ends_a_part(start, start + bytes);
  }
  void publish(const void* at, std::size_t bytes) {
    if (bytes == 0) return;
    const machine::DataPlace place = place_of(address_of(at));
    if constexpr (copies_views) (void)core_.write(place, at, bytes).ok();  // a mapped region
    core_.publish(place, bytes);
  }
  void refresh(void* at, std::size_t bytes) {
    if (bytes == 0) return;
    const machine::DataPlace place = place_of(address_of(at));
    core_.refresh(place, bytes);
    if constexpr (copies_views) (void)core_.read(place, at, bytes).ok();  // a mapped region
  }
  void* map(Site site, std::uint64_t address, std::size_t bytes) {
    auto* const at = reinterpret_cast<void*>(address);
    if (!is_here(site) || !is_shared(address, bytes)) return nullptr;
    refresh(at, bytes);
    return at;
  }
  void unmap(Site, std::uint64_t, void* at, std::size_t bytes, bool written) {
    if (written) publish(at, bytes);
  }

 private:
  static std::uint64_t address_of(const void* at) { return reinterpret_cast<std::uintptr_t>(at); }
  bool is_here(Site site) const { return processes_[site] != of_another_host; }
  // In the part of one process.
  bool is_shared(std::uint64_t address, std::size_t bytes) const {
    if (shared_.part_bytes == 0 || address < shared_.first) return false;
    const std::uint64_t offset = address - shared_.first;
    return offset / shared_.part_bytes < shared_.parts && bytes <= shared_.part_bytes &&
           offset % shared_.part_bytes <= shared_.part_bytes - bytes;
  }
  machine::DataPlace place_of(std::uint64_t address) const {
    const std::uint64_t offset = address - shared_.first;
    return {static_cast<machine::Home>(offset / shared_.part_bytes),
            shared_.offset + offset % shared_.part_bytes};
  }

  C& core_;
  SharedParts shared_;
  const Heap& heap_;
  std::vector<std::int32_t> processes_;  // by site
  bool may_copy_;
};

}  // namespace tombolo::svp
