// SPDX-License-Identifier: Apache-2.0
// Purpose: the machine `stale`: memory without cache coherence, emulated on any host, as stale and
// as hostile as the rules R1-R6 of machine/contract.h allow. Cores are threads or processes.
//
// How it works. Shared memory is DataRegion::memory. Each core has an image of every region, which
// reads, writes and a program's plain accesses through view() touch, and a twin: the bytes as last
// exchanged with memory. Bytes that were written are found by comparing the two.
//
// The emulation, and how hostile it is:
//   caches            a line stays in the image until it is refreshed or evicted, however old it is
//   write-back        whole lines: the stale neighbours of a written byte overwrite memory
//   eviction          one in `Attachment::evictions` operations evicts a random line, preferably a
//                     recently used or written one
//   write combining   write_throughs stay with the core, and reach memory at drain(), or line by
//                     line in random order: when the buffer overflows and at random
//   store buffer      about half of the stores to sync words are done some operations later: loads
//                     of other words overtake them (R3), a notify() does not
//
// Invariants:
//   ST1 Where the own region's image is the program's memory (Attachment::own_view), it is the
//       truth when the core is constructed: memory is made equal to it. Otherwise memory is the
//       truth. No core may touch the data of a home before that home's core exists.
//   ST2 A region is `open` if a program's plain loads reach it: the own region always, others after
//       expose() or view(). Since loads cannot be trapped, its lines are always in the image; an
//       eviction or refresh brings them from memory at once. In other regions a line comes from
//       memory when it is next read.
//   ST3 A deferred store never hangs a waiter. It is done at the latest: at the next atomic, fence,
//       pause, settle or close; when wait_until has to wait; 16 operations later; some milliseconds
//       later by a helper thread, even if the core never calls again (without a helper no store is
//       deferred). The wake-up of a notify() waits for the stores before it. settle() makes all
//       that immediate.
//   ST4 Memory is touched by relaxed atomic accesses only; images by plain ones (an image word is
//       replaced by compare-and-swap, so that a program's store at that moment is never lost).
//   ST5 A region without mapping (DataRegion::memory == null) is uncached: the kernel's copies do
//       every access at once, and publish and refresh have nothing to do.
//   ST6 A refresh drops the written bytes of its range, not their neighbours in the same line.
//   ST7 A core sees its own write_throughs at once, in memory they are later.
//   ST8 Lines are those of the hardware: regions that lie behind one another in a line (contiguous
//       shared memory) share it, and overwrite each other's bytes. They are open together.
//
// Limits: a program's plain store of the value that is already in its image is no write (write()
// has no such blind spot). Where two others wrote the lost bytes of a line, a finding names the
// last. A process forked off later must not use the core; its copy's destructor does nothing.
//
// Cost: a publish or refresh looks at each line of its range; untouched pages of ranges from 4 MiB
// on are skipped where the kernel tells (see page_presence.h).
//
// Thread safety: every operation may be called from several threads at once. A program's store into
// a range while another of its threads refreshes that range may be dropped, as by real caches.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "backends/stale/attachment.h"
#include "backends/stale/combining_buffer.h"
#include "backends/stale/findings.h"
#include "backends/stale/images.h"
#include "backends/stale/memory_bus.h"
#include "backends/stale/recent_lines.h"
#include "backends/stale/region_cache.h"
#include "backends/stale/settler.h"
#include "backends/stale/store_buffer.h"
#include "base/random.h"
#include "host/waiting/doorbell.h"
#include "host/waiting/host_waiting.h"
#include "machine/optional.h"

namespace tombolo::stale {

class Core final : private Settleable {
 public:
  using Word = StoreBuffer::Word;
  using Attachment = stale::Attachment;
  static constexpr machine::Properties properties{.name = "stale",
                                                  .coherent = false,
                                                  .native_atomics = machine::Atomics::full,
                                                  .line_bytes = line_bytes};
  static std::size_t reserved_sync_bytes(machine::Home) { return sizeof(host::Doorbell); }
  // For the board of findings, and behind it the ledger.
  static std::size_t shared_bytes(std::span<const machine::DataRegion> regions) {
    return Board::bytes() + MemoryBus::ledger_bytes(regions);
  }

