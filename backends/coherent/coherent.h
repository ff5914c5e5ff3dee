// SPDX-License-Identifier: Apache-2.0
// Purpose: the machine `coherent`: one host whose hardware keeps the caches coherent. Cores are
// threads or processes. publish, refresh and drain cost no instruction on x86; hardware coherence
// makes memory visible, ordered by the sync words.
//
// Invariants: CV1 a region without a mapping (DataRegion::memory == null) is reached by the
//                 kernel's copies, but for the part that is mapped (Attachment::parts); its home
//                 itself reaches it by address.
// Thread safety: every operation may be called from several threads at once.
#pragma once

#include <algorithm>
#include <atomic>
#include <span>
#include <utility>

#include "backends/coherent/attachment.h"
#include "base/copy.h"
#include "host/memory/foreign_memory.h"
#include "host/memory/long_copy.h"
#include "host/waiting/futex.h"
#include "host/waiting/host_waiting.h"
#include "machine/optional.h"

namespace tombolo::coherent {

class Core {
 public:
  using Word = std::atomic<std::uint64_t>*;
  using Attachment = coherent::Attachment;
  static constexpr machine::Properties properties{.name = "coherent",
                                                  .coherent = true,
                                                  .native_atomics = machine::Atomics::full,
                                                  .line_bytes = 64};
  static std::size_t reserved_sync_bytes(machine::Home) { return sizeof(host::Doorbell); }

  explicit Core(Attachment attachment) : at_(std::move(attachment)) {}

  machine::Home self() const { return at_.self; }
  machine::Home cores() const { return at_.cores; }

  Word word(machine::SyncPlace place) {
    return reinterpret_cast<Word>(block(place.home) + place.offset);
  }
  // seq_cst: an acquire load may overtake an atomic before it (an LDAPR of Arm does; R3). On x86
  // the two are one instruction.
  std::uint64_t load(Word word) { return word->load(std::memory_order_seq_cst); }
  void store(Word word, std::uint64_t v) { word->store(v, std::memory_order_release); }
  std::uint64_t fetch_add(Word word, std::uint64_t v) { return word->fetch_add(v); }
  std::uint64_t exchange(Word word, std::uint64_t v) { return word->exchange(v); }
  std::uint64_t compare_exchange(Word word, std::uint64_t expected, std::uint64_t desired) {
    word->compare_exchange_strong(expected, desired);
    return expected;
  }
  void fence() { std::atomic_thread_fence(std::memory_order_seq_cst); }

  template <class Predicate>
  Status wait_until(Word word, Predicate&& predicate) {
    return host::wait(at_.waiting, at_.idle, bell(at_.self), [&] { return predicate(load(word)); });
  }
  Status pause(std::uint64_t ns) { return host::pause(at_.waiting, at_.idle, ns); }
  void notify(machine::Home home) { bell(home).ring(); }
  // The kernel looks at the word and begins the sleep in one step.
  Status sleep_on(Word word, std::uint64_t seen) {
    host::sleep_on(host::low_half(*word), static_cast<std::uint32_t>(seen),
                   at_.waiting.sleep_us_max);
    return at_.idle != nullptr ? at_.idle->idle() : Status();
  }
  void wake_sleepers(Word word, std::uint32_t most) {
    host::wake(host::low_half(*word), static_cast<int>(most));
  }

  Status read(machine::DataPlace place, void* out, std::size_t bytes) {
    const machine::DataRegion& region = at_.data[place.home];
    const std::byte* const memory = mapped(region, place, bytes);
    if (memory == nullptr) [[unlikely]]
      return read_foreign(region, place, out, bytes);
    copy(out, memory, bytes);
    return {};
  }
  Status write(machine::DataPlace place, const void* in, std::size_t bytes) {
    return write_through(place, in, bytes);
  }
  [[gnu::always_inline]] Status write_through(machine::DataPlace place, const void* in,
                                              std::size_t bytes) {
    const machine::DataRegion& region = at_.data[place.home];
    std::byte* const memory = mapped(region, place, bytes);
    if (memory == nullptr) [[unlikely]]
      return write_foreign(region, place, in, bytes);
    copy(memory, in, bytes);
    return {};
  }
  // Hardware coherence does the work; the fences order this core's accesses and are free on x86.
  void publish(machine::DataPlace, std::size_t) { drain(); }
  void refresh(machine::DataPlace, std::size_t) {
    std::atomic_thread_fence(std::memory_order_acquire);
  }
  void drain() { std::atomic_thread_fence(std::memory_order_release); }
  void renew_pieces(machine::Home, std::span<const machine::DataPiece>) {
    std::atomic_thread_fence(std::memory_order_acq_rel);
  }
  Status read_pieces(machine::Home home, std::span<const machine::DataPiece> pieces) {
    const machine::DataRegion& region = at_.data[home];
    if (is_foreign(home)) [[unlikely]]
      return host::read_foreign(region.pid, region.foreign_address, pieces);
    for (const auto& [at, local, bytes] : pieces)
      if (bytes > 0) TOMBOLO_TRY(read({home, at}, local, bytes));
    return {};
  }
  Status write_pieces_through(machine::Home home, std::span<const machine::DataPiece> pieces) {
    const machine::DataRegion& region = at_.data[home];
    if (is_foreign(home)) [[unlikely]]
      return host::write_foreign(region.pid, region.foreign_address, pieces);
    for (const auto& [at, local, bytes] : pieces)
      if (bytes > 0) TOMBOLO_TRY(write_through({home, at}, local, bytes));
    return {};
  }

