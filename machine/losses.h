// SPDX-License-Identifier: Apache-2.0
// Purpose: the losses of bytes that a machine has seen (machine::TellsLosses), as facts that the
// parts above put into words.
// Thread safety: plain values.
#pragma once

#include <cstdint>

#include "machine/place.h"

namespace tombolo::machine {

// A core that wrote to memory, and its call site (NamesSites).
struct Writer {
  static constexpr Home nobody = 0xffffffff;  // no core is known to have written
  Home rank = nobody;
  std::uint64_t site = 0;
  bool operator==(const Writer&) const = default;
};

enum class Loss : std::uint8_t {
  lost_update,  // a whole line was written back over bytes that another core had changed meanwhile
  dropped_write,    // a refresh threw away writes that were not published
  unpublished,      // bytes from write() that were never published when the core closed
  undrained,        // write_throughs that were never drained when the core closed
  broken_no_store,  // the program stored, against Promise::no_store
  broken_no_put,    // others wrote, against Promise::no_put
  late,  // bytes of others that only hand_back() brought to the program's memory: no mistake
};
inline constexpr std::uint8_t kinds_of_losses = 7;

constexpr bool is_mistake(Loss loss) { return loss != Loss::late; }

// A promise of the program about the own region (MPI_MODE_NOSTORE, MPI_MODE_NOPUT).
enum class Promise : std::uint8_t {
  no_store,  // the program has not stored to it since its stores were last published
  no_put,    // no other core has written to it since it was last refreshed
};

// All losses of one kind that come from the same two places of the program, at whatever cores. The
// cores and the range are those of the first one.
struct LossFact {
  Loss loss = Loss::lost_update;
  Writer culprit{};  // the core whose operation lost the bytes, or noticed that they are missing
  Writer victim{};   // the core that wrote them, where it is another
  Home home = 0;
  Offset begin = 0;  // the first and one past the last byte; both 0: not known which
  Offset end = 0;
  std::uint64_t bytes = 0;    // of all
  std::uint64_t times = 0;    // operations that lost some
  std::uint64_t evicted = 0;  // those of them that were random evictions
};

}  // namespace tombolo::machine
