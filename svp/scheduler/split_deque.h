// SPDX-License-Identifier: Apache-2.0
// Purpose: the deque of a worker, split in two (van Dijk and van de Pol, "Lace", MuCoCoS 2014): the
// upper part is the owner's alone, so that a push and the pop of the same entry need neither an
// atomic operation nor a fence; from the lower part others take the oldest entry. The owner moves
// the border when others want more, or when it needs an entry back.
//
// Beyond the original: any entry can be claimed, not the newest alone, since families are synced in
// any order; and the border is moved by compare_exchange, where the original stores half a word.
//
//   entry at slot   0 ... tail ... split ... head
//                   taken | for all | the owner's
//
// Invariants: SD1 one word holds tail and split; others raise the tail, the owner moves the split,
//                 both by compare_exchange, so that an entry goes to one core.
//             SD2 a core that has raised the tail past a slot reads the entry afterwards: the owner
//                 does not write to a slot below the tail before that entry's forget().
//             SD3 entries from the tail on are never 0; one below it is 0 after its forget().
// Memory: two lines of sync words at each home, 8 bytes of data for each slot.
// Data: share() is an atomic operation, ordered after everything the caller published (R4), the
// entries among it; a core refreshes the bytes it needs after steal() (R5), which refreshes the
// entry.
// Thread safety: one object for each core, used by one thread at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "machine/optional.h"

namespace tombolo::svp {

template <machine::Core C>
class SplitDeque {
 public:
  using Home = machine::Home;
  using Slot = std::uint32_t;
  using Entry = std::uint64_t;  // 0: none
  // The slot of an entry that is in no deque.
  static constexpr Slot no_slot = ~Slot{1};

  struct Layout {
    machine::Offset bounds = 0;
    machine::Offset wanted = 0;
    machine::Offset entries = 0;  // in the data region
    Slot capacity = 0;
  };
  static Layout take(machine::SyncLayout& layout, machine::Offset entries, Slot capacity) {
    return {.bounds = layout.take_lines(1),
            .wanted = layout.take_lines(1),
            .entries = entries,
            .capacity = capacity};
  }
  static constexpr std::size_t data_bytes(Slot capacity) { return capacity * sizeof(Entry); }

  SplitDeque(C& core, Layout layout)
      : core_(core),
        layout_(layout),
        bounds_(core.word({core.self(), layout.bounds})),
        wanted_(core.word({core.self(), layout.wanted})),
        view_(core.view({core.self(), layout.entries})) {}

  // ---- The owner --------------------------------------------------------------------------------

  bool full() const { return head_ == layout_.capacity; }
  // Not full; the entry is not 0.
  Slot push(Entry entry) {
    write(head_, entry);
    return head_++;
  }
  // True if others want entries: share() is due.
  bool wanted() { return core_.load(wanted_) != 0; }
  typename C::Word wanted_word() const { return wanted_; }
  void want() { core_.store(wanted_, 1); }
  // Ordered before later loads of words.
  void no_longer_wanted() { core_.exchange(wanted_, 0); }

  // Lets others have half of the owner's own entries, and `least` if there are so many. True if
  // there was one to share.
  bool share(Slot least) {
    if (own() == 0) return false;
    const Slot upto = split_ + std::min(own(), std::max((own() + 1) / 2, least));
    core_.publish(place(split_), (upto - split_) * sizeof(Entry));
    std::uint64_t seen = core_.load(bounds_);
    for (;;) {
      const std::uint64_t before =
          core_.compare_exchange(bounds_, seen, packed(tail_of(seen), upto));
      if (before == seen) break;
      seen = before;
    }
    split_ = upto;
    return true;
  }