  std::byte* view(machine::DataPlace place) { return view(place, 1); }
  // Null unless all of `bytes` can be reached there.
  std::byte* view(machine::DataPlace place, std::size_t bytes) {
    const machine::DataRegion& region = at_.data[place.home];
    if (std::byte* const memory = mapped(region, place, bytes)) [[likely]]
      return memory;
    if (place.home != at_.self) return nullptr;
    return reinterpret_cast<std::byte*>(region.foreign_address) + place.offset;
  }
  std::uint64_t data_bytes(machine::Home home) const { return at_.data[home].bytes; }

 private:
  static void copy(void* to, const void* from, std::size_t bytes) {
    if (bytes >= host::long_copy_bytes) [[unlikely]]
      host::copy_long(to, from, bytes);
    else
      copy_bytes(to, from, bytes);
  }

  std::byte* block(machine::Home home) { return at_.sync + home * at_.sync_bytes_per_home; }
  host::Doorbell& bell(machine::Home home) {
    return *reinterpret_cast<host::Doorbell*>(block(home));
  }
  // Reached by the kernel's copies alone.
  bool is_foreign(machine::Home home) const {
    return at_.data[home].memory == nullptr && home != at_.self &&
           (at_.parts.empty() || at_.parts[home].bytes == 0);
  }
  // Where the bytes are mapped; null if not all of them are.
  std::byte* mapped(const machine::DataRegion& region, machine::DataPlace place,
                    std::size_t bytes) const {
    if (region.memory != nullptr) [[likely]]
      return region.memory + place.offset;
    if (at_.parts.empty()) return nullptr;
    const machine::RegionPart& part = at_.parts[place.home];
    const machine::Offset from_start = place.offset - part.start;  // huge if before it
    if (from_start < part.bytes && bytes <= part.bytes - from_start) [[likely]]
      return part.memory + from_start;
    return nullptr;
  }
  // How many of the bytes from `place` on are reached in one way.
  std::size_t alike(machine::DataPlace place, std::size_t bytes) const {
    if (at_.parts.empty()) return bytes;
    const machine::RegionPart& part = at_.parts[place.home];
    if (part.bytes == 0) return bytes;
    const machine::Offset end = part.start + part.bytes;
    if (place.offset < part.start) return std::min<std::uint64_t>(bytes, part.start - place.offset);
    return place.offset < end ? std::min<std::uint64_t>(bytes, end - place.offset) : bytes;
  }

  Status read_foreign(const machine::DataRegion& region, machine::DataPlace place, void* out,
                      std::size_t bytes) {
    const std::uint64_t address = region.foreign_address + place.offset;
    if (place.home == at_.self) {
      copy(out, reinterpret_cast<const void*>(address), bytes);
      return {};
    }
    const std::size_t n = alike(place, bytes);
    if (n == bytes) return host::read_foreign(region.pid, address, out, bytes);
    TOMBOLO_TRY(read(place, out, n));
    return read(place + n, static_cast<std::byte*>(out) + n, bytes - n);
  }
  Status write_foreign(const machine::DataRegion& region, machine::DataPlace place, const void* in,
                       std::size_t bytes) {
    const std::uint64_t address = region.foreign_address + place.offset;
    if (place.home == at_.self) {
      copy(reinterpret_cast<void*>(address), in, bytes);
      return {};
    }
    const std::size_t n = alike(place, bytes);
    if (n == bytes) return host::write_foreign(region.pid, address, in, bytes);
    TOMBOLO_TRY(write_through(place, in, n));
    return write_through(place + n, static_cast<const std::byte*>(in) + n, bytes - n);
  }

  Attachment at_;
};
static_assert(machine::Core<Core>);
static_assert(machine::extras_of<Core> == machine::Extras{.serves_pieces = true,
                                                          .views_ranges = true,
                                                          .maps_parts = true,
                                                          .sleeps_on_words = true});

}  // namespace tombolo::coherent
