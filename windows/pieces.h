// SPDX-License-Identifier: Apache-2.0
// Purpose: many pieces of one region, read or written by one call: at once where the machine can do
// that (machine::ServesPieces), else one after the other.
// Thread safety: that of the core's data operations.
#pragma once

#include <span>

#include "machine/optional.h"

namespace tombolo::windows {

// Reads the pieces; they are no older than memory at the call. With `stored` the program may have
// stored to the region by itself: its stores are not the call's to lose by the refresh.
template <machine::Core C>
Status read_pieces_anew(C& core, machine::Home home, std::span<const machine::DataPiece> pieces,
                        bool stored) {
  if constexpr (machine::ServesPieces<C>) {
    // The publish in it serves the program's own stores; a region without any has nothing to bring.
    core.renew_pieces(home, pieces);
    return core.read_pieces(home, pieces);
  } else {
    for (const auto& [at, local, bytes] : pieces) {
      if (bytes == 0) continue;
      const machine::DataPlace place{home, at};
      if (stored) core.publish(place, bytes);
      core.refresh(place, bytes);  // others may have put there since it was last read
      TOMBOLO_TRY(core.read(place, local, bytes));
    }
    return {};
  }
}

// Writes the pieces; they are in memory after a drain.
template <machine::Core C>
Status write_pieces_through(C& core, machine::Home home,
                            std::span<const machine::DataPiece> pieces) {
  if constexpr (machine::ServesPieces<C>) {
    return core.write_pieces_through(home, pieces);
  } else {
    for (const auto& [at, local, bytes] : pieces)
      if (bytes > 0) TOMBOLO_TRY(core.write_through({home, at}, local, bytes));
    return {};
  }
}

}  // namespace tombolo::windows
