// SPDX-License-Identifier: Apache-2.0
// Purpose: the events of a run, one by one for a listener, and as one number that two equal runs
// share.
// Invariants: TR1 the digest depends on the events and their order, on nothing of the host.
// Thread safety: values.
#pragma once

#include <cstdint>
#include <functional>

#include "simulator/kernel/identifiers.h"
#include "simulator/kernel/time.h"

namespace tombolo::simulator {

enum class Action : std::uint8_t {
  turn,    // a core may touch state that others see
  park,    // a core waits for a store; value: the word's address
  wake,    // a parked core was woken by a store; value: the word's address
  expire,  // a parked core's deadline passed; value: the word's address
  event,   // an event without a core came due; value: how many there were before
  finish,  // a core's program has returned
  note,    // Core::note; value: its argument
};

// The core of an Action::event.
inline constexpr CoreId no_core{0xffffffffu};

struct TraceRecord {
  Action action;
  CoreId core;
  Time time;
  std::uint64_t value;
};

using Tracer = std::function<void(const TraceRecord&)>;

class Digest {
 public:
  void add(const TraceRecord& r) {
    mix((std::uint64_t{r.core.index()} << 8) | static_cast<std::uint64_t>(r.action));
    mix(static_cast<std::uint64_t>(r.time.since_start().in_ticks()));
    mix(r.value);
  }
  std::uint64_t value() const { return state_; }

 private:
  void mix(std::uint64_t x) {
    state_ = (state_ ^ x) * 0x9e3779b97f4a7c15u;
    state_ ^= state_ >> 29;
  }
  std::uint64_t state_ = 0x6a09e667f3bcc909u;
};

}  // namespace tombolo::simulator
