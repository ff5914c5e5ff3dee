// SPDX-License-Identifier: Apache-2.0
// Purpose: the machine `flushed`: memory that hosts map and do not snoop (a CXL pool, ivshmem, a
// DAX device; a file on one host for trials). Caches are real, and are written back and dropped by
// instructions of the processor (flush.h).
//
//   TOMBOLO_TRY(host::flush::available());
//   flushed::Core<machine::Atomics::full> core(attachment);
//
//   Core<full>  sync words are used with the host's atomics. Assumes that the pool keeps the words
//               coherent (a coherent part of the device, atomics in the device, or one host only).
//   Core<none>  a word is dropped from the cache before each load and stored past the cache; the
//               atomics are built from that (machine/emulation). Assumes only HF1 of flush.h, which
//               on Arm asks for a mapping of the sync words that is not cacheable.
//
// Invariants: FL1 a plain load or store of a program through view() is a cached access: stale until
//                 refresh, in memory after publish.
//             FL2 the doorbells are only hints: a sleep is bounded (doorbell.h, DB1), so that a
//                 core on another host, which no ring reaches, is late but never stuck. Where the
//                 kernel cannot sleep on the pool's memory, cores sleep by time.
//             FL3 regions without a mapping are memory of this host, reached by the kernel.
//             FL4 refresh writes a dirty line back before it drops it, more than the contract asks:
//                 a store that another thread makes between a publish and a refresh is not lost. It
//                 is in memory a little earlier, and its page still counts as written.
// Thread safety: Core<full> may be used by several threads at once, Core<none> by one at a time.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <span>
#include <thread>
#include <utility>

#include "backends/flushed/written_regions.h"
#include "base/check.h"
#include "base/copy.h"
#include "host/flush/flush.h"
#include "host/memory/foreign_memory.h"
#include "host/waiting/host_waiting.h"
#include "machine/emulation/atomics_by_bakery.h"
#include "machine/optional.h"

namespace tombolo::flushed {

namespace flush = host::flush;

// All operations but those of the sync words.
class Common {
 public:
  static constexpr machine::Properties properties_with(machine::Atomics atomics) {
    return {.name = atomics == machine::Atomics::full ? "flushed" : "flushed-none",
            .coherent = false,
            .native_atomics = atomics,
            .line_bytes = flush::line_bytes};
  }
  static std::size_t reserved_sync_bytes(machine::Home) { return sizeof(host::Doorbell); }

  explicit Common(machine::Attachment attachment);

  machine::Home self() const { return at_.self; }
  machine::Home cores() const { return at_.cores; }

  Status pause(std::uint64_t ns) { return host::pause(at_.waiting, at_.idle, ns); }
  void notify(machine::Home home) {
    if (can_ring_) bell(home).ring();
  }

  Status read(machine::DataPlace place, void* out, std::size_t bytes) {
    const machine::DataRegion& region = at_.data[place.home];
    if (region.memory == nullptr) [[unlikely]]
      return read_unmapped(region, place, out, bytes);
    std::memcpy(out, region.memory + place.offset, bytes);
    return {};
  }
  Status write(machine::DataPlace place, const void* in, std::size_t bytes) {
    const machine::DataRegion& region = at_.data[place.home];
    if (region.memory == nullptr) [[unlikely]]
      return write_unmapped(region, place, in, bytes);
    std::memcpy(region.memory + place.offset, in, bytes);
    return {};
  }
  Status write_through(machine::DataPlace place, const void* in, std::size_t bytes) {
    const machine::DataRegion& region = at_.data[place.home];
    if (region.memory == nullptr) [[unlikely]]
      return write_unmapped(region, place, in, bytes);
    flush::write_through(*by_, region.memory + place.offset, in, bytes);
    if (drains_at_once_) drain();  // the drain of another thread does not wait for these bytes
    return {};
  }
  void several_threads() { drains_at_once_ = true; }
  // FL3: this host's own memory needs neither publish nor refresh.
  void publish(machine::DataPlace place, std::size_t bytes) {
    if (std::byte* memory = at_.data[place.home].memory)
      flush::publish(*by_, memory + place.offset, bytes);
  }
  // Of a large region only the pages that were written to since.
  void publish_written(machine::Home home) {
    const machine::DataRegion& region = at_.data[home];
    if (region.memory != nullptr) written_->publish(*by_, home, region.memory, region.bytes);
  }
  void refresh(machine::DataPlace place, std::size_t bytes) {
    if (std::byte* memory = at_.data[place.home].memory)
      flush::refresh(*by_, memory + place.offset, bytes);
  }
  void renew_pieces(machine::Home home, std::span<const machine::DataPiece> pieces) {
    if (const std::byte* memory = at_.data[home].memory) flush::renew_pieces(*by_, memory, pieces);
  }
  Status read_pieces(machine::Home home, std::span<const machine::DataPiece> pieces);
  Status write_pieces_through(machine::Home home, std::span<const machine::DataPiece> pieces);
  void drain() { by_->drain(); }

