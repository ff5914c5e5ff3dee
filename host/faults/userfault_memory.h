// SPDX-License-Identifier: Apache-2.0
// Purpose: guarded memory by userfaultfd, which sends SIGBUS to the thread that meets a closed page
// (UFFD_FEATURE_SIGBUS): no other thread takes part, and no mapping is split.
//
//   page                  in the view's page table                      an access is
//   closed, no memory     nothing                                       a "missing" fault
//   closed, with memory   nothing                                       a "minor" fault
//   readable              the page, with the bit of write protection    a fault if it stores
//   writable              the page
//
// A page without memory is filled and opened by one call of the kernel, which takes half as long as
// two page faults of this library: one for the alias, and one that finds and clears the memory.
//
// Invariants: HUM1 the descriptor belongs to the process that made it: a forked child's copy would
//                  change the memory of its parent, and is not used (HGM2).
// Thread safety: that of guarded_memory.h.
#pragma once

#include "host/descriptor.h"
#include "host/faults/guarded_memory.h"

namespace tombolo::host {

class UserfaultMemory : public GuardedMemory {
 public:
  static Status create(std::uint64_t bytes, const Place& place,
                       std::unique_ptr<GuardedMemory>& out);
  FaultMechanism mechanism() const override { return FaultMechanism::userfault; }
  Status fill(const AddressRange& pages, std::span<const std::byte> bytes, Access& access) override;
  Status change(const AddressRange& pages, Access from, Access to) override;
  Status close(std::span<const AddressRange> ranges) override;
  Status discard(const AddressRange& pages) override { return give_back(pages); }

 private:
  Status open_userfault();
  Status watch_view();
  Status map_pages(AddressRange pages, Access access);
  int map_at_once(const AddressRange& pages, Access access, std::uint64_t& mapped);
  Status protect(const AddressRange& pages, bool from_writes);
  Status close_one(const AddressRange& pages);
  bool close_many(std::span<const AddressRange> ranges);

  Descriptor userfault_;
  Descriptor this_process_;     // for closing many ranges by one call; invalid: the kernel cannot
  bool maps_protected_ = true;  // in one call; since Linux 6.4
};

}  // namespace tombolo::host
