// SPDX-License-Identifier: Apache-2.0
// Purpose: memory shared by processes of one host, or by hosts through a pool device. One process
// creates a segment and hands its name (plain bytes) to the others, which attach to it.
//
// Invariants: SG1 an anonymous segment has no name in any file system, so that no exit, crash or
//                 signal can leave it behind; a segment in a pool directory is unlinked as soon as
//                 the last process attached (or reclaimed by the next user if all were killed).
//             SG2 creation fails with no_memory, naming the bytes needed and the bytes free,
//                 instead of a SIGBUS at a later access.
//             SG3 only the creating user can attach.
// Thread safety: distinct segments may be used from distinct threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "host/segments/extent_hold.h"

namespace tombolo::host {

// All that a peer needs to attach. Trivially copyable, so that it can be broadcast.
struct SegmentName {
  std::uint64_t bytes = 0;
  std::uint64_t offset = 0;  // inside the file or device
  std::int32_t pid = 0;      // of the creator, for anonymous segments
  std::int32_t descriptor = -1;
  std::uint64_t inode = 0;      // of the anonymous file: guards against a reused pid or descriptor
  std::uint64_t alignment = 0;  // of the mapping in every process; a power of 2, or 0: of a page
  char path[200] = {};          // of the pool file or device; empty for anonymous segments
};

class Segment {
 public:
  Segment() = default;
  Segment(Segment&&) noexcept;
  Segment& operator=(Segment&&) noexcept;
  ~Segment();  // unmaps; the memory is freed with the last process that maps it

  // The way by which peers come to an anonymous segment.
  enum class Found : std::uint8_t {
    by_descriptor,  // /proc/PID/fd of the creator, where that works here
    by_path,        // a name in /dev/shm until seal(): where processes may not open each other's
  };

  // Anonymous memory of `bytes` > 0 bytes, zero, mapped here. `purpose` shows up in
  // /proc/self/maps.
  static Status create_anonymous(std::uint64_t bytes, const std::string& purpose, Segment& out,
                                 std::uint64_t alignment = 0, Found found = Found::by_descriptor);
  // Memory in `pool`: a directory (one file per segment), a regular file or a DAX device.
  static Status create_in_pool(const std::string& pool, std::uint64_t bytes, Segment& out,
                               std::uint64_t alignment = 0);
  // Maps the segment that a peer created. unsupported: the peer is there, but this process may not
  // open its file.
  static Status attach(const SegmentName& name, Segment& out);

  const SegmentName& name() const { return name_; }
  // To be called by the creator once every peer has attached (collective, after a barrier): the
  // segment can no longer be attached to, and nothing of it is left in any file system.
  void seal();

  std::byte* data() const { return data_; }
  std::uint64_t bytes() const { return name_.bytes; }

 private:
  static Status create_extent(const std::string& path, std::uint64_t bytes, std::uint64_t alignment,
                              Segment& out);
  std::uint64_t promised_bytes() const;

  SegmentName name_;
  std::byte* data_ = nullptr;
  std::uint64_t mapped_ = 0;  // bytes() rounded up to a size that can be mapped
  int descriptor_ = -1;       // open until seal(): a program may have many segments
  bool creator_ = false;      // in the process name_.pid only, not in its forked children
  bool sealed_ = false;
  ExtentHold hold_;  // of an extent of a pool
};

}  // namespace tombolo::host
