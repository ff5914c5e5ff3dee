// SPDX-License-Identifier: Apache-2.0
// Purpose: the dedicated protocol of 002 section 5.2.2: virtual channels over the message passing
// buffers. A core's part of the buffer takes one message at a time for that core, of whichever
// sender and channel, under the core's test-and-set register; its threads look for theirs.
//
//   line 0    whether there is a message, its sender, channel and bytes
//   behind    its bytes; longer ones are sent in several
//
// A thread that finds no message of its own sleeps until the next tick. A core whose buffer holds a
// message for a thread that does not look for it takes none of any other: so the side where a
// family ran sends nothing before it is asked.
//
// Invariants: BC1 a message is taken by the thread of its channel alone; that of a channel which no
//                 thread has yet stays until accept() has seen it.
// Thread safety: as Cpu.
#pragma once

#include <vector>

#include "experiments/svp/stream.h"

namespace tombolo::experiments {

class BufferChannels final : public Streams {
 public:
  BufferChannels(scc::Chip& chip, Linux& system)
      : chip_(chip), system_(system), latest_(chip.cores()) {}

  std::unique_ptr<Stream> open(simulator::CoreId peer) override;
  std::unique_ptr<Stream> accept() override;

 private:
  friend class BufferStream;

  struct Head {
    std::uint32_t full = 0;
    std::uint32_t sender = 0;
    std::uint32_t opener = 0;
    std::uint32_t channel = 0;
    std::uint64_t bytes = 0;
    std::uint64_t unused = 0;
  };

  scc::View head_of(simulator::CoreId core) const;
  scc::View data_of(simulator::CoreId core) const;
  std::uint64_t most_bytes() const;
  void lock(simulator::CoreId core);
  void lock_empty_buffer(simulator::CoreId core);
  Head look();
  void send(simulator::CoreId to, Head head, scc::View from);
  // The bytes of a message of that channel, once it is there.
  std::uint64_t receive(const Head& wanted, scc::View to);

  scc::Chip& chip_;
  Linux& system_;
  std::uint32_t opened_ = 0;
  std::vector<std::uint32_t> latest_;  // the channels of each opener that have a thread
};

}  // namespace tombolo::experiments
