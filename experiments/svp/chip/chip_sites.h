// SPDX-License-Identifier: Apache-2.0
// Purpose: sites on the cores of a chip that create families with Call and serve them with Service,
// as Tombolo's run-time does between processes: kills, breaks, errors, channels and families of
// families among them.
//
//   ChipSites sites(chip, {.sites = 5, .copy_cores = {CoreId(46)}});
//   sites.run([&](ChipSite& here) {
//     FamilyOf<Work> family(here, 3, Work(), {.limit = 10}, Transport::remap, args...);
//     FamilyOf<Work> in_turn(here, ChipPlace::exclusive(3), Work(), {}, Transport::best, args...);
//     ...
//     family.sync();
//   });
//
// Each family that runs on a core has a fibre of the simulation there, made when all of the core's
// are taken, and so has the core's own program, which also takes and sends all messages. One of
// them has the core at a time. It gives it away where it waits (for a family, for a value in a
// channel, for copy cores), at checkpoints and between two threads of a family. So a kill comes,
// and a family that blocks keeps back no other one. The threads of a family run one after the
// other.
//
// A place is a core, that of the creator among them, or a core's exclusive place, where one family
// runs at a time, in the order in which the creates came. Families of the creator's core use its
// variables, arrays and channels themselves (CHT3). Exclusive families of a core see each other's
// stores: these are of one core, through one set of caches, so nothing is published between two
// turns.
//
// Invariants: CST1 one fibre of a core runs at a time; the others' clocks stand.
//             CST2 a family that is left without a sync is killed and synced (as VFA2).
//             CST3 a family at an exclusive place begins when the one before it has ended; one that
//                 is stopped while it waits never runs, and waits for no other (as VEX1, VEX4).
//             CST4 memory of the creator that `direct` and `engine` copy is published before the
//                 request is sent, and refreshed when the family has ended. Where an array is no
//                 memory of the chip, all of the family's go in messages.
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

#include "experiments/svp/chip/chip_link.h"
#include "experiments/svp/chip/chip_threads.h"
#include "svp/family/external_threads.h"
#include "svp/remote/call.h"
#include "svp/remote/channel_parameters.h"

namespace tombolo::experiments {

class ChipSites;
class OpenFamily;

// Where a family is to run.
struct ChipPlace {
  svp::Site site = 0;
  bool is_exclusive = false;

  ChipPlace(svp::Site core) : site(core) {}  // NOLINT: a core is its default place
  static ChipPlace exclusive(svp::Site core) {
    ChipPlace place(core);
    place.is_exclusive = true;
    return place;
  }
};

struct ChipSitesShape {
  std::uint32_t sites = 1;                         // cores 0 to sites - 1; the first creates
  std::vector<simulator::CoreId> copy_cores = {};  // others; for Transport::engine
  std::uint64_t room_bytes = ~std::uint64_t{0};    // of each core, for it; of public pages at most
  // For tests, which leave an operation out.
  ChipReach::Care care = {};
  ChipEngine::Care engine_care = {};
};

class ChipSite {
 public:
  ChipSite(ChipSites& all, simulator::CoreId core);

  // That of the thread that runs, for functions that create families.
  static ChipSite& here();

  scc::Cpu& cpu() { return cpu_; }
  // Of the chip that are served.
  std::uint32_t sites() const;
  ChipMemory& memory() { return memory_; }
  ChipLink& link() { return link_; }
  ChipReach& reach() { return reach_; }
  const ChipEngine& engine() const { return engine_; }

  svp::VirtualChannel open(svp::Site peer) { return {link_.self(), peer, next_++}; }
  // Of a program of this core, to run here.
  void queue(OwnOnChip& family) { queue_.push_back(&family); }
  // The running thread's; null: the core's program runs.
  const ChipThreads* running_family() const { return running_->family; }
  void enter(OpenFamily& family) { calls_.push_back(&family); }
  void leave(const OpenFamily& family) { std::erase(calls_, &family); }

  // Returns once ready() is true; other fibres have the core meanwhile. False: the thread's family
  // was stopped before, and `unless_stopped`; or the run has been ended.
  using Ready = std::function<bool()>;
  bool wait(const Ready& ready, bool unless_stopped);
  // Of a family's thread: lets each other fibre of the core that can go on do so. Of the core's
  // program: nothing.
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
    ChipThreads* family = nullptr;
    Ready may_run;
  };

  // The core's program, which begins with the creator's, if there is one.
  void run(const std::function<void(ChipSite&)>* creator);
  void run_families(Fibre& fibre, simulator::Core& core);
  // Of the core's program: sends all that is due, takes a message, and lets families go on.
  void work();
  bool take(const svp::Message& message);
  void queue_if_ready(ServedOnChip& family);
  bool begin_families();
  void begin(ChipThreads& family);
  void give_fibre(ChipThreads& family);
  Fibre& add_fibre();
  void hand_over(Fibre& next);
  void end_fibres();

