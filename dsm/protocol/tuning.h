// SPDX-License-Identifier: Apache-2.0
// Purpose: the tunings of the protocols that cache pages: mechanisms that save page faults, pages
// or messages, and that no promise of a protocol needs. Each can be switched off, so that its gain
// can be measured (`tombolo bench dsm --without NAME`, TOMBOLO_DSM_WITHOUT). Protocol `sequential`
// has none of them.
//
// Invariants: DTU1 a program is right with any of them switched off. They are looked at in misses
//                  and where threads synchronize, never in an access that meets no fault.
//             DTU2 a field's name is its name among the choices of TOMBOLO_DSM_WITHOUT
//                  (base/options.toml), and the order of `tunings` is the order of those.
// Thread safety: plain values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tombolo::dsm {

struct Tuning {
  // A miss in a stream of misses brings the pages that follow, too (docs/decisions/0030, 0067).
  bool read_ahead = true;
  // In place, a thread keeps a page from the second time on that it sends changes of it outside of
  // spans with no other thread's change between (0049).
  bool own_pages = true;
  // In place, a page that another thread has cleared, and none has changed, is kept by the next
  // thread that stores to it (0063).
  bool cleared_pages = true;
  // A kept page that was closed long ago, and is stored to before another thread has got it, is
  // left to its program for twice as many notices as the last time (0063).
  bool longer_leave = true;
  // Release: bytes that differ from a page's twin travel with the lock or in a notice, and patch
  // the copies of other threads; else changes go by their page's name (0059).
  bool small_changes = true;
  // A page that was sent stays writable, with a new twin, for some begins and ends of spans, if
  // there are few such pages (0025, 0059).
  bool open_pages = true;
  // Kept pages do not count among those few. Release: so does a page stay open that was stored to
  // with its own contents (0063).
  bool more_open_pages = true;
  // Release: notices that come in another order than that of their versions are put in order
  // before pages are patched; else the page is dropped (0059).
  bool sorted_notices = true;
  // Release: small changes that are sent because a lock is handed over go with that lock (0072).
  bool handed_over_changes = true;

  friend bool operator==(const Tuning&, const Tuning&) = default;
};

inline constexpr std::array tunings{
    &Tuning::read_ahead,      &Tuning::own_pages,      &Tuning::cleared_pages,
    &Tuning::longer_leave,    &Tuning::small_changes,  &Tuning::open_pages,
    &Tuning::more_open_pages, &Tuning::sorted_notices, &Tuning::handed_over_changes};

// `off`: a bit for each tuning that is switched off, in the order of `tunings`.
constexpr Tuning tuning_without(std::uint64_t off) {
  Tuning tuning;
  for (std::size_t place = 0; place < tunings.size(); ++place)
    if ((off >> place & 1) != 0) tuning.*tunings[place] = false;
  return tuning;
}

}  // namespace tombolo::dsm
