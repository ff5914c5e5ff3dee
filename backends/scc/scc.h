// SPDX-License-Identifier: Apache-2.0
// Purpose: the machine `scc`: a core of the simulated chip behind the machine contract, so that
// sync/ and windows/ run on it unchanged (000 sections 3.4 and 4.2, 001 section 5).
//
//   sync words   in the legacy shared memory of the controller of their home's domain, not cached;
//                the atomics stand upon the home's test-and-set register (001 section 5.5)
//   data         in the public pages of their home (POPSHM), mapped as Job says; a peer's pages are
//                mapped into free entries of the lookup table when they are first used
//
// The data operations, by memory type:
//                publish             refresh                   write_through
//   NCM          wait                -                         store
//   MPBT-WT      dummy store, wait   CL1INVMB                  store
//   MPBT-WB      WBINVD if L1 may    the same, or CL1INVMB     the same if L1 may hold the lines,
//                hold stores                                   then store
//   DCM          WBINVD, L2 flush    the same                  the same if a cache may hold the
//                                                              lines, then store
//   WT           as MPBT-WT          invalidate                store
// and selective where the chip has instructions for it. With Job::as_prototype they are those of
// the papers' prototype whatever the type: the dummy store and CL1INVMB (000 section 4.3.3), which
// do nothing for DCM and drop stores that hit MPBT-WB lines.
//
// Invariants: SC1 a store that waits in L1 for its write-back is never dropped by CL1INVMB (but by
//                 the prototype's): this machine knows whether there may be one, and writes L1 back
//                 instead.
//             SC2 an entry of the lookup table gets another page only after this core's writes are
//                 in memory and its MPBT lines are gone.
// Thread safety: a core belongs to its program.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "backends/scc/cpu.h"
#include "machine/emulation/atomics_by_test_and_set.h"
#include "machine/optional.h"

namespace tombolo::scc {

// Where the parts of a program on the chip lie; the same for all its cores.
struct Placement {
  MemoryType own = MemoryType::mpbt_wt;    // how a core maps its own data
  MemoryType peers = MemoryType::mpbt_wt;  // and those of others
  bool as_prototype = false;
  // Sync words of all homes at this controller, instead of their own domain's; -1: their own.
  std::int32_t sync_controller = -1;
  std::uint64_t sync_offset = 0;  // of the first byte in the legacy shared memory
  std::uint64_t data_offset = 0;  // of the first byte in the public pages of each home
};

// The attachment of a core, from a Job, with more than every machine's.
struct Attachment : machine::Attachment {
  Cpu* cpu = nullptr;
  Placement placement = {};
  const std::vector<CoreId>* core_of_home = nullptr;
};

namespace detail {

// All of the machine but its atomics.
class Base {
 public:
  using Home = machine::Home;
  using DataPlace = machine::DataPlace;
  using Attachment = scc::Attachment;
  struct Word {
    View view;
  };

  static constexpr machine::Properties properties{.name = "scc",
                                                  .coherent = false,
                                                  .native_atomics = machine::Atomics::test_and_set,
                                                  .line_bytes = 32};
  // Programs reach data by read and write: there are no pointers into simulated memory.
  static constexpr bool has_views = false;
  static std::size_t reserved_sync_bytes(Home) { return 0; }

  explicit Base(const Attachment& at);

  Home self() const { return self_; }
  Home cores() const { return cores_; }
  Cpu& cpu() { return cpu_; }

  Word word(machine::SyncPlace place) const { return {sync(place)}; }
  std::uint64_t load(Word word) { return cpu_.load<std::uint64_t>(word.view); }
  void store(Word word, std::uint64_t v) { cpu_.store(word.view, v); }
  // This core's stores are in order, and a load waits for the store before it (Cpu, CU3).
  void fence() { cpu_.wait_for_writes(); }

  template <class Predicate>
  Status wait_until(Word word, Predicate&& predicate) {
    // Polled, as the papers do: the polls are part of the load on the mesh and the controllers.
    while (!predicate(load(word))) {
      cpu_.compute(cpu_.timing().loop);
      TOMBOLO_TRY(idle());
    }
    return {};
  }
  Status pause(std::uint64_t ns);
  void notify(Home) {}  // waiters poll

