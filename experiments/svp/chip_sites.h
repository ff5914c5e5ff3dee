// SPDX-License-Identifier: Apache-2.0
// Purpose: sites on the cores of a chip that create remote families with Call and serve them with
// Service, as Tombolo's run-time does between processes: kills, breaks, errors, channels and
// families of families among them.
//
//   ChipSites sites(chip, 5);
//   sites.run([&](ChipSite& here) {
//     FamilyOf<Work> family(here, 3, Work(), {.limit = 10}, Carriage::remap, args...);
//     ...
//     family.sync();
//   });
//
// Each served family is a fibre of the simulation, and so is the core's own program, which also
// takes and sends all messages. One of them has the core at a time. It gives it away where it waits
// (for a family, for a value in a channel), at checkpoints and between two threads of a family. So
// a kill comes, and a family that blocks keeps back no other one, up to `families_at_a_time` of a
// core. A further one waits for the end of one of those: for ever, where all of them wait for
// further ones. The threads of a family run one after the other.
//
// Invariants: CST1 one fibre of a core runs at a time; the others' clocks stand.
//             CST2 a family that is left without a sync is killed and synced (as VFA2).
//             CST3 the first of kill, break and error decides the end (as VFA1).
//             CST4 memory of the creator that `direct` copies is published before the request is
//                 sent, and refreshed when the family has ended. Where an array is no memory of the
//                 chip, all of the family's go in messages.
// Thread safety: as Cpu.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "experiments/svp/chip_link.h"
#include "svp/family/surroundings.h"
#include "svp/transport/call.h"
#include "svp/transport/channel_parameters.h"
#include "svp/transport/service.h"

namespace tombolo::experiments {

class ChipSites;
class OpenFamily;
class ServedOnChip;

class ChipSite {
 public:
  ChipSite(ChipSites& all, scc::Chip& chip, simulator::CoreId core, ChipMemory& memory,
           ChipReach::Care care, std::uint32_t families_at_a_time);
  ~ChipSite();

  // That of the thread that runs, for functions that create families.
  static ChipSite& here();

  scc::Cpu& cpu() { return cpu_; }
  // Of the chip that are served.
  std::uint32_t sites() const;
  ChipMemory& memory() { return memory_; }
  ChipLink& link() { return link_; }
  ChipReach& reach() { return reach_; }

  svp::VirtualChannel open(svp::Site peer) { return {link_.self(), peer, next_++}; }
  void enter(OpenFamily& family) { calls_.push_back(&family); }
  void leave(const OpenFamily& family) { std::erase(calls_, &family); }

  // Until ready() is true; others have the core meanwhile. False: the thread's family was stopped
  // before, and that matters; or the run has been ended.
  using Ready = std::function<bool()>;
  bool wait(const Ready& ready, bool unless_stopped);
  // Others have the core once; nothing, of the core's program.
  void pass();
  bool stopped();
  [[noreturn]] void break_with(std::int64_t value);
  // The simulation has not been ended early.
  bool goes_on() const { return !chip_.simulation().stopped(); }

 private:
  friend class ChipSites;
  struct Fibre {
    simulator::Core* core = nullptr;
    simulator::Address word;  // it waits here for the core
    ServedOnChip* family = nullptr;
    Ready may_run;
  };

  // The core's program, which begins with the creator's, if there is one.
  void run(const std::function<void(ChipSite&)>* creator);
  void run_families(Fibre& fibre, simulator::Core& core);
  // Of the core's program: sends all that is due, takes a message, and lets families go on.
  void work();
  bool take(const svp::Message& message);
  bool begin_families();
  void hand_over(Fibre& next);
  void end_fibres();

  ChipSites& all_;
  scc::Chip& chip_;
  scc::Cpu& cpu_;
  ChipMemory& memory_;
  ChipLink link_;
  ChipReach reach_;
  std::uint32_t next_ = 0;
  std::vector<OpenFamily*> calls_;
  std::vector<std::unique_ptr<ServedOnChip>> served_;
  std::deque<Fibre> fibres_;  // the first is the core's program
  Fibre* running_ = nullptr;
  bool ended_ = false;
};

// A family that a program of this core has created elsewhere, without its types.
class OpenFamily : svp::ChannelListener {
 public:
  // Returns once it has ended and its output is there. Throws Stopped if the creating thread's
  // family was stopped meanwhile, and this one with it.
  const svp::Completion& sync();
  void kill() { call_->ask_kill(); }

