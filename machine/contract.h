// SPDX-License-Identifier: Apache-2.0
// Purpose: the machine contract: the operations of a machine without cache coherence.
// An algorithm is a template over a type that satisfies `Core`; it never names a machine. The
// operations that a machine may offer beyond it are in machine/optional.h;
// machine/example_machine.h is the annotated example, machine/PORTING.md the guide.
//
// A core is one execution context with its own private caches: a thread, a process, a simulated
// core. It uses memory in two ways:
//   sync words   8-byte words that no cache may hold (load, store, the atomics, fence)
//   data         bytes that may be cached (read, write, write_through, publish, refresh, drain), or
//                touched by plain loads and stores of a program through view()
//
// Rules that hold on every machine:
//   R1  A cached line may be evicted at any moment: written data may reach memory early, and its
//       stale neighbours in the line with it. Nothing may rely on a line staying.
//   R2  Write-back works in whole lines of `properties.line_bytes`. A core that must not touch its
//       neighbours' bytes uses write_through.
//   R3  load and store are done in memory in program order, but a load may overtake an earlier
//       store to another word, publish or drain (as on x86, where a store fence holds back no
//       load); fence() and every atomic operation prevent that.
//   R4  A store or atomic operation is ordered after everything this core published or drained
//       before it, not after a write_through that was not drained, nor a write not published.
//   R5  Bytes that a core refreshes after it has loaded a word are no older than memory was when
//       the word was stored.
//   R6  wait_until waits on words of the core's own home only. A core that changes such a word
//       calls notify(home) afterwards; without it the waiter may sleep up to
//       WaitPolicy::sleep_us_max.
// Thread safety: a core may be used by one thread at a time unless its machine says more.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "machine/place.h"

namespace tombolo::machine {

enum class Atomics : std::uint8_t {
  full,          // fetch_add, exchange, compare_exchange in memory
  test_and_set,  // one register per home; the rest is built upon it
  none,          // only loads and stores; the rest is built upon a lock of plain words
};

struct Properties {
  std::string_view name;
  // publish, refresh and drain cost nothing, and view() is the memory itself. Algorithms use it
  // only to leave out bookkeeping that serves nothing but later publishes and refreshes.
  bool coherent;
  Atomics native_atomics;  // the hardware's; the contract's atomics work in any case
  std::size_t line_bytes;
};

namespace detail {

template <class C>
struct AttachmentOf {
  using type = Attachment;
};
template <class C>
requires std::derived_from<typename C::Attachment, Attachment>
struct AttachmentOf<C> {
  using type = typename C::Attachment;
};

}  // namespace detail

// The argument of the constructor of a core of type C: `C::Attachment` if it names one, which adds
// the needs of this machine alone, else machine::Attachment.
template <class C>
using AttachmentOf = typename detail::AttachmentOf<C>::type;

template <class C>
concept HasIdentity = requires(const C& core, Home cores) {
  { C::properties } -> std::convertible_to<Properties>;
  // Bytes at the head of each sync block that the machine keeps for itself.
  { C::reserved_sync_bytes(cores) } -> std::same_as<std::size_t>;
  { core.self() } -> std::same_as<Home>;
  { core.cores() } -> std::same_as<Home>;
};

template <class C>
concept HasSyncWords = requires(C& core, typename C::Word word, SyncPlace place, std::uint64_t v) {
  // A handle on a word, to be kept by code that uses the word often.
  { core.word(place) } -> std::same_as<typename C::Word>;
  { core.load(word) } -> std::same_as<std::uint64_t>;
  { core.store(word, v) } -> std::same_as<void>;
  // The atomics return the value before the operation.
  { core.fetch_add(word, v) } -> std::same_as<std::uint64_t>;
  { core.exchange(word, v) } -> std::same_as<std::uint64_t>;
  // (word, expected, desired): stores `desired` if the word holds `expected`.
  { core.compare_exchange(word, v, v) } -> std::same_as<std::uint64_t>;
  // All earlier stores of this core to sync words, and all that it has published or drained, are in
  // memory before any later load of a word, and before any later read of refreshed data.
  { core.fence() } -> std::same_as<void>;
};

template <class C>
concept CanWait = requires(C& core, typename C::Word word, bool (*predicate)(std::uint64_t),
                           std::uint64_t ns, Home home) {
  // Returns when predicate(load(word)) is true, or with the idle hook's error (R6).
  { core.wait_until(word, predicate) } -> std::same_as<Status>;
  // Lets about `ns` nanoseconds pass without touching memory; gives the processor away where it is
  // shared. For back-off between attempts on words of other homes. Runs the idle hook.
  { core.pause(ns) } -> std::same_as<Status>;
  // Wakes `home` if it sleeps in wait_until. Call it after the store or atomic that it waits for.
  { core.notify(home) } -> std::same_as<void>;
};

template <class C>
concept HasData = requires(C& core, DataPlace place, void* out, const void* in, std::size_t bytes) {
  // Cached read: may return stale bytes unless the range was refreshed. An error means that the
  // region could not be reached (only where DataRegion::memory is null).
  { core.read(place, out, bytes) } -> std::same_as<Status>;
  // Cached write: in memory after publish, or earlier, in whole lines (R1, R2).
  { core.write(place, in, bytes) } -> std::same_as<Status>;
  // Byte-exact write: in memory after drain, or earlier, in any order, never other bytes.
  { core.write_through(place, in, bytes) } -> std::same_as<Status>;
  // This core's cached writes to the range are in memory when it returns.
  { core.publish(place, bytes) } -> std::same_as<void>;
  // Later reads of the range are no older than memory at the call. Writes to the range that were
  // not published are the caller's error: they are lost.
  { core.refresh(place, bytes) } -> std::same_as<void>;
  // This core's write_throughs are in memory when it returns.
  { core.drain() } -> std::same_as<void>;
  // Where a program's plain loads and stores reach this place, as cached reads and writes of this
  // core; null if it cannot (only where DataRegion::memory is null and the home is another, and on
  // a machine without views).
  { core.view(place) } -> std::same_as<std::byte*>;
  // The size of the data region of a home.
  { core.data_bytes(place.home) } -> std::same_as<std::uint64_t>;
};

template <class C>
concept Core =
    HasIdentity<C> && HasSyncWords<C> && CanWait<C> && HasData<C> && std::constructible_from < C,
        const AttachmentOf<C>
& > ;

}  // namespace tombolo::machine
