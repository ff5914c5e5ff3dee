// SPDX-License-Identifier: Apache-2.0
// Purpose: counts, page by page, how often a thread missed it, fetched it and sent its changes
// home, and from which instructions it was missed.
//
//   heat.fault(page, offset, true, instruction);     // in a signal handler
//   for (const HotPage& each : heat.hottest()) ...
//
// Invariants: DPH1 fault(), fetched() and sent() allocate nothing, take no lock and make no system
//                  call: they are called from the handler of a page fault.
// Memory: 12 bytes for each page of the shape in runs of 1024 that were touched, and 448 KiB.
// Thread safety: one thread for each object.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "dsm/protocol/shape.h"
#include "host/memory/zero_memory.h"

namespace tombolo::dsm {

// Accesses of one instruction that missed a page.
struct MissSite {
  std::uint64_t code = 0;  // a place of runtime/findings/call_sites.h; 0: not known
  std::uint32_t loads = 0;
  std::uint32_t stores = 0;
  std::uint32_t low = 0;  // of the first bytes of the accesses, in the page
  std::uint32_t high = 0;
};

// Trivially copyable: processes send it to each other.
struct HotPage {
  static constexpr std::size_t most_sites = 4;
  Page page = 0;
  std::uint32_t faults = 0;  // 0: no page
  std::uint32_t fetches = 0;
  std::uint32_t sent = 0;  // differences and whole pages
  std::array<MissSite, most_sites> sites{};
};

class PageHeat {
 public:
  static constexpr std::size_t most_hot = 32;

  explicit PageHeat(const Shape& shape);
  // Whether there was address space for the counts.
  bool ready() const { return counts_ && touched_ && sites_; }

  // `offset`: in the page. `instruction`: null if it is not known, as before a system call.
  void fault(Page page, std::uint64_t offset, bool store, const void* instruction);
  void fetched(Page page) { ++at(page).fetches; }
  void sent(Page page) { ++at(page).sent; }

  // Those with the most faults, the first one first; the rest has none.
  std::array<HotPage, most_hot> hottest() const;

 private:
  struct Counts {
    std::uint32_t faults, fetches, sent;
  };
  struct Site {
    Page page_and_1;  // 0: free
    const void* instruction;
    MissSite uses;
  };
  static constexpr Page pages_in_run = 1024;
  static constexpr std::size_t most_sites = 8192;
  static constexpr std::size_t most_probes = 16;

  Counts& at(Page page);
  Site* site(Page page, const void* instruction);
  void add_sites(HotPage& page) const;

  Shape shape_;
  host::ZeroMemory counts_;
  host::ZeroMemory touched_;  // a byte for each run of pages
  host::ZeroMemory sites_;
};

}  // namespace tombolo::dsm
