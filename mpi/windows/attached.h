// SPDX-License-Identifier: Apache-2.0
// Purpose: the memory that each process attached to one dynamic window: its own, published where
// peers can read it by the kernel's copies, and a process's copy of a peer's.
//
//   attached.add(base, bytes); ... send attached.published() to the peers ...
//   AttachedView view;
//   if (!view.covers(range)) TOMBOLO_TRY(view.read(pid, address));
//
// Attaching is local: no peer is told. A view is read again when a range is missing in it, and the
// program synchronizes between attaching and the access, so that all it may access is found.
//
// Invariants: AT1 attached ranges do not overlap (MPI: it is erroneous to attach overlapping
//                 memory).
//             AT2 a view holds the ranges attached at one moment.
// Thread safety: Attached: any thread, and readers in other processes. AttachedView: one thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "base/status.h"
#include "host/images/own_memory.h"
#include "host/memory/address_space.h"

namespace tombolo::mpi {

class Attached {
 public:
  // Read by peers. The version is odd while the rest is changed.
  struct Table {
    std::atomic<std::uint64_t> version{0};
    std::atomic<std::uint64_t> count{0};
    std::atomic<std::uint64_t> ranges{0};  // the address of `count` times host::AddressRange
  };

  // False if the memory overlaps some that is attached.
  bool add(const void* base, std::uint64_t bytes);
  // False if no memory is attached there.
  bool remove(const void* base);

  // The address of the table in this process; valid as long as the object.
  std::uint64_t published() const { return reinterpret_cast<std::uint64_t>(&table_); }

 private:
  struct Entry {
    host::OwnMemory::Use use;
    std::size_t place;  // in listed_
  };
  class Change;

  std::mutex mutex_;
  std::map<std::uint64_t, Entry> entries_;  // by start
  std::multiset<std::uint64_t> empty_;      // attached with 0 bytes
  std::vector<host::AddressRange> listed_;  // in no order
  Table table_;
};

class AttachedView {
 public:
  // All of the bytes are attached, in one range or in several that follow each other.
  bool covers(const host::AddressRange& range) const;
  // As it is now, in process `pid`.
  Status read(std::int32_t pid, std::uint64_t published);

 private:
  std::vector<host::AddressRange> ranges_;  // ascending, none touches the next
};

}  // namespace tombolo::mpi