  // Takes back the entry that was pushed last, if it is the owner's alone.
  bool claim_last(Slot slot) {
    if (slot + 1 != head_ || slot < split_) return false;
    --head_;
    return true;
  }
  // Takes back any entry. False: another core has it. `moved` is then an entry that is at `slot`
  // from now on; 0: none is.
  bool claim(Slot slot, Entry& moved) {
    moved = 0;
    if (slot < split_ && !withdraw(slot)) return false;
    --head_;
    if (slot == head_) return true;
    moved = read(head_);
    write(slot, moved);
    return true;
  }
  // Takes back the newest entry; 0: there is none that others have not taken.
  Entry pop() {
    trim();
    if (head_ == 0) return 0;
    const Entry entry = read(head_ - 1);
    Entry moved = 0;
    return claim(head_ - 1, moved) ? entry : 0;
  }
  // The slot of an entry that another core took and has done with.
  void forget(Slot slot) {
    write(slot, 0);
    if (slot + 1 == head_) trim();
  }
  // Gives back slots of forgotten entries, where none that is needed lies above them.
  void trim() {
    if (head_ != split_) return;
    const Slot before = head_;
    while (head_ > 0 && read(head_ - 1) == 0) --head_;
    if (head_ == before) return;
    split_ = head_;
    // A store: an entry that was forgotten lies below the tail (SD3), so tail and split met here,
    // and then no other core changes the word.
    core_.store(bounds_, packed(head_, head_));
  }
  // Entries that are the owner's alone.
  Slot own() const { return head_ - split_; }
  // Entries that no core has taken.
  Slot untaken() { return head_ - tail_of(core_.load(bounds_)); }

  // ---- Others -----------------------------------------------------------------------------------

  // The oldest entry that `victim` shares; 0: it shares none now, or another core was faster. A
  // victim that shares none is told that entries are wanted.
  Entry steal(Home victim) {
    const auto bounds = core_.word({victim, layout_.bounds});
    const std::uint64_t seen = core_.load(bounds);
    if (tail_of(seen) == split_of(seen)) {
      ask(victim);
      return 0;
    }
    if (core_.compare_exchange(bounds, seen, packed(tail_of(seen) + 1, split_of(seen))) != seen)
      return 0;
    const machine::DataPlace at{victim, layout_.entries + tail_of(seen) * sizeof(Entry)};
    Entry entry = 0;
    core_.refresh(at, sizeof entry);
    (void)core_.read(at, &entry, sizeof entry).ok();  // regions of workers are always mapped
    return entry;
  }
  bool shares(Home victim) {
    const std::uint64_t seen = core_.load(core_.word({victim, layout_.bounds}));
    return tail_of(seen) != split_of(seen);
  }
  void ask(Home victim) {
    const auto wanted = core_.word({victim, layout_.wanted});
    if (core_.load(wanted) == 0) core_.store(wanted, 1);
  }

 private:
  static Slot tail_of(std::uint64_t bounds) { return static_cast<Slot>(bounds); }
  static Slot split_of(std::uint64_t bounds) { return static_cast<Slot>(bounds >> 32); }
  static std::uint64_t packed(Slot tail, Slot split) { return (std::uint64_t{split} << 32) | tail; }

  machine::DataPlace place(Slot slot) const {
    return {core_.self(), layout_.entries + slot * sizeof(Entry)};
  }
  void write(Slot slot, Entry entry) {
    if constexpr (machine::HasNoViews<C>)
      (void)core_.write(place(slot), &entry, sizeof entry).ok();
    else
      std::memcpy(view_ + slot * sizeof(Entry), &entry, sizeof entry);
  }
  Entry read(Slot slot) {
    Entry entry = 0;
    if constexpr (machine::HasNoViews<C>)
      (void)core_.read(place(slot), &entry, sizeof entry).ok();
    else
      std::memcpy(&entry, view_ + slot * sizeof(Entry), sizeof entry);
    return entry;
  }

  // Moves the split to `slot` or below. False: another core has taken that entry.
  bool withdraw(Slot slot) {
    std::uint64_t seen = core_.load(bounds_);
    for (;;) {
      const Slot tail = tail_of(seen);
      if (tail > slot) return false;
      // Half of the shared entries come back, not one: the next pops need no atomic operation.
      const Slot split = tail + (slot - tail) / 2;
      const std::uint64_t before = core_.compare_exchange(bounds_, seen, packed(tail, split));
      if (before == seen) {
        split_ = split;
        return true;
      }
      seen = before;
    }
  }

  C& core_;
  Layout layout_;
  typename C::Word bounds_;
  typename C::Word wanted_;
  std::byte* view_;

 protected:  // for a broken twin
  Slot head_ = 0;
  Slot split_ = 0;
};

}  // namespace tombolo::svp
