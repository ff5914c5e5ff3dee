// SPDX-License-Identifier: Apache-2.0
// Purpose: whole pages of the program's own memory replaced in place by memory that peers can map,
// and given back as private memory afterwards. The program sees the same bytes at the same
// addresses all the time.
//
//   ReplacedMemory memory;
//   TOMBOLO_TRY(ReplacedMemory::take(pages, processes, memory));
//   ... peers attach to memory.name() ...
//   memory.seal();
//
// Invariants: RM1 pages that the program never touched stay untouched, here and afterwards: a
//                 sparse region costs no memory.
//             RM2 pages that the program unmapped, or mapped anew, while we had them are left alone
//                 when the memory is given back.
//             RM3 an error leaves the program's memory with its contents.
//             RM4 at every moment a load finds the program's bytes; a store of another thread
//                 during take() or give_back() may be lost.
// Thread safety: distinct objects may be used from distinct threads.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "host/memory/address_space.h"
#include "host/segments/descriptor.h"
#include "host/segments/segment.h"

namespace tombolo::host {

// The part of the region that take() may replace: of its whole pages the longest run of plain
// memory. Empty if there is none, or if devices may know the process's memory by physical address.
AddressRange replaceable_part(const AddressRange& region);

class ReplacedMemory {
 public:
  ReplacedMemory() = default;
  ReplacedMemory(ReplacedMemory&&) noexcept;
  ReplacedMemory& operator=(ReplacedMemory&&) noexcept;
  ~ReplacedMemory() { (void)give_back(); }

  // Replaces `pages`, all of them plain memory. Refused, among others, if the host lacks the
  // memory, or if so much of it was never touched that we would claim memory that others may need:
  // more than 64 MiB and more than an eighth of the free memory, shared by `processes`.
  static Status take(const AddressRange& pages, std::uint64_t processes, ReplacedMemory& out);

  const AddressRange& range() const { return range_; }
  const SegmentName& name() const { return segment_.name(); }
  // As Segment::seal().
  void seal() { segment_.seal(); }

  // The program's memory is private again, with the bytes put there. Nothing happens in a forked
  // child. If the kernel refuses, the memory stays shared, in whole or in part; its contents are
  // the same, and the error names the refused call.
  Status give_back();

 private:
  Status move_in(const AddressRange& part);
  Status write_file(AddressRange from) const;
  Status move_out(const AddressRange& part);
  bool stays_mapped(const AddressRange& part) const;
  Status give_back_mappings();
  bool file_is_ours() const;
  std::byte* alias(std::uint64_t address) const { return segment_.data() + (address - range_.low); }

  AddressRange range_;
  Segment segment_;  // its own mapping of the memory: ours, whatever becomes of the program's
  // Knows which pages hold something, which a mapping does not tell.
  Descriptor file_;
  std::uint64_t device_ = 0;
  std::uint64_t forks_ = 0;  // of this process, when it was replaced
};

}  // namespace tombolo::host