  ChipSites& all_;
  scc::Chip& chip_;
  scc::Cpu& cpu_;
  ChipMemory& memory_;
  ChipLink link_;
  ChipEngine engine_;
  ChipReach reach_;
  std::uint32_t next_ = 0;
  std::vector<OpenFamily*> calls_;
  std::vector<std::unique_ptr<ServedOnChip>> served_;
  // Families whose data have come and that have not begun, in the order of their creates.
  std::vector<ChipThreads*> queue_;
  const ChipThreads* exclusive_ = nullptr;  // the family that has the turn at the exclusive place
  std::deque<Fibre> fibres_;                // the first is the core's program
  Fibre* running_ = nullptr;
  bool working_ = false;  // in work()
  bool ended_ = false;
};

// A family that a program of this core has created, without its types.
class OpenFamily : svp::ChannelListener {
 public:
  // Returns once it has ended and its output is there. Throws Stopped if the creating thread's
  // family was stopped meanwhile, and this one with it.
  const svp::Completion& sync();
  void kill();

 protected:
  explicit OpenFamily(ChipSite& here) : here_(here) {}
  ~OpenFamily() = default;

  // At another core: returns when the data have been sent. (With itself a conversation would have
  // one name for both ends.)
  void create(const ChipPlace& place, svp::CallPlan plan, std::span<const svp::Piece> pieces,
              std::span<svp::ParentEnd* const> ends);
  // At this core.
  void create_here(OwnOnChip& family);
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
  void ask_sync();
  bool ended() const { return own_ != nullptr ? own_->ended() : call_->ended(); }
  const svp::Completion& completion() const {
    return own_ != nullptr ? own_->completion() : call_->completion();
  }
  // By the core's program.
  void advance();
  bool take(const svp::Message& message);

  ChipSite& here_;
  std::span<const svp::Piece> pieces_;
  std::span<svp::ParentEnd* const> ends_;
  OwnOnChip* own_ = nullptr;  // one of both
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
  ChipFamily(ChipSite& here, const ChipPlace& place, R, const svp::Range& range,
             svp::Transport transport, Args&&... args)
      : ChipFamily(here, place, {.function = &R::entry(), .range = range, .transport = transport},
                   std::index_sequence_for<P...>(), std::index_sequence_for<E...>(),
                   std::forward_as_tuple(std::forward<Args>(args)...)) {}
  ~ChipFamily() noexcept(false) { leave(); }
  ChipFamily(const ChipFamily&) = delete;
  ChipFamily& operator=(const ChipFamily&) = delete;

 private:
  using Own = OwnFamily<R, std::tuple<P...>, std::tuple<E...>>;

  template <std::size_t... d, std::size_t... c, class Args>
  ChipFamily(ChipSite& here, const ChipPlace& place, const svp::CallPlan& plan,
             std::index_sequence<d...>, std::index_sequence<c...>, Args&& args)
      : OpenFamily(here),
        parameters_(P(std::get<d>(std::forward<Args>(args)))...),
        parents_(std::get<sizeof...(P) + c>(args)...) {
    plan.range.check();
    (std::get<sizeof...(P) + c>(args).hand_over(), ...);
    if (place.site == here.link().self()) {
      own_family_.emplace(here.running_family(), plan.range, place.is_exclusive, arguments_,
                          parameters_, std::get<sizeof...(P) + c>(args)...);
      create_here(*own_family_);
    } else {
      create(place, plan, arguments_, ends_);
    }
  }

  std::tuple<P...> parameters_;
  std::array<svp::Piece, sizeof...(P)> arguments_ = std::apply(
      [](P&... p) { return std::array<svp::Piece, sizeof...(P)>{svp::Parameter<P>::piece(p)...}; },
      parameters_);
  std::tuple<typename svp::ChannelParameter<E>::Parent...> parents_;
  std::array<svp::ParentEnd*, sizeof...(E)> ends_ = std::apply(
      [](auto&... end) { return std::array<svp::ParentEnd*, sizeof...(E)>{&end...}; }, parents_);
  std::optional<Own> own_family_;
};

}  // namespace detail

// A family of the function R.
template <class R>
using FamilyOf = detail::ChipFamily<R, typename R::Data, typename R::ChannelEnds>;

class ChipSites final : public svp::ExternalThreads {
 public:
  ChipSites(scc::Chip& chip, const ChipSitesShape& shape);

  // By a thread of the system that is no worker.
  simulator::RunResult run(const std::function<void(ChipSite&)>& creator);

  bool block(const svp::Blocked& blocked) override;
  bool stopped() override;
  [[noreturn]] void break_with(std::int64_t value) override { ChipSite::here().break_with(value); }

 private:
  friend class ChipSite;

  void note_fibre(simulator::CoreId fibre, ChipSite& site);

  scc::Chip& chip_;
  ChipSitesShape shape_;
  ChipMemory memory_;
  std::vector<std::unique_ptr<ChipSite>> sites_;
  std::vector<ChipSite*> of_fibres_;  // by number; null: a copy core's
  bool done_ = false;
};

}  // namespace tombolo::experiments