  std::byte* view(machine::DataPlace place) {
    const machine::DataRegion& region = at_.data[place.home];
    if (region.memory != nullptr) [[likely]]
      return region.memory + place.offset;
    if (place.home != at_.self) return nullptr;
    return reinterpret_cast<std::byte*>(region.foreign_address) + place.offset;
  }
  std::uint64_t data_bytes(machine::Home home) const { return at_.data[home].bytes; }

 protected:
  std::byte* block(machine::Home home) { return at_.sync + home * at_.sync_bytes_per_home; }
  const flush::Policy& by() const { return *by_; }
  // For tests: `by` outlives the core.
  void use(const flush::Policy& by) { by_ = &by; }

  // Polls ready(), then gives the processor away, then sleeps (FL2).
  template <class Ready>
  Status wait(Ready&& ready) {
    if (can_ring_) [[likely]]
      return host::wait(at_.waiting, at_.idle, bell(at_.self), ready);
    return wait_by_time(ready);
  }

 private:
  host::Doorbell& bell(machine::Home home) {
    return *reinterpret_cast<host::Doorbell*>(block(home));
  }
  template <class Ready>
  Status wait_by_time(Ready&& ready);
  Status read_unmapped(const machine::DataRegion& region, machine::DataPlace place, void* out,
                       std::size_t bytes);
  Status write_unmapped(const machine::DataRegion& region, machine::DataPlace place, const void* in,
                        std::size_t bytes);

  machine::Attachment at_;
  const flush::Policy* by_;
  bool drains_at_once_ = false;
  std::unique_ptr<WrittenRegions> written_;
  bool can_ring_;  // the kernel can sleep on the pool's memory, and wakes all cores
};

inline Common::Common(machine::Attachment attachment)
    : at_(std::move(attachment)),
      by_(&flush::policy()),
      written_(std::make_unique<WrittenRegions>()),
      can_ring_(false) {
  TOMBOLO_CHECK(by_->error.ok(), "flushed: {}; ask host::flush::available() first",
                by_->error.message());
  // A wake-up without sleepers tells whether this kernel can find the memory behind the word.
  can_ring_ = !at_.several_hosts &&
              syscall(SYS_futex, &bell(at_.self).rings, FUTEX_WAKE, 0, nullptr, nullptr, 0) >= 0;
}

template <class Ready>
Status Common::wait_by_time(Ready&& ready) {
  constexpr std::uint32_t shortest_us = 20;
  machine::Waiter waiter(at_.waiting, at_.idle);
  std::uint32_t us = shortest_us;
  while (!ready()) {
    Status error;
    if (!waiter.wants_sleep()) {
      error = waiter.step();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(us));
      us = std::min(us * 2, std::max(shortest_us, at_.waiting.sleep_us_max));
      error = waiter.idle();
    }
    // As in host::wait.
    if (!error.ok()) [[unlikely]]
      return ready() ? Status{} : error;
  }
  return {};
}

inline Status Common::read_unmapped(const machine::DataRegion& region, machine::DataPlace place,
                                    void* out, std::size_t bytes) {
  const std::uint64_t address = region.foreign_address + place.offset;
  if (place.home != at_.self) return host::read_foreign(region.pid, address, out, bytes);
  std::memcpy(out, reinterpret_cast<const void*>(address), bytes);
  return {};
}

