// SPDX-License-Identifier: Apache-2.0
// Purpose: publishes of a large region only the pages that the program has written to since the
// last time, as far as the kernel can tell (host/memory/write_watch.h), instead of all its lines.
//
//   regions.publish(by, home, memory, bytes);      // as host::flush::publish(by, memory, bytes)
//
// The choice follows the pages that were found: a page that was written costs a page fault more
// than its lines cost to write back. So small regions are published whole, and so is one of which
// much is written each time, but for a look now and then whether it still is.
//
// Invariants: WR1 when publish returns, all that this process stored to the region before the call
//                 is in memory (but for the stores that write_watch.h says are not seen): it was
//                 written back by this call, by an earlier one after the store, or by one that
//                 ended before this one began to look. Hence one call at a time, write-backs
//                 included.
//             WR2 whenever something goes wrong, the whole region is published: no permission, an
//                 old kernel, memory that cannot be watched, a forked child.
// Thread safety: yes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "host/flush/flush.h"
#include "host/memory/write_watch.h"
#include "machine/place.h"

namespace tombolo::flushed {

class WrittenRegions {
 public:
  // Write-back of a smaller region costs little more than a look at it.
  static constexpr std::uint64_t least_bytes = 16384;
  // So many publishes of the whole at most between two looks.
  static constexpr std::uint32_t longest_rest = 256;

  void publish(const host::flush::Policy& by, machine::Home home, const std::byte* memory,
               std::uint64_t bytes);

 private:
  class Region {
   public:
    Region(machine::Home home, const std::byte* memory, std::uint64_t bytes);
    machine::Home home() const { return home_; }
    void publish(const host::flush::Policy& by);

   private:
    bool publish_written(const host::flush::Policy& by);
    void judge(std::uint64_t written);

    machine::Home home_;
    const std::byte* memory_;
    std::uint64_t bytes_;
    const std::byte* pages_;        // the whole pages inside
    std::uint64_t page_bytes_ = 0;  // of all of them
    std::unique_ptr<host::WriteWatch> watch_;
    bool judging_ = false;  // the pages were all protected by the last publish
    std::uint32_t rest_ = 0;
    std::uint32_t next_rest_ = 1;
  };

  std::mutex mutex_;
  std::vector<Region> regions_;  // one, or one for each process if all store to all regions
};

}  // namespace tombolo::flushed
