// SPDX-License-Identifier: Apache-2.0
// Purpose: hands out extents of one pool: a regular file (also a PCI resource file of ivshmem) or a
// DAX device that processes or hosts map together. A table at the head of the pool names the
// holder of each extent.
//
//   Pool pool;  TOMBOLO_TRY(Pool::open("/dev/dax0.0", pool));
//   Extent extent;  TOMBOLO_TRY(pool.allocate(bytes, extent));   // zero, aligned to be mapped
//   ... TOMBOLO_TRY(pool.free(extent));
//
// Layout: PoolHeader, then `capacity` ExtentRecords, then from `data_start` on the extents.
//
// Invariants: PO1 a record with bytes != 0 is in use; bytes is written last when a record is taken
//                 and first when it is freed, so that a process that dies in between leaves a table
//                 that holds.
//             PO2 a pool that holds anything but zeros or our header is refused, never overwritten.
//             PO3 extents in use do not overlap, and are multiples of the alignment.
//             PO4 an extent is reclaimed when its creator is certainly dead (host_identity.h) and
//                 no process of this host has it mapped (extent_hold.h).
//             PO5 the table is locked by flock, which excludes the processes of one host. So one
//                 host hands out extents, the manager, whom the header names; the others attach. A
//                 pool without extents in use goes to the next host that asks: it writes its name,
//                 then looks at the records, while a manager takes a record, then looks at the
//                 name. Two hosts that ask for an empty pool within `settling_ms` are told apart by
//                 that wait only: let one program come before the other. Records of other hosts and
//                 of earlier boots are never reclaimed.
//             PO6 an extent belongs to the user of its creator: only that user and root may attach
//                 to it and give it back, however many may open the file.
// Thread safety: distinct Pool objects may be used from distinct threads and processes.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/status.h"
#include "host/descriptor.h"
#include "host/processes/host_identity.h"
#include "host/segments/extent_hold.h"

namespace tombolo::host {

struct Extent {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;  // a multiple of the pool's alignment
  std::uint64_t nonce = 0;  // tells this extent from earlier ones at the same offset
};

struct PoolHeader {
  std::array<char, 8> magic;
  std::uint32_t version;
  std::uint32_t capacity;  // records
  std::uint64_t bytes;     // of the pool, when it was formatted
  std::uint64_t alignment;
  std::uint64_t data_start;
  std::uint64_t manager;  // boot_number() of the host that hands out extents; 0: none yet
  std::uint64_t unused[2];
};
static_assert(sizeof(PoolHeader) == 64);

// One line of memory, so that a record is written back without its neighbours.
struct ExtentRecord {
  std::uint64_t bytes;  // 0: free (PO1)
  std::uint64_t offset;
  std::uint64_t nonce;
  std::uint32_t pid_namespace;
  std::uint32_t user;  // of the creator
  std::uint64_t start_time;
  std::array<std::uint8_t, 16> boot;
  std::int32_t pid;
  std::uint32_t sealed;
};
static_assert(sizeof(ExtentRecord) == 64);

class Pool {
 public:
  // Opens `path` for use as a pool, and formats it if it is all zeros at its head. A file that is
  // formatted and belongs to this user is made accessible to this user only.
  static Status open(const std::string& path, Pool& out);

  // bad_configuration if another host manages the pool. `hold`: as in find().
  Status allocate(std::uint64_t bytes, Extent& out, ExtentHold* hold = nullptr);
  Status free(const Extent& extent);
  // Checks that the extent is in use, this user's and not sealed, and fills in its bytes. `hold`:
  // keeps it from being reclaimed while this process maps it.
  Status find(std::uint64_t offset, std::uint64_t nonce, Extent& out, ExtentHold* hold = nullptr);
  Status seal(const Extent& extent);

  int descriptor() const { return file_.get(); }
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t alignment() const { return alignment_; }

 private:
  class Table;
  Status format(Table& table);
  std::uint64_t table_bytes() const;
  std::uint32_t capacity() const;
  Status manage(Table& table);
  Status managed_elsewhere() const;
  Status clear(const Extent& extent);
  Status too_small() const;
  Status not_a_pool() const;
  bool head_is_zero() const;

  Descriptor file_;
  std::string path_;
  std::uint64_t bytes_ = 0;
  std::uint64_t alignment_ = 0;
  bool device_ = false;
};

// Size and alignment of the DAX device described in a folder of sysfs (/sys/dev/char/MAJOR:MINOR).
Status dax_shape(const std::string& sysfs, std::uint64_t& bytes, std::uint64_t& alignment);

}  // namespace tombolo::host
