// SPDX-License-Identifier: Apache-2.0
// Purpose: lets exclusive locks stay off the window's global word until the first lock-all.
//
// Every lock family excludes lock-all from exclusive locks by one global word in which both
// register (001 section 4.2). Most programs never call lock-all; for them the word would only be a
// line that all writers fight for. So an exclusive lock is first taken without registering, and the
// global word merely looked at afterwards: that line is then shared by all caches.
//
//   exclusive, `used` not seen yet      first lock-all of a window
//   1 take the lock of the target       1 set `used` in the global word
//   2 load the global word:             2 wait until each target was once seen without
//     not used: done                      exclusive holder; then set `settled`
//     used: give the lock back and      3 register as every later lock-all does
//       from now on register first
//
// Invariants: FA1 an exclusive lock that is not registered was taken (1) before its holder loaded
//                 the word without `used` (2), hence before `used` was set. A core that sees the
//                 target free after that knows that every later holder is registered. So once
//                 `settled` is set, the registrations are complete.
//             FA2 both sides first write, then look: an atomic keeps the load from overtaking it
//                 (R3), so no fence is needed.
//             FA3 nothing is held while waiting in step 2, so it adds no deadlock.
// Thread safety: as the family that calls it.
#pragma once

#include "machine/contract.h"
#include "sync/locks/backoff.h"

namespace tombolo::sync {

inline constexpr std::uint64_t lock_all_used = std::uint64_t{1} << 63;
inline constexpr std::uint64_t lock_all_settled = std::uint64_t{1} << 62;

// Sets a flag that is never cleared; the word may be changed by others at the same time.
template <machine::Core C>
void set_flag(C& core, typename C::Word word, std::uint64_t flag) {
  for (std::uint64_t seen = core.load(word); (seen & flag) == 0;) {
    const std::uint64_t before = core.compare_exchange(word, seen, seen | flag);
    if (before == seen) return;
    seen = before;
  }
}

// Steps 1 and 2 of the first lock-all. `has_exclusive(home)` loads the lock of that home.
template <machine::Core C, class HasExclusive>
Status settle_lock_all(C& core, typename C::Word global, Backoff<C>& backoff,
                       HasExclusive&& has_exclusive) {
  if ((core.load(global) & lock_all_settled) != 0) return {};
  set_flag(core, global, lock_all_used);
  backoff.reset();
  for (machine::Home home = 0; home < core.cores(); ++home)
    while (has_exclusive(home)) TOMBOLO_TRY(backoff.pause());
  set_flag(core, global, lock_all_settled);
  return {};
}

}  // namespace tombolo::sync
