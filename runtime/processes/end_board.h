// SPDX-License-Identifier: Apache-2.0
// Purpose: how processes of a job have ended, told by their launcher to those that still run: only
// the parent of a process learns the signal that killed it.
//
//   EndBoard board;                                     // in a process that a Launcher has started
//   if (EndBoard::join(board).ok() && board.has_ended(3)) ... board.text(3)
//
// Invariants: EDB1 the launcher alone notes an end, once for each process.
// Thread safety: has_ended() and text() by any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "base/options.h"
#include "base/status.h"
#include "host/segments/segment.h"

namespace tombolo::runtime {

// Private to a launcher and its processes.
inline constexpr Option end_board_option{.variable = "TOMBOLO_ENDS",
                                         .values = "set by the launcher"};

class EndBoard {
 public:
  // The launcher's.
  static Status create(int size, EndBoard& out);
  // The value of the option, for the processes.
  std::string name() const;
  void note(int rank, int wait_status);

  // In a process of that launcher: bad_configuration if there is no board.
  static Status join(EndBoard& out);
  bool has_ended(int rank) const { return word(rank).load(std::memory_order_acquire) != 0; }
  // "was killed by signal 9 (Killed)"; after has_ended().
  std::string text(int rank) const;

 private:
  using Word = std::atomic<std::uint32_t>;
  static constexpr std::uint32_t ended = std::uint32_t{1} << 31;  // beside the status

  Word& word(int rank) const { return reinterpret_cast<Word*>(segment_.data())[rank]; }

  host::Segment segment_;
};

// As waitpid tells it: "ended with status 1".
std::string text_of_end(int wait_status);

}  // namespace tombolo::runtime
