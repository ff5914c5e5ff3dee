// SPDX-License-Identifier: Apache-2.0
// Purpose: the smallest machine that satisfies the contract, annotated for the author of another
// one. Cores are threads of one process; nothing is cached, so there is nothing to publish, refresh
// or drain. Each operation names the work of a machine with caches in its place. machine/PORTING.md
// walks through the same list. Copy this file to backends/NAME/NAME.h to begin.
//
// Invariants: XM1 every byte has one copy: its memory. view() is the memory itself.
// Thread safety: every operation may be called from several threads at once.
#pragma once

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "machine/optional.h"

namespace tombolo::machine::example {

class Core {
 public:
  // ---- Identity -------------------------------------------------------------------------------

  // A handle on a sync word: whatever makes the following load cheapest. A machine that reaches
  // words through a window or a message would keep a home and an offset here.
  using Word = std::atomic<std::uint64_t>*;

  static constexpr Properties properties{
      .name = "example",
      // True only if the three data operations cost nothing and view() is the memory. Algorithms
      // then leave out bookkeeping, never a publish or refresh itself.
      .coherent = true,
      // The hardware's. The atomics below work in any case: a machine with `none` builds
      // them upon a lock of plain words, in the bytes that it reserves for itself.
      .native_atomics = Atomics::full,
      // The unit of write-back. Algorithms keep the data of different cores apart by it.
      .line_bytes = 64};

  // The machine's own bytes at the head of each home's sync block: doorbells, locks, none. They may
  // grow with the number of cores. The block is zero when the first core starts.
  static std::size_t reserved_sync_bytes(Home) { return 0; }

  // A core is made of an Attachment and nothing else. Keep a copy: the memory it points at outlives
  // the core, the Attachment itself does not.
  explicit Core(const Attachment& attachment) : at_(attachment) {}

  Home self() const { return at_.self; }
  Home cores() const { return at_.cores; }

  // ---- Sync words (R3, R4, R5) ----------------------------------------------------------------

  // The address is computed: no core stores an address for each home.
  Word word(SyncPlace place) {
    return reinterpret_cast<Word>(at_.sync + place.home * at_.sync_bytes_per_home + place.offset);
  }

  // R5: data that is refreshed after this load is no older than memory was when the word was
  // stored. Without coherence: read around the caches, then keep later reads of data from starting
  // earlier. Here an acquire would do that; seq_cst also keeps the load behind an atomic before it
  // (R3).
  std::uint64_t load(Word word) { return word->load(std::memory_order_seq_cst); }

  // R4: ordered after everything published and drained. Here the release does it. Without
  // coherence: wait for outstanding write-backs, then write around the caches. It need not wait for
  // its own effect: a later load of another word may overtake it (R3).
  void store(Word word, std::uint64_t v) { word->store(v, std::memory_order_release); }

  // The atomics return the value before. Each is also a fence for sync words (R3).
  std::uint64_t fetch_add(Word word, std::uint64_t v) { return word->fetch_add(v); }
  std::uint64_t exchange(Word word, std::uint64_t v) { return word->exchange(v); }
  std::uint64_t compare_exchange(Word word, std::uint64_t expected, std::uint64_t desired) {
    word->compare_exchange_strong(expected, desired);  // leaves in `expected` the value it found
    return expected;
  }

  // The one order that store and load lack: earlier stores, publishes and drains before later
  // loads. Bakery locks and match vectors of plain words stand upon it.
  void fence() { std::atomic_thread_fence(std::memory_order_seq_cst); }

  // ---- Waiting (R6) ---------------------------------------------------------------------------

  // Never a bare loop: a Waiter polls briefly, gives the processor away and runs the idle hook,
  // whose error ends the wait. Once it wants to sleep, sleep as the machine can: here without
  // being woken, for a bounded time. `host/waiting` has a futex for cores on one host.
  template <class Predicate>
  Status wait_until(Word word, Predicate&& predicate) {
    Waiter waiter(at_.waiting, at_.idle);
    while (!predicate(load(word))) {
      TOMBOLO_TRY(waiter.step());
      if (waiter.wants_sleep()) std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    return {};
  }

  // For back-off. Must not touch shared memory while it waits, and must run the idle hook.
  Status pause(std::uint64_t ns) {
    std::this_thread::sleep_for(std::chrono::nanoseconds(ns));
    return at_.idle != nullptr ? at_.idle->idle() : Status{};
  }

  // A hint: a waiter that misses it must wake by itself. No core sleeps for a bell here.
  void notify(Home) {}

  // ---- Data (R1, R2) --------------------------------------------------------------------------

  // May come from a cache. The bytes it returns were in memory, or written by this core, at some
  // time since the last refresh of the range or before.
  Status read(DataPlace place, void* out, std::size_t bytes) {
    std::memcpy(out, memory(place), bytes);
    return {};
  }

  // May stay in a cache until publish, and then takes its whole line along (R2).
  Status write(DataPlace place, const void* in, std::size_t bytes) {
    std::memcpy(memory(place), in, bytes);
    return {};
  }

  // Must never write a byte outside the range, whatever its alignment: streaming stores, stores
  // followed by a flush on lines that are ours, uncached stores.
  Status write_through(DataPlace place, const void* in, std::size_t bytes) {
    return write(place, in, bytes);
  }

  // With caches: write back every dirty line of the range and wait for it. The range is any bytes:
  // round it to lines.
  void publish(DataPlace, std::size_t) { keep_order(); }

  // With caches: make every line of the range come from memory when next read, without writing back
  // stale bytes. And keep later reads from starting before it.
  void refresh(DataPlace, std::size_t) { keep_order(); }

  // With write-combining: empty the buffers and wait for them.
  void drain() { keep_order(); }

  // Where a program's own loads and stores go; they count as this core's cached reads and writes.
  std::byte* view(DataPlace place) { return memory(place); }
  std::uint64_t data_bytes(Home home) const { return at_.data[home].bytes; }

 private:
  std::byte* memory(DataPlace place) { return at_.data[place.home].memory + place.offset; }
  // The compiler is a cache too: it must not move accesses across the data operations.
  static void keep_order() { std::atomic_signal_fence(std::memory_order_seq_cst); }

  Attachment at_;
};

// The compiler names missing operations here.
static_assert(machine::Core<Core>);
// And here it compares the operations of machine/optional.h: none.
static_assert(machine::extras_of<Core> == machine::Extras{});

}  // namespace tombolo::machine::example