  bool test_and_set(Home home) { return cpu_.test_and_set(core_of(home)); }
  void clear(Home home) { cpu_.clear(core_of(home)); }

  Status read(DataPlace place, void* out, std::size_t bytes);
  Status write(DataPlace place, const void* in, std::size_t bytes);
  Status write_through(DataPlace place, const void* in, std::size_t bytes);
  void publish(DataPlace place, std::size_t bytes);
  void refresh(DataPlace place, std::size_t bytes);
  void drain();
  std::byte* view(DataPlace) { return nullptr; }
  std::uint64_t data_bytes(Home home) const { return data_bytes_.at(home); }

  // A region is as cheap to refresh as a word is to load: there is no need to find out whether it
  // must be.
  bool refreshes_at_once() const;

  // Memory of this core's own, in which the program keeps the data that it puts from and gets into.
  // Reads and writes of data that come from or go to it pay for it as for cached memory. The bytes
  // are the host's; the time is the chip's.
  std::byte* allocate(std::size_t bytes);
  // The program's own loads and stores of such memory, for their time.
  void touch_read(const void* from, std::size_t bytes);
  void touch_write(const void* to, std::size_t bytes);

 private:
  struct Buffer {
    std::unique_ptr<std::byte[]> bytes;
    std::size_t size;
    Address address;
  };

  CoreId core_of(Home home) const { return (*homes_)[home]; }
  Status idle();
  View sync(machine::SyncPlace place) const { return sync_blocks_[place.home] + place.offset; }
  View data(DataPlace place);
  View peer(DataPlace place);
  std::uint32_t map_peer_page(Home home, std::uint32_t page);
  template <class Use>
  void each_page(DataPlace place, std::size_t bytes, Use&& use);
  MemoryType type_of_home(Home home) const {
    return home == self_ ? placement_.own : placement_.peers;
  }
  static bool keeps_stores(MemoryType type) { return in_l1(type) && !writes_through_l1(type); }
  void copy_out(DataPlace place, const std::byte* in, std::size_t bytes, bool kept, bool by_engine);
  void forget_lines(MemoryType type);
  struct Put {
    DataPlace place;
    std::size_t bytes;
  };
  void note_put(DataPlace place, std::size_t bytes, std::vector<Put>& puts);
  void note_published(DataPlace place, std::size_t bytes);
  const Buffer* buffer_of(const void* p) const;
  View view_of(const Buffer& buffer, const void* p) const;

  static constexpr std::byte zeros[32] = {};

  Cpu& cpu_;
  Chip& chip_;
  Placement placement_;
  const std::vector<CoreId>* homes_;
  machine::IdleHook* idle_;
  std::uint64_t polls_ = 0;
  Home self_;
  Home cores_;
  std::size_t sync_bytes_per_home_;
  std::vector<std::uint64_t> data_bytes_;
  std::vector<View> sync_blocks_;  // by home
  struct Mapping {
    std::int64_t key = -1;  // home and page
    std::uint64_t uses = 0;
  };
  std::vector<Mapping> mappings_;            // by free entry of the lookup table
  std::vector<std::int32_t> entry_of_page_;  // by home and page; -1: not mapped
  // The data that caches may hold: of memory that L2 holds as well, and of memory that only L1
  // does.
  struct Held {
    bool lines = false;   // that were read since they were last invalidated
    bool stores = false;  // SC1: that hit such lines since they were last written back
  };
  Held& held(MemoryType type) { return held_[scc::in_l2(type) ? 1 : 0]; }
  Held held_[2];
  // Data whose lines others' caches are to lose once the bytes are in memory: at the next drain,
  // or, where this core's caches may keep the bytes, after their publish.
  std::vector<Put> puts_;
  std::vector<Put> cached_puts_;
  std::vector<Buffer> buffers_;
};

}  // namespace detail

using Core = machine::AtomicsByTestAndSet<detail::Base>;
static_assert(machine::Core<Core>);
static_assert(machine::extras_of<Core> == machine::Extras{.refreshes_at_once = true,
                                                          .has_no_views = true,
                                                          .stores_alone = true});

}  // namespace tombolo::scc
