// SPDX-License-Identifier: Apache-2.0
// Purpose: best-effort readers-writer locks (GBH) as 001 section 4.2 publishes them, on the chip's
// registers as in section 5.5, to be measured beside ours (sync/locks/best_effort_lock.h).
//
//   global counter, at rank 0   exclusive locks, held or tried; lock-alls in another part
//   counter of each target      bit 63: exclusive; below: shared locks, held or tried
//
//   shared       add 1 to the target; if bit 63 was set, undo and try again
//   exclusive    add 1 to the global counter; change the target from 0 to bit 63; if it was not 0,
//                undo and try again
//   unlock       exclusive: take bit 63 from the target, then 1 from the global counter
//
// Each change is made under the register of the counter's owner, which is read until it is free.
// With back-off there is a pause between two tries, up to 1 us at first and twice as long after
// each further failure (001 section 6.2). No bound of the pauses is stated, and there is none here.
// An unlock is no try. Where else a process pauses is read in two ways:
//
//   tries                    nowhere: "a TSR is acquired in a blocking fashion" (001 section 5.5)
//   tries_and_global_counter tries are rate-limited at the global counter, which all share (001
//                            section 7.1): a process that finds its register taken pauses likewise
//
// The second follows from the paper's numbers, not from its words. With exclusive locks each pair
// changes the global counter twice, under one register, for some 0.45 us. So 48 processes take 43
// us for a pair on average, whatever the locks do; quartiles of 8.9, 12.3 and 19.2 us (001 Table 2)
// mean that most of the waiting falls on a few pairs, as it does when a core that fails stays away
// for longer and longer. That they do not apply to the counter of a target follows from Table 3:
// readers that wait for a writer load the tile of its register as only reading it all the time
// does.
//
// Invariants: BE1 bit 63 is set only by a change from 0.
//             BE2 tries are in the counts, so unlock subtracts. (The paper's "sets the local
//                 counter to zero" would lose them.)
// Lock-all is not part of the paper's measurements and is left out.
// Thread safety: one call at a time per object.
#pragma once

#include "backends/scc/scc.h"
#include "base/random.h"
#include "machine/contract.h"
#include "sync/locks/lock_kind.h"

namespace tombolo::experiments::published {

enum class BackOff : std::uint8_t { none, tries, tries_and_global_counter };

template <machine::Core C>
class BestEffort {
 public:
  using Home = machine::Home;
  using Word = typename C::Word;
  struct Layout {
    machine::Offset global = 0;  // used at rank 0 only
    machine::Offset target = 0;
  };
  static Layout take(machine::SyncLayout& layout, Home /*cores*/) {
    return {.global = layout.take_lines(1), .target = layout.take_lines(1)};
  }

  BestEffort(C& core, Layout layout, BackOff backoff)
      : core_(core),
        layout_(layout),
        backoff_(backoff),
        random_(Random::stream(random_stream, core.self())) {}

  Status lock(sync::Access access, Home target) {
    std::uint64_t pause_ns = first_pause_ns;
    for (;;) {
      bool entered = false;
      TOMBOLO_TRY(access == sync::Access::shared ? try_shared(target, &entered)
                                                 : try_exclusive(target, &entered));
      if (entered) return {};
      TOMBOLO_TRY(backoff_ == BackOff::none ? core_.pause(random_.below(jitter_ns))
                                            : pause(&pause_ns));
    }
  }

  Status unlock(sync::Access access, Home target) {
    if (access == sync::Access::shared) {
      core_.fetch_add(word(target), minus(1));
      return {};
    }
    core_.fetch_add(word(target), minus(exclusive));
    core_.fetch_add(core_.word({0, layout_.global}), minus(1));
    return {};
  }

 private:
  static constexpr std::uint64_t exclusive = std::uint64_t{1} << 63;
  static constexpr std::uint64_t first_pause_ns = 1000;
  // Of a try without back-off. Real cores do not keep in step for ever; these do: two that hinder
  // each other in turn never stopped.
  static constexpr std::uint64_t jitter_ns = 100;
  static constexpr std::uint64_t random_stream = 0x626573742d656666;
  static constexpr std::uint64_t minus(std::uint64_t v) { return ~v + 1; }

  Word word(Home target) { return core_.word({target, layout_.target}); }

  // Not in step with others: from the upper half.
  Status pause(std::uint64_t* ns) {
    const std::uint64_t length = *ns - random_.below(*ns / 2 + 1);
    *ns *= 2;
    return core_.pause(length);
  }

  Status try_shared(Home target, bool* entered) {
    *entered = (core_.fetch_add(word(target), 1) & exclusive) == 0;
    if (!*entered) core_.fetch_add(word(target), minus(1));
    return {};
  }

  Status try_exclusive(Home target, bool* entered) {
    TOMBOLO_TRY(add_to_global(1));
    *entered = core_.compare_exchange(word(target), 0, exclusive) == 0;
    return *entered ? Status() : add_to_global(minus(1));
  }

  Status add_to_global(std::uint64_t v) {
    const Word global = core_.word({0, layout_.global});
    if (backoff_ != BackOff::tries_and_global_counter) {
      core_.fetch_add(global, v);
      return {};
    }
    // As C's atomics do it, but for the pauses.
    scc::detail::Base& chip = core_;
    std::uint64_t pause_ns = first_pause_ns;
    while (!chip.test_and_set(0)) TOMBOLO_TRY(pause(&pause_ns));
    chip.store(global.inner, chip.load(global.inner) + v);
    chip.clear(0);
    chip.fence();
    return {};
  }

  C& core_;
  Layout layout_;
  BackOff backoff_;
  Random random_;
};

}  // namespace tombolo::experiments::published
