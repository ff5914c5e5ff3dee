// SPDX-License-Identifier: Apache-2.0
// Purpose: the messages of a job of the host MPI, as families use it. It is apart from mpi.h: a
// module is compiled for each MPI's handles (module.cpp) and loaded at run time (load.h), so that a
// program need not be one of MPI. Nothing here waits, but for calls that all make together.
//
// Invariants: HMS1 letters from one process to another arrive in the order of their sends, and are
//                 kept for the receiver however late it looks.
//             HMS2 arrays of one sender, receiver and tag meet in the order of their calls, and
//                 keep back no letter and no array of another tag.
// Thread safety: one thread at a time. All of them may be different threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/status.h"

namespace tombolo::svp {

// An exchange (runtime/collective/exchange.h) between processes of the job.
class HostExchange {
 public:
  virtual ~HostExchange() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual Status gather(const void* mine, void* everyones, std::size_t bytes) = 0;
  virtual Status broadcast(void* everyones, std::size_t bytes, int root) = 0;
  virtual bool all(bool yes) = 0;
};

class HostMessages : public HostExchange {
 public:
  static constexpr std::size_t letter_bytes = std::size_t{16} << 10;

  // Together: those that name one `color` exchange by the result, in the order of their ranks.
  virtual std::unique_ptr<HostExchange> group(int color) = 0;

  // ---- Letters: at most `letter_bytes` each ----------------------------------------------------

  // Where the next letter is written. Throws std::bad_alloc.
  virtual std::byte* room() = 0;
  // Sends the bytes there.
  virtual void send(int to, std::size_t bytes) = 0;
  struct Letter {
    int from = 0;
    std::span<const std::byte> bytes{};  // until the next call of receive()
  };
  // The next one that has arrived. False: none has.
  virtual bool receive(Letter& out) = 0;

  // ---- Arrays: from memory to memory, both sides take part --------------------------------------

  // Tags are less.
  virtual std::uint32_t tags() const = 0;
  using Transfer = std::uint32_t;
  virtual Transfer send_array(int to, std::uint32_t tag, std::span<const std::byte> from) = 0;
  // The array that comes may be shorter.
  virtual Transfer receive_array(int from, std::uint32_t tag, std::span<std::byte> to) = 0;
  // Its bytes, once it is done; then there is no such transfer any more.
  virtual std::optional<std::size_t> done(Transfer transfer) = 0;
  // Of a process that is gone. False: its memory is still in use.
  virtual bool drop(Transfer transfer) = 0;

  // ---- Errors -----------------------------------------------------------------------------------

  struct Trouble {
    int with = 0;  // a process; -1: it is not known
    std::string text;
  };
  // The next error; each is told once.
  virtual std::optional<Trouble> next_trouble() = 0;

  // ---- The end ----------------------------------------------------------------------------------

  // Together, if all processes are still there (`whole`): the host MPI is finalized, if it was
  // initialized here. Else it is left as it is.
  virtual void finish(bool whole) = 0;
};

}  // namespace tombolo::svp
