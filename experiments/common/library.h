// SPDX-License-Identifier: Apache-2.0
// Purpose: MPI's calls as a program on the chip meets them: the one-sided engine, and the costs of
// the MPI library around it (windows/ knows no MPI, and takes no time for it). All experiments that
// compare with the papers' MPI programs call the engine through this layer, and so do the papers'
// own algorithms (published/): each has those of the engine's calls that its experiment makes.
//
//   each call               Timing::library_call: checks of arguments, look-up of the window, and
//                           the way through MPICH's layers (000 Table 3.4: start less conversion)
//   start, post             and the conversion of the group's ranks to those of the world, from
//                           which the core follows: convert_group at first, convert_rank for each
//                           (000 section 3.5.4; post needs the cores of its origins likewise: 000
//                           Algorithm 1, CORE_OF_PROC)
//   put                     and Timing::put_call: is the target's window mapped, are the datatypes
//                           contiguous (000 section 4.4.3); for experiments of 001, whose library
//                           is a later one, Timing::report_put_call
//
// The costs are those of the papers' software on a P54C: chips/scc.toml, [software].
//
// Invariants: LC1 a cost is charged before the engine acts, on the core that calls.
// Thread safety: as the engine.
#pragma once

#include <span>
#include <type_traits>

#include "backends/scc/scc.h"
#include "windows/engine.h"

namespace tombolo::experiments {

// Without an idle hook no call of the engine can fail in a right program.
inline void require(const Status& status) {
  TOMBOLO_CHECK(status.ok(), "experiment: {}", status.message());
}

// Ours, with its defaults, or one of published/.
template <class Window>
Window make_window(const scc::Attachment& at) {
  if constexpr (std::is_constructible_v<Window, const scc::Attachment&>) {
    return Window(at);
  } else {
    return Window(at, windows::EngineOptions());
  }
}

// How long `body` takes on a core, as its time-stamp counter says.
template <class Body>
simulator::Duration time_of(scc::Cpu& cpu, Body&& body) {
  const simulator::Time begin = cpu.now();
  body();
  return cpu.now() - begin;
}

// Whose library is around: the thesis's (000) or the report's (001).
enum class Software { thesis, report };

template <class Engine>
class LibraryOf {
 public:
  using Home = windows::Home;
  using Offset = windows::Offset;

  LibraryOf(Engine& engine, scc::Cpu& cpu, Software software = Software::thesis)
      : engine_(engine),
        cpu_(cpu),
        put_call_(software == Software::thesis ? cpu.timing().put_call
                                               : cpu.timing().report_put_call) {}

  void put(Home target, Offset at, const void* from, std::size_t bytes) {
    enter();
    cpu_.compute(put_call_);
    require(engine_.put(target, at, from, bytes));
  }
  void get(Home target, Offset at, void* to, std::size_t bytes) {
    enter();
    require(engine_.get(target, at, to, bytes));
  }

  void fence(windows::Assertions promise = {}) {
    enter();
    require(engine_.fence(promise));
  }
  void post(std::span<const Home> origins, windows::Assertions promise = {}) {
    enter();
    convert(origins.size());
    require(engine_.post(origins, promise));
  }
  void start(std::span<const Home> targets, windows::Assertions promise = {}) {
    enter();
    convert(targets.size());
    require(engine_.start(targets, promise));
  }
  void complete() {
    enter();
    require(engine_.complete());
  }
  void wait() {
    enter();
    require(engine_.wait());
  }

  void lock(sync::Access access, Home target, windows::Assertions promise = {}) {
    enter();
    require(engine_.lock(access, target, promise));
  }
  void unlock(Home target) {
    enter();
    require(engine_.unlock(target));
  }
  void lock_all(windows::Assertions promise = {}) {
    enter();
    require(engine_.lock_all(promise));
  }
  void unlock_all() {
    enter();
    require(engine_.unlock_all());
  }
  void flush(Home target) {
    enter();
    require(engine_.flush(target));
  }

  // Between the parts of an experiment: the engine's barrier, without MPI around it.
  void barrier() { require(engine_.barrier()); }

  // The time that start and post spend on the ranks of a group.
  static simulator::Duration conversion(const scc::Timing& timing, std::size_t ranks) {
    return timing.convert_group + timing.convert_rank * static_cast<std::int64_t>(ranks);
  }

 private:
  void enter() { cpu_.compute(cpu_.timing().library_call); }
  void convert(std::size_t ranks) { cpu_.compute(conversion(cpu_.timing(), ranks)); }

  Engine& engine_;
  scc::Cpu& cpu_;
  simulator::Duration put_call_;
};

using Library = LibraryOf<windows::Engine>;

}  // namespace tombolo::experiments
