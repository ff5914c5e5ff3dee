// SPDX-License-Identifier: Apache-2.0
// Purpose: the names and the sizes that all parts of virtual shared memory agree on.
//
// Invariants: DSH1 every thread is given the same Shape.
//             DSH2 a machine has a core for each thread, then one for each memory server. The homes
//                  are the memory servers, or the threads where there are none. Page p lives at
//                  home p mod homes, as the p / homes-th page there: memory is striped over them
//                  (003 section 5.3). Locks likewise, so that each has one home.
// Thread safety: plain values.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "dsm/protocol/tuning.h"
#include "machine/place.h"

namespace tombolo::dsm {

// A thread of the program, and the compute server with the page cache that it runs on: each has its
// own (003 section 5.2).
using Thread = machine::Home;
// A page of the global address space, from 0.
using Page = std::uint64_t;
using Lock = std::uint32_t;

struct Shape {
  Thread threads = 1;
  Thread servers = 0;  // memory servers apart from the threads
  Page pages = 1;
  std::size_t page_bytes = 4096;
  std::uint32_t cached_pages = 64;  // at most, by each thread
  Lock locks = 1;
  std::uint32_t notices = 1024;  // write notices that are kept for threads that are behind
  std::uint32_t updates = 64;    // updates likewise, for each lock
  std::uint32_t read_ahead = 0;  // pages at most that are brought besides a missed one
  // A thread has its pages where others get them from, page p in slot p: on coherent memory alone.
  bool in_place = false;
  Tuning tuning{};

  // Slots of each thread.
  Page exposed_pages() const { return in_place ? pages : cached_pages; }

  // Of the machine.
  Thread cores() const { return threads + servers; }
  Thread homes() const { return servers == 0 ? threads : servers; }
  Thread first_home() const { return servers == 0 ? 0 : threads; }

  Thread home_of(Page page) const { return first_home() + static_cast<Thread>(page % homes()); }
  Thread home_of_lock(Lock lock) const { return first_home() + lock % homes(); }
  // Among those of its home.
  Page place_of(Page page) const { return page / homes(); }
  Lock place_of_lock(Lock lock) const { return lock / homes(); }
  Page pages_per_home() const { return (pages + homes() - 1) / homes(); }
  Lock locks_per_home() const { return (locks + homes() - 1) / homes(); }

  void check(Page page) const {
    TOMBOLO_CHECK(page < pages, "virtual shared memory: page {} is past the {} pages", page, pages);
  }
  void check_lock(Lock lock) const {
    TOMBOLO_CHECK(lock < locks, "virtual shared memory: lock {} is past the {} locks", lock, locks);
  }
};

}  // namespace tombolo::dsm
