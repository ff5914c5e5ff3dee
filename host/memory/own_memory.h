// SPDX-License-Identifier: Apache-2.0
// Purpose: which of this process's memory peers may reach by its address, through which windows, so
// that it is replaced by memory that they can map (replaced_memory.h) only while no other use may
// write to it.
//
//   OwnMemory::Use use = own_memory().enter(base, bytes);
//   if (const ReplacedMemory* memory = own_memory().replace(use, processes)) offer(memory->name());
//
// Invariants: OM1 memory is replaced, and given back, only while no other use overlaps it: a peer's
//                 write by the kernel's copies would be lost.
//             OM2 replaced memory is given back when the last use that overlaps it ends.
// Thread safety: yes.
#pragma once

#include <cstdint>
#include <list>
#include <mutex>
#include <set>
#include <utility>

#include "host/memory/address_space.h"
#include "host/memory/replaced_memory.h"

namespace tombolo::host {

class OwnMemory {
 public:
  // A range that peers may reach, from enter() to its destruction.
  class Use {
   public:
    Use() = default;
    Use(Use&& other) noexcept { *this = std::move(other); }
    Use& operator=(Use&& other) noexcept {
      std::swap(owner_, other.owner_);
      std::swap(range_, other.range_);
      return *this;
    }
    ~Use() { end(); }
    const AddressRange& range() const { return range_; }
    void end() {
      if (owner_ != nullptr) std::exchange(owner_, nullptr)->leave(range_);
    }

   private:
    friend class OwnMemory;
    OwnMemory* owner_ = nullptr;
    AddressRange range_;
  };

  Use enter(const void* start, std::uint64_t bytes);

  // Replaces the pages of the use's range that can be. Null if none could be, or if it overlaps
  // another use; otherwise valid until the use ends. To be called once for a use.
  ReplacedMemory* replace(const Use& use, std::uint64_t processes);

  // The first error since the last call that kept memory from being given back. The memory stays
  // shared, with its contents.
  Status take_error();

 private:
  struct ByStart {
    bool operator()(const AddressRange& a, const AddressRange& b) const {
      return a.low != b.low ? a.low < b.low : a.high < b.high;
    }
  };
  void leave(const AddressRange& range);
  std::size_t uses_of(const AddressRange& range) const;

  std::mutex mutex_;
  std::multiset<AddressRange, ByStart> uses_;
  std::uint64_t longest_ = 0;  // of all uses that ever were
  std::list<ReplacedMemory> replaced_;
  Status error_;
};

// That of this process; never destroyed, so that the end of a forked child changes nothing.
OwnMemory& own_memory();

}  // namespace tombolo::host