inline Status Common::write_unmapped(const machine::DataRegion& region, machine::DataPlace place,
                                     const void* in, std::size_t bytes) {
  const std::uint64_t address = region.foreign_address + place.offset;
  if (place.home != at_.self) return host::write_foreign(region.pid, address, in, bytes);
  std::memcpy(reinterpret_cast<void*>(address), in, bytes);
  return {};
}

inline Status Common::read_pieces(machine::Home home, std::span<const machine::DataPiece> pieces) {
  const machine::DataRegion& region = at_.data[home];
  if (region.memory == nullptr && home != at_.self)
    return host::read_foreign(region.pid, region.foreign_address, pieces);
  const std::byte* const memory = view({home, 0});
  for (const auto& [at, local, bytes] : pieces) copy_bytes(local, memory + at, bytes);
  return {};
}

inline Status Common::write_pieces_through(machine::Home home,
                                           std::span<const machine::DataPiece> pieces) {
  const machine::DataRegion& region = at_.data[home];
  if (region.memory == nullptr && home != at_.self)
    return host::write_foreign(region.pid, region.foreign_address, pieces);
  std::byte* const memory = view({home, 0});
  for (const auto& [at, local, bytes] : pieces) {
    if (region.memory == nullptr)
      copy_bytes(memory + at, local, bytes);  // FL3
    else
      flush::write_through(*by_, memory + at, local, bytes);
  }
  if (drains_at_once_) drain();  // the drain of another thread does not wait for these bytes
  return {};
}

// Sync words by loads and stores in memory; the base of Core<none>.
class LoadsAndStores : public Common {
 public:
  using Word = std::uint64_t*;
  static constexpr machine::Properties properties = properties_with(machine::Atomics::none);
  using Common::Common;

  Word word(machine::SyncPlace place) {
    return reinterpret_cast<Word>(block(place.home) + place.offset);
  }
  std::uint64_t load(Word word) { return flush::load_word(by(), word); }
  void store(Word word, std::uint64_t v) { flush::store_word(by(), word, v); }
  void fence() { flush::cpu::full_fence(); }

  template <class Predicate>
  Status wait_until(Word word, Predicate&& predicate) {
    return wait([&] { return predicate(load(word)); });
  }
};

template <machine::Atomics A>
class Core;

template <>
class Core<machine::Atomics::full> : public Common {
 public:
  using Word = std::atomic<std::uint64_t>*;
  static constexpr machine::Properties properties = properties_with(machine::Atomics::full);
  using Common::Common;

  Word word(machine::SyncPlace place) {
    return reinterpret_cast<Word>(block(place.home) + place.offset);
  }
  // Later plain loads and refreshes stay behind it (R5); seq_cst: it does not overtake an atomic
  // before it, as an acquire load may (an LDAPR of Arm; R3).
  std::uint64_t load(Word word) { return word->load(std::memory_order_seq_cst); }
  // release: behind everything published or drained, whose fences are complete (R4).
  void store(Word word, std::uint64_t v) { word->store(v, std::memory_order_release); }
  std::uint64_t fetch_add(Word word, std::uint64_t v) { return word->fetch_add(v); }
  std::uint64_t exchange(Word word, std::uint64_t v) { return word->exchange(v); }
  std::uint64_t compare_exchange(Word word, std::uint64_t expected, std::uint64_t desired) {
    word->compare_exchange_strong(expected, desired);
    return expected;
  }
  void fence() { flush::cpu::full_fence(); }

  template <class Predicate>
  Status wait_until(Word word, Predicate&& predicate) {
    return wait([&] { return predicate(load(word)); });
  }
};

template <>
class Core<machine::Atomics::none> : public machine::AtomicsByBakery<LoadsAndStores> {
 public:
  using machine::AtomicsByBakery<LoadsAndStores>::AtomicsByBakery;
};

static_assert(machine::Core<Core<machine::Atomics::full>>);
static_assert(machine::Core<Core<machine::Atomics::none>>);
static_assert(machine::extras_of<Core<machine::Atomics::full>> ==
              machine::Extras{
                  .publishes_written = true, .serves_pieces = true, .is_told_of_threads = true});
static_assert(machine::extras_of<Core<machine::Atomics::none>> ==
              machine::Extras{.publishes_written = true,
                              .serves_pieces = true,
                              .stores_alone = true,
                              .is_told_of_threads = true});

}  // namespace tombolo::flushed