  // Throws std::bad_alloc where there is no address space for the images.
  explicit Core(const Attachment& attachment);
  ~Core() override;  // closes
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  machine::Home self() const { return at_.self; }
  machine::Home cores() const { return at_.cores; }

  Word word(machine::SyncPlace place) {
    return reinterpret_cast<Word>(block(place.home) + place.offset);
  }
  std::uint64_t load(Word word);
  void store(Word word, std::uint64_t v);
  std::uint64_t fetch_add(Word word, std::uint64_t v);
  std::uint64_t exchange(Word word, std::uint64_t v);
  std::uint64_t compare_exchange(Word word, std::uint64_t expected, std::uint64_t desired);
  void fence();

  template <class Predicate>
  Status wait_until(Word word, Predicate&& predicate) {
    if (predicate(load(word))) return {};
    settle();  // after the first look, which like any load may overtake a store
    return host::wait(at_.waiting, at_.idle, bell(at_.self),
                      [&] { return predicate(word->load(std::memory_order_seq_cst)); });
  }
  Status pause(std::uint64_t ns) {
    settle();
    return host::pause(at_.waiting, at_.idle, ns);
  }
  void notify(machine::Home home);

  Status read(machine::DataPlace place, void* out, std::size_t bytes);
  Status write(machine::DataPlace place, const void* in, std::size_t bytes);
  Status write_through(machine::DataPlace place, const void* in, std::size_t bytes);
  void publish(machine::DataPlace place, std::size_t bytes);
  void refresh(machine::DataPlace place, std::size_t bytes);
  void drain();
  // Opens the region of another home (expose).
  std::byte* view(machine::DataPlace place);
  std::uint64_t data_bytes(machine::Home home) const { return at_.data[home].bytes; }

  // Beyond the contract (machine/optional.h) ----------------------------------------------------

  // Brings all lines of the region into the image, for programs that load from it (ST2).
  void expose(machine::Home home);
  void settle() override;
  void set_site(std::uint64_t site);
  void check_promise(machine::Promise promise);
  // Bytes that were never drained are brought to memory, as hardware would. The destructor closes
  // otherwise.
  void close();
  void hand_back();
  const Findings& findings() const { return findings_; }
  std::vector<machine::LossFact> take_losses();
  void losses_told();
  bool has_mistakes() { return findings_.board().has_mistakes(); }

 private:
  using Lock = std::unique_lock<std::recursive_mutex>;

  std::byte* block(machine::Home home) { return at_.sync + home * at_.sync_bytes_per_home; }
  host::Doorbell& bell(machine::Home home) {
    return *reinterpret_cast<host::Doorbell*>(block(home));
  }
  RegionCache* cache_of(machine::Home home) { return caches_[spans_.of(home)].get(); }
  machine::Offset in_span(machine::DataPlace place) const {
    return spans_.start_of(place.home) + place.offset;
  }
  // Random events happen at the start of an operation.
  void let_things_happen();
  void evict_something();
  void check(const char* operation, machine::DataPlace place, std::size_t bytes) const;
  void remember(machine::DataPlace place, std::size_t bytes);
  bool settle_if_free() override;  // called by the helper thread (ST3)
  Status read_foreign(machine::DataPlace place, void* out, std::size_t bytes);
  Status write_foreign(machine::DataPlace place, const void* in, std::size_t bytes);

  Attachment at_;
  std::recursive_mutex mutex_;  // guards everything below
  Random random_;
  Findings findings_;
  Spans spans_;
  MemoryBus bus_;
  CombiningBuffer combining_;
  Images images_;
  std::vector<std::unique_ptr<RegionCache>> caches_;  // by span; null for those without mapping
  StoreBuffer stores_;
  RecentLines recent_;
  bool closed_ = false;
  bool has_helper_ = false;  // settler.h
  pid_t process_;            // a forked child has a copy of the core that it must not use
};
static_assert(machine::Core<Core>);
static_assert(machine::extras_of<Core> == machine::Extras{.keeps_views_apart = true,
                                                          .defers_stores = true,
                                                          .wants_shared_memory = true,
                                                          .evicts_at_random = true,
                                                          .tells_losses = true,
                                                          .names_sites = true});

}  // namespace tombolo::stale
