// SPDX-License-Identifier: Apache-2.0
// Purpose: sites on the cores of a chip: one that creates remote families with Call, and others
// that serve them with Service, as Tombolo's run-time does between processes.
//
//   ChipSites sites(chip, 5);
//   sites.run([&](ChipSite& here) {
//     RemoteFamily family(here, 3, remote<&work>, {.limit = 10}, Carriage::remap, args...);
//     ...
//     family.sync();
//   });
//
// Thread safety: as Cpu.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "experiments/svp/chip_link.h"
#include "svp/transport/call.h"
#include "svp/transport/service.h"

namespace tombolo::experiments {

class ChipSite {
 public:
  ChipSite(scc::Cpu& cpu, ChipMemory& memory, ChipReach::Care care)
      : cpu_(cpu), memory_(memory), link_(cpu), reach_(cpu, memory, care) {}

  scc::Cpu& cpu() { return cpu_; }
  ChipMemory& memory() { return memory_; }
  ChipLink& link() { return link_; }
  ChipReach& reach() { return reach_; }

  svp::VirtualChannel open(svp::Site peer) { return {link_.self(), peer, next_++}; }
  void enter(svp::Call& call) { calls_.push_back(&call); }
  void leave(const svp::Call& call) { std::erase(calls_, &call); }
  // Sends all that is due, and takes a message.
  void work();

 private:
  scc::Cpu& cpu_;
  ChipMemory& memory_;
  ChipLink link_;
  ChipReach reach_;
  std::uint32_t next_ = 0;
  std::vector<svp::Call*> calls_;
};

template <class R, class... P>
class RemoteFamily {
 public:
  template <class... Args>
  RemoteFamily(ChipSite& here, svp::Site peer, R, const svp::Range& range, svp::Carriage carriage,
               Args&&... args)
      : here_(here),
        parameters_(P(args)...),
        pieces_(std::apply(
            [](P&... p) {
              return std::array<svp::Piece, sizeof...(P)>{svp::Parameter<P>::piece(p)...};
            },
            parameters_)),
        call_(here.open(peer), {.function = &R::entry(), .range = range, .carriage = carriage},
              pieces_) {
    call_.open(here.reach());
    here_.enter(call_);
    while (!call_.advance(here_.link())) here_.work();
  }
  ~RemoteFamily() { here_.leave(call_); }
  RemoteFamily(const RemoteFamily&) = delete;
  RemoteFamily& operator=(const RemoteFamily&) = delete;

  const svp::Completion& sync() {
    call_.ask_sync();
    while (!call_.ended()) here_.work();
    return call_.completion();
  }

 private:
  ChipSite& here_;
  std::tuple<P...> parameters_;
  std::array<svp::Piece, sizeof...(P)> pieces_;
  svp::Call call_;
};

namespace detail {

template <class R, class Tuple>
struct FamilyOf;
template <class R, class... P>
struct FamilyOf<R, std::tuple<P...>> {
  using Type = RemoteFamily<R, P...>;
};

}  // namespace detail

// A family of the function R, by its parameters.
template <class R>
using FamilyOf = typename detail::FamilyOf<R, typename R::Parameters>::Type;

class ChipSites {
 public:
  // Cores 0 to n - 1; the first creates.
  ChipSites(scc::Chip& chip, std::uint32_t n, ChipReach::Care care = {})
      : chip_(chip), sites_(n), care_(care) {}

  simulator::RunResult run(const std::function<void(ChipSite&)>& creator);

 private:
  void serve(scc::Cpu& cpu);

  scc::Chip& chip_;
  std::uint32_t sites_;
  ChipReach::Care care_;
  ChipMemory memory_;
  bool done_ = false;
};

}  // namespace tombolo::experiments