 protected:
  explicit OpenFamily(ChipSite& here) : here_(here) {}
  ~OpenFamily() = default;

  // Returns when the data have been sent. The peer is another core: a conversation with itself
  // would have one name for both ends.
  void create(svp::Site peer, const svp::CallPlan& plan, std::span<const svp::Piece> pieces,
              std::span<svp::ParentEnd* const> ends);
  // CST2.
  void leave();

 private:
  friend class ChipSite;
  void channel_changed() noexcept override { changed_ = true; }
  // Arrays that go from memory to memory, past the caches (CST4).
  bool may_copy(const svp::CallPlan& plan, svp::Site peer) const;
  void publish_copied();
  void refresh_copied();
  void look_at_channels();
  // By the core's program.
  void advance();
  bool take(const svp::Message& message);

  ChipSite& here_;
  std::span<const svp::Piece> pieces_;
  std::span<svp::ParentEnd* const> ends_;
  std::optional<svp::Call> call_;
  bool copied_ = false;
  bool changed_ = false;
  bool all_sent_ = false;
};

namespace detail {

template <class R, class Data, class Ends>
class ChipFamily;

template <class R, class... P, class... E>
class ChipFamily<R, std::tuple<P...>, std::tuple<E...>> final : public OpenFamily {
 public:
  template <class... Args>
  ChipFamily(ChipSite& here, svp::Site peer, R, const svp::Range& range, svp::Carriage carriage,
             Args&&... args)
      : ChipFamily(here, peer, {.function = &R::entry(), .range = range, .carriage = carriage},
                   std::index_sequence_for<P...>(), std::index_sequence_for<E...>(),
                   std::forward_as_tuple(std::forward<Args>(args)...)) {}
  ~ChipFamily() noexcept(false) { leave(); }
  ChipFamily(const ChipFamily&) = delete;
  ChipFamily& operator=(const ChipFamily&) = delete;

 private:
  template <std::size_t... d, std::size_t... c, class Args>
  ChipFamily(ChipSite& here, svp::Site peer, const svp::CallPlan& plan, std::index_sequence<d...>,
             std::index_sequence<c...>, Args&& args)
      : OpenFamily(here),
        parameters_(P(std::get<d>(std::forward<Args>(args)))...),
        parents_(std::get<sizeof...(P) + c>(args)...) {
    (std::get<sizeof...(P) + c>(args).hand_over(), ...);
    create(peer, plan, arguments_, ends_);
  }

  std::tuple<P...> parameters_;
  std::array<svp::Piece, sizeof...(P)> arguments_ = std::apply(
      [](P&... p) { return std::array<svp::Piece, sizeof...(P)>{svp::Parameter<P>::piece(p)...}; },
      parameters_);
  std::tuple<typename svp::ChannelParameter<E>::Parent...> parents_;
  std::array<svp::ParentEnd*, sizeof...(E)> ends_ = std::apply(
      [](auto&... end) { return std::array<svp::ParentEnd*, sizeof...(E)>{&end...}; }, parents_);
};

}  // namespace detail

// A family of the function R.
template <class R>
using FamilyOf = detail::ChipFamily<R, typename R::Data, typename R::ChannelEnds>;

class ChipSites final : public svp::Surroundings {
 public:
  static constexpr std::uint32_t families_at_a_time = 8;  // of a core, unless said

  // Cores 0 to n - 1; the first creates.
  ChipSites(scc::Chip& chip, std::uint32_t n, ChipReach::Care care = {},
            std::uint32_t families = families_at_a_time);

  // By a thread of the system that is no worker.
  simulator::RunResult run(const std::function<void(ChipSite&)>& creator);

  bool block(const svp::Blocked& blocked) override;
  bool stopped() override;
  [[noreturn]] void break_with(std::int64_t value) override { ChipSite::here().break_with(value); }

 private:
  friend class ChipSite;

  scc::Chip& chip_;
  ChipMemory memory_;
  std::vector<std::unique_ptr<ChipSite>> sites_;
  std::vector<ChipSite*> of_fibres_;  // by number
  bool done_ = false;
};

}  // namespace tombolo::experiments
