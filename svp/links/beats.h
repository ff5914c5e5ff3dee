// SPDX-License-Identifier: Apache-2.0
// Purpose: which processes of a job are silent. Process 0 and each other one send each other a beat
// now and then: a host whose network is cut off says nothing more, and no connection breaks.
// Process 0 tells the others which of them are lost.
//
// Invariants: BTS1 a process is silent if nothing came of it for `silence_limit`. Time in which
//                 this process itself was kept from looking, as by a debugger, does not count.
// Thread safety: one thread at a time.
#pragma once

#include <chrono>
#include <vector>

#include "svp/links/link.h"

namespace tombolo::svp {

class Beats {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds interval{500};
  static constexpr std::chrono::milliseconds silence_limit{4000};

  Beats(Site self, Site sites, Clock::time_point now) : heard_(sites, now), last_look_(now) {
    for (Site site = self == 0 ? 1 : 0; site < (self == 0 ? sites : 1); ++site)
      peers_.push_back(site);
  }

  void heard(Site from, Clock::time_point now) { heard_[from] = now; }
  void forget(Site lost) { std::erase(peers_, lost); }

  // Calls beat(site) for those that are due to hear one, and silent(site) for those that are.
  template <class Beat, class Silent>
  void look(Clock::time_point now, Beat&& beat, Silent&& silent) {
    // Beats that have come in that time have yet to be read.
    if (now - last_look_ > 2 * interval)
      for (Clock::time_point& at : heard_) at += now - last_look_;
    last_look_ = now;
    const std::vector<Site> peers = now >= next_beat_ ? peers_ : std::vector<Site>();
    for (const Site peer : peers) {
      if (now - heard_[peer] > silence_limit)
        silent(peer);
      else
        beat(peer);
    }
    if (now >= next_beat_) next_beat_ = now + interval;
  }

 private:
  std::vector<Site> peers_;
  std::vector<Clock::time_point> heard_;  // by site
  Clock::time_point last_look_;
  Clock::time_point next_beat_{};
};

}  // namespace tombolo::svp
