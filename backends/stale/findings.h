// SPDX-License-Identifier: Apache-2.0
// Purpose: the mistakes that the machine `stale` has seen: bytes that were lost, and the cores that
// lost them.
// A correct program on a correct algorithm has none.
//
// Invariants: FI1 the counts are exact; the details stop after `Findings::details_max`.
//             FI2 neighbouring lines lost in the same way by the same writers are one detail.
// Thread safety: none of its own; stale::Core writes it under its lock. Read it when the core
// rests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "machine/place.h"

namespace tombolo::stale {

// The core that wrote a line of memory, and its call site (see Core::set_site).
struct Writer {
  static constexpr machine::Home nobody = 0xffffffff;
  machine::Home rank = nobody;  // `nobody`: not known
  std::uint64_t site = 0;
  bool operator==(const Writer&) const = default;
};

enum class Loss : std::uint8_t {
  lost_update,  // a whole line was written back over bytes that another core had changed meanwhile
  dropped_write,  // a refresh threw away writes that were not published
  unpublished,    // writes that were never published when the core closed
  undrained,      // write_throughs that were never drained when the core closed
};

struct Finding {
  Loss loss = Loss::lost_update;
  machine::Home home = 0;
  machine::Offset begin = 0;  // the first and one past the last lost byte
  machine::Offset end = 0;
  std::uint64_t bytes = 0;  // lost bytes between them
  bool evicted = false;     // lost_update: by a random eviction, not by a publish
  Writer culprit;           // the core whose operation lost the bytes
  Writer victim;            // lost_update: the core that wrote the lost bytes
};

struct Tally {
  std::uint64_t lines = 0;
  std::uint64_t bytes = 0;
};

class Findings {
 public:
  static constexpr std::size_t details_max = 100;

  Tally lost_updates;
  Tally dropped_writes;
  Tally unpublished;
  Tally undrained;

  // The first details_max findings.
  const std::vector<Finding>& details() const { return details_; }
  // No update was lost and no write dropped. Bytes left unpublished at the end harm only cores that
  // look for them, so they do not count here.
  bool clean() const { return lost_updates.lines == 0 && dropped_writes.lines == 0; }

  void add(const Finding& one_line);
  std::string report() const;  // one line per detail, with the counts; empty if there is nothing

 private:
  Tally& tally(Loss loss);
  std::vector<Finding> details_;
};

// One sentence without a full stop.
std::string describe(const Finding& finding);

}  // namespace tombolo::stale
