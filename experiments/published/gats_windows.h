// SPDX-License-Identifier: Apache-2.0
// Purpose: several windows of a process over the same memory, as a program has that opens an epoch
// for each part of its exchange (000 appendix B.3.2). Each has the data of a published algorithm,
// MatchVectorGats or MatchListGats, for itself; communication and coherence are those of one window
// of ours (windows/window.h), as GatsWindow has it.
//
//   GatsWindows<Core, MatchVectorGats, 2> windows(at);
//   windows[0].post(origins);   windows[1].post(origins);
//   windows[0].start(targets);  windows[1].start(targets);
//   windows[0].put(...);        windows[0].complete();  ...
//
// Invariants: GS1 the epoch of our window is open while any of theirs is; it is never waited for.
//             GS2 puts are in memory before the targets of an epoch hear of its end, whichever of
//                 the epochs ends first.
//             GS3 the program's stores into its region are in memory before each post, and others'
//                 puts there are seen after each wait.
// Thread safety: one call at a time per object.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <span>

#include "windows/window.h"

namespace tombolo::experiments::published {

template <machine::Core C, template <class> class Gats, std::size_t number>
class GatsWindows {
  using Layouts = std::array<typename Gats<C>::Layout, number>;

 public:
  using Home = machine::Home;
  using Offset = machine::Offset;

  class One {
   public:
    One(GatsWindows& all, typename Gats<C>::Layout layout)
        : all_(all), part_(all.window_.core(), layout) {}

    C& core() { return all_.window_.core(); }
    Status barrier() { return all_.window_.barrier(); }

    Status put(Home target, Offset at, const void* from, std::size_t bytes) {
      TOMBOLO_TRY(part_.await(target));
      return all_.window_.put(target, at, from, bytes);
    }
    Status post(std::span<const Home> origins, windows::Assertions promise = {}) {
      TOMBOLO_TRY(all_.window_.sync());  // GS3
      return part_.post(origins, promise);
    }
    Status start(std::span<const Home> targets, windows::Assertions promise = {}) {
      TOMBOLO_TRY(all_.enter());
      return part_.start(targets, promise);
    }
    Status complete() {
      TOMBOLO_TRY(all_.leave());
      return part_.complete();
    }
    Status wait() {
      TOMBOLO_TRY(part_.wait());
      return all_.window_.sync();  // GS3
    }

   private:
    GatsWindows& all_;
    Gats<C> part_;
  };

  static std::size_t sync_bytes(Home cores) {
    machine::SyncLayout sync(windows::Window<C>::sync_bytes(cores));
    take(sync, cores);
    return sync.bytes();
  }

  explicit GatsWindows(const machine::AttachmentOf<C>& at) : window_(at, {}) {
    machine::SyncLayout sync(windows::Window<C>::sync_bytes(at.cores));
    for (const auto& layout : take(sync, at.cores)) windows_.emplace_back(*this, layout);
  }
  GatsWindows(const GatsWindows&) = delete;
  GatsWindows& operator=(const GatsWindows&) = delete;

  C& core() { return window_.core(); }
  One& operator[](std::size_t n) { return windows_.at(n); }

 private:
  static Layouts take(machine::SyncLayout& sync, Home cores) {
    Layouts layouts;
    for (auto& layout : layouts) layout = Gats<C>::take(sync, cores);
    return layouts;
  }

  Status enter() { return open_++ == 0 ? window_.lock_all({.no_check = true}) : Status(); }  // GS1
  Status leave() { return --open_ == 0 ? window_.unlock_all() : window_.flush_all(); }       // GS2

  windows::Window<C> window_;
  std::deque<One> windows_;
  int open_ = 0;
};

}  // namespace tombolo::experiments::published
