// SPDX-License-Identifier: Apache-2.0
// Purpose: the operations that a machine may offer beyond the contract. Each has a concept, and
// says its promise, when it may be called, and how an algorithm does without it. An algorithm asks
// by the concept, never by whether a name happens to exist; each machine states by `extras_of`
// which ones it has, so that a misspelt one is found where the machine is compiled.
// machine/PORTING.md has the table of them.
//
// Thread safety: the operations are as thread-safe as the machine's others.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "machine/contract.h"
#include "machine/losses.h"

namespace tombolo::machine {

// ---- Data ---------------------------------------------------------------------------------------

// publish({home, 0}, data_bytes(home)) at less cost, where the machine can tell which bytes were
// written. Bytes that the program stored by plain stores through view(), and bytes that this core
// wrote by write, are in memory when it returns: all of them from before the call, whether or not
// an earlier call brought them there, and stores of other threads that are ordered before the call.
// A machine that is not sure publishes everything. It may be called wherever publish may.
// Without it: publish of the whole region.
template <class C>
concept PublishesWritten = requires(C& core, Home home) {
  { core.publish_written(home) } -> std::same_as<void>;
};

// True if a refresh of any range costs about as much as the load of a word. An algorithm that
// remembers whether a refresh is needed may then leave that out and refresh. The answer is the same
// for as long as the core lives.
// Without it: a refresh costs as much as its range is large.
template <class C>
concept RefreshesAtOnce = requires(const C& core) {
  { core.refreshes_at_once() } -> std::same_as<bool>;
};

// Many pieces of one region at the cost of one operation: a fence, a system call. Their bytes may
// be 0, and they may share lines. renew_pieces() publishes the pieces and refreshes them;
// read_pieces() and write_pieces_through() are read and write_through of each, in any order.
// Without it: the pieces one after the other.
template <class C>
concept ServesPieces = requires(C& core, Home home, std::span<const DataPiece> pieces) {
  { core.renew_pieces(home, pieces) } -> std::same_as<void>;
  { core.read_pieces(home, pieces) } -> std::same_as<Status>;
  { core.write_pieces_through(home, pieces) } -> std::same_as<Status>;
};

// `C::has_views == false` says that no pointer leads to this machine's data, as on a simulated one.
// Programs reach data by read and write alone, and own copies are kept in step all the same.
// Without it: a null view() means that there is no own copy of that region.
template <class C>
concept HasNoViews = requires {
  requires !C::has_views;
};

// view() of a range: null unless all of it can be reached there. For a machine that may have a part
// of a region mapped, where the view of its first byte says nothing about the others.
// Without it: a region is mapped as a whole or not at all, so view(place) speaks for the range.
template <class C>
concept ViewsRanges = requires(C& core, DataPlace place, std::size_t bytes) {
  { core.view(place, bytes) } -> std::same_as<std::byte*>;
};

// A region without a mapping may be mapped in part: `parts` of the attachment says which part, by
// home, for other processes' regions; it may be empty.
// Without it: a region that is mapped in part is reached as if nothing of it were mapped.
template <class C>
concept MapsParts = requires(AttachmentOf<C>& at) {
  { at.parts } -> std::same_as<std::pmr::vector<RegionPart>&>;
};

// The program's loads and stores through view() touch a copy that is this core's own, which publish
// and refresh exchange with memory. Where a window is over memory that the program has already, the
// regions lie elsewhere, and `own_view` of the attachment says where the program's memory is; its
// bytes become memory's when the core is made. Null: the machine makes that copy as well.
// hand_back() is for the end, after the last write of all cores: the program's memory at `own_view`
// then holds memory's bytes, but for those that the program has stored and not published. Pages
// that the program has given back to the kernel are left out.
// Without it: view() is the memory itself, and a window over the program's memory has it as region.
template <class C>
concept KeepsViewsApart = requires(C& core, AttachmentOf<C>& at) {
  { at.own_view } -> std::same_as<std::byte*&>;
  { core.hand_back() } -> std::same_as<void>;
};

// ---- Sync words ---------------------------------------------------------------------------------

// store() to a word that no core ever changes by an atomic operation (one that does may be lost):
// cheaper, where atomics are built upon a lock which a store must take as well.
// Without it: store.
template <class C>
concept StoresAlone = requires(C& core, typename C::Word word, std::uint64_t v) {
  { core.store_alone(word, v) } -> std::same_as<void>;
};

// Stores to sync words may be held back beyond the call that makes them, for a bounded time;
// settle() returns when they are in memory. To be called before the program may be away for long
// while another core waits for such a store, and before the core is given up.
// Without it: a store is on its way to memory when it returns.
template <class C>
concept DefersStores = requires(C& core) {
  { core.settle() } -> std::same_as<void>;
};

// A fence whose price one side pays for both (asymmetric fences, P1202). Where one core does
// fence_light() and another fence_heavy(), they order as two calls of fence(): of a core that
// stores, does fence_light(), and loads, and one that stores, does fence_heavy(), and loads, one
// sees the other's store. Two heavy ones order as well, two light ones nothing.
// fences_asymmetrically(): whether the host allows it; the same for as long as the process lives.
// Where it is false, neither may be called.
// Without it, or where the host does not: an algorithm that pays for atomic operations.
template <class C>
concept FencesAsymmetrically = requires(C& core) {
  { core.fences_asymmetrically() } -> std::same_as<bool>;
  { core.fence_light() } -> std::same_as<void>;
  { core.fence_heavy() } -> std::same_as<void>;
};

// A sleep on a word of any home, which the core that changes the word ends. sleep_on(word, seen)
// sleeps while the word holds `seen`, by its low 32 bits, until wake_sleepers() is called for it,
// and returns the idle hook's error as wait_until() does. It may end early, and lasts
// WaitPolicy::sleep_us_max at most. Its look at the word and the beginning of its sleep are one
// step: a wake-up that follows a change finds the sleeper, or the sleeper has seen the change.
// wake_sleepers(word, most) ends up to `most` sleeps. A word that cores sleep on is changed by
// atomic operations alone, which no later look for sleepers overtakes (R3).
// Without it: pause, or wait_until where the word is at home.
template <class C>
concept SleepsOnWords = requires(C& core, typename C::Word word, std::uint64_t seen,
                                 std::uint32_t most) {
  { core.sleep_on(word, seen) } -> std::same_as<Status>;
  { core.wake_sleepers(word, most) } -> std::same_as<void>;
};
inline constexpr std::uint32_t all_sleepers = 0x7fff'ffff;

// ---- Threads ------------------------------------------------------------------------------------

// several_threads(): from now on several threads of this process use the core, at once or in turn:
// a drain is also for the write_throughs of the others. To be called before the second one does,
// and never taken back.
// Without it: the machine works alike for one thread and for several, or for one only.
template <class C>
concept IsToldOfThreads = requires(C& core) {
  { core.several_threads() } -> std::same_as<void>;
};

// ---- Shared memory and chance -------------------------------------------------------------------

// The cores share `C::shared_bytes(regions)` bytes beside the regions: zero before the first core
// starts, at `shared` of every core's attachment. That may be null: the machine then does without.
// Without it: sync blocks and regions are all that cores share.
template <class C>
concept WantsSharedMemory = requires(std::span<const DataRegion> regions, AttachmentOf<C>& at) {
  { C::shared_bytes(regions) } -> std::same_as<std::size_t>;
  { at.shared } -> std::same_as<std::byte*&>;
};

// The machine evicts a line once in `evictions` opportunities, chosen from the attachment's seed;
// 0: never.
// Without it: lines are evicted as the hardware likes.
template <class C>
concept EvictsAtRandom = requires(AttachmentOf<C>& at) {
  { at.evictions } -> std::same_as<std::uint64_t&>;
};

// ---- Mistakes of programs -----------------------------------------------------------------------

// The machine sees when written bytes are lost (machine/losses.h). check_promise() compares a
// promise of the program with the own region. close() ends the use of data but for hand_back(), and
// looks for writes that were never published or drained. Bytes that a program has stored by itself
// and never published are no finding: the memory goes away, and no core may look for them.
// findings() are this core's: clean() is false if a byte was lost or a promise broken; report()
// tells all, and is empty if there is nothing to tell. take_losses() are the facts of all cores
// that no core has told yet; where the cores share nothing, of this core. It waits for a core that
// has taken some until that calls losses_told(), for a bounded time. has_mistakes(): one of those
// facts, told or not, is a mistake.
// Without it: bytes are lost in silence, and there is nothing to close.
template <class C>
concept TellsLosses = requires(C& core, const C& seen, Promise promise) {
  { core.check_promise(promise) } -> std::same_as<void>;
  { core.close() } -> std::same_as<void>;
  { seen.findings().clean() } -> std::same_as<bool>;
  { seen.findings().report() } -> std::same_as<std::string>;
  { core.take_losses() } -> std::same_as<std::vector<LossFact>>;
  { core.losses_told() } -> std::same_as<void>;
  { core.has_mistakes() } -> std::same_as<bool>;
};

// set_site(): the call that the program makes now, for findings: any 48-bit number, for example a
// return address. May be called before any operation.
// Without it: the origin of a call is not looked up.
template <class C>
concept NamesSites = requires(C& core, std::uint64_t site) {
  { core.set_site(site) } -> std::same_as<void>;
};

// -------------------------------------------------------------------------------------------------

// The optional operations of a machine. Each machine asserts its own:
//   static_assert(machine::extras_of<Core> == machine::Extras{.views_ranges = true});
struct Extras {
  bool publishes_written = false;
  bool refreshes_at_once = false;
  bool serves_pieces = false;
  bool has_no_views = false;
  bool views_ranges = false;
  bool maps_parts = false;
  bool keeps_views_apart = false;
  bool stores_alone = false;
  bool defers_stores = false;
  bool fences_asymmetrically = false;
  bool sleeps_on_words = false;
  bool is_told_of_threads = false;
  bool wants_shared_memory = false;
  bool evicts_at_random = false;
  bool tells_losses = false;
  bool names_sites = false;
  bool operator==(const Extras&) const = default;
};

template <class C>
inline constexpr Extras extras_of{.publishes_written = PublishesWritten<C>,
                                  .refreshes_at_once = RefreshesAtOnce<C>,
                                  .serves_pieces = ServesPieces<C>,
                                  .has_no_views = HasNoViews<C>,
                                  .views_ranges = ViewsRanges<C>,
                                  .maps_parts = MapsParts<C>,
                                  .keeps_views_apart = KeepsViewsApart<C>,
                                  .stores_alone = StoresAlone<C>,
                                  .defers_stores = DefersStores<C>,
                                  .fences_asymmetrically = FencesAsymmetrically<C>,
                                  .sleeps_on_words = SleepsOnWords<C>,
                                  .is_told_of_threads = IsToldOfThreads<C>,
                                  .wants_shared_memory = WantsSharedMemory<C>,
                                  .evicts_at_random = EvictsAtRandom<C>,
                                  .tells_losses = TellsLosses<C>,
                                  .names_sites = NamesSites<C>};

}  // namespace tombolo::machine
