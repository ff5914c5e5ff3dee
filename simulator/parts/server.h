// SPDX-License-Identifier: Apache-2.0
// Purpose: a resource that serves one request at a time: a link, a memory controller, a register.
//
//   const Server::Slot slot = controller.serve(core.now(), clock.cycles(46));
//   core.advance_to(slot.end);
//
// Requests that come from farther away may be handed in before they arrive: a packet reserves all
// links of its way when it is sent. One that is handed in later and arrives earlier then takes an
// idle stretch before the reservation, if it fits in.
//
// Invariants: SV1 no two slots overlap; a slot begins no earlier than its request arrives.
//             SV2 requests handed in by arrival are served first come, first served, at once when
//                 the server is idle.
//             SV3 it remembers the last gaps idle stretches; of one that is taken in part it
//                 remembers the longer rest. A forgotten stretch counts as busy.
// Thread safety: one thread at a time. A core has the turn when it calls serve.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/check.h"
#include "simulator/kernel/time.h"

namespace tombolo::simulator {

class Server {
 public:
  static constexpr std::uint32_t gaps = 8;

  struct Slot {
    Time begin;
    Time end;
  };

  Slot serve(Time arrival, Duration service) {
    TOMBOLO_CHECK(service >= Duration(), "a service of {} ticks", service.in_ticks());
    ++served_;
    busy_ += service;
    if (arrival < free_) {
      if (const Gap* gap = find(arrival, service))
        return take(gaps_[static_cast<std::size_t>(gap - gaps_.data())], arrival, service);
    } else if (arrival > free_) {
      gaps_[newest_++ % gaps] = {free_, arrival};
    }
    const Time begin = std::max(arrival, free_);
    free_ = begin + service;
    waited_ += begin - arrival;
    return {begin, free_};
  }

  // Where serve would let it begin.
  Time begin_of(Time arrival, Duration service) const {
    if (arrival < free_)
      if (const Gap* gap = find(arrival, service)) return std::max(gap->begin, arrival);
    return std::max(arrival, free_);
  }

  // When all that was handed in is done.
  Time free_from() const { return free_; }
  std::uint64_t served() const { return served_; }
  Duration busy() const { return busy_; }
  // By all requests together, from arrival to the begin of their slots.
  Duration waited() const { return waited_; }
  // The part of the time up to `end` in which it was busy.
  double utilisation(Time end) const {
    return end == Time() ? 0.0 : busy_.in_nanoseconds() / end.since_start().in_nanoseconds();
  }

 private:
  struct Gap {
    Time begin;
    Time end;
  };

  // The earliest gap that has room. They are sorted; most requests end at the newest.
  const Gap* find(Time arrival, Duration service) const {
    const Gap* found = nullptr;
    const std::uint64_t oldest = newest_ > gaps ? newest_ - gaps : 0;
    for (std::uint64_t i = newest_; i > oldest; --i) {
      const Gap& gap = gaps_[(i - 1) % gaps];
      if (gap.end <= arrival) break;
      if (std::max(gap.begin, arrival) + service <= gap.end) found = &gap;
    }
    return found;
  }

  Slot take(Gap& gap, Time arrival, Duration service) {
    const Slot slot{std::max(gap.begin, arrival), std::max(gap.begin, arrival) + service};
    waited_ += slot.begin - arrival;
    if (slot.begin - gap.begin > gap.end - slot.end) {
      gap.end = slot.begin;
    } else {
      gap.begin = slot.end;
    }
    return slot;
  }

  Time free_;
  std::array<Gap, gaps> gaps_;
  std::uint64_t newest_ = 0;  // gaps so far
  std::uint64_t served_ = 0;
  Duration busy_;
  Duration waited_;
};

}  // namespace tombolo::simulator
