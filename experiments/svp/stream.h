// SPDX-License-Identifier: Apache-2.0
// Purpose: the form of all links of the run-time of 002: streams of bytes between two cores, the
// virtual channels of section 5.2, that one side opens and the other accepts.
// Thread safety: as Cpu.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "experiments/svp/linux.h"

namespace tombolo::experiments {

class Stream {
 public:
  explicit Stream(Linux& system) : system_(system) {}
  virtual ~Stream() = default;

  virtual simulator::CoreId peer() const = 0;
  // All bytes, in the order of the calls. send() returns when the memory may be used again.
  virtual void send(scc::View from, std::uint64_t bytes) = 0;
  virtual void receive(scc::View to, std::uint64_t bytes) = 0;
  // Lets the peer send, where it waits to be asked (section 5.2.2).
  virtual void ask() {}
  virtual void await_asking() {}
  // The opener has all that it wants; the other side waits for that before it frees its memory.
  virtual void close() = 0;
  virtual void await_close() = 0;

  // Values by way of the thread's memory.
  void send_words(std::span<const std::uint64_t> words);
  void receive_words(std::span<std::uint64_t> words);

 protected:
  Linux& system_;
};

// Of one core.
class Streams {
 public:
  virtual ~Streams() = default;
  virtual std::unique_ptr<Stream> open(simulator::CoreId peer) = 0;
  // Waits for one that another core opens; null: the system stops.
  virtual std::unique_ptr<Stream> accept() = 0;
};

}  // namespace tombolo::experiments
