// SPDX-License-Identifier: Apache-2.0
// Purpose: a family whose threads run on a core of the chip, one after the other, on a fibre of
// that core (chip_sites.h): one that another core has created there, or one of the core's own
// programs. The threads of the latter use the creator's variables, arrays and channels themselves,
// as at a place of the creator's process on a host.
//
// Invariants: CHT1 the first of kill, break and error decides the end (as VFA1).
//             CHT2 run() is called once. Of a family that was stopped before that call no thread
//                 begins, and the call does not block.
//             CHT3 stores of the threads of a core's own family to memory of the chip are in the
//                 caches or the memory of the core when the family has ended, as if the creator
//                 had made them.
// Thread safety: as Cpu.
#pragma once

#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "base/status.h"
#include "svp/family/body.h"
#include "svp/remote/channel_parameters.h"
#include "svp/remote/function.h"
#include "svp/remote/service.h"

namespace tombolo::experiments {

class ChipSite;

class ChipThreads {
 public:
  ChipThreads(const ChipThreads&) = delete;
  ChipThreads& operator=(const ChipThreads&) = delete;

  // At the core's exclusive place.
  virtual bool is_exclusive() const = 0;
  bool stopped() const { return end_.reason != svp::ExitReason::done || kill_asked(); }
  // All threads, up to the end of the family.
  void run(ChipSite& site);
  [[noreturn]] void break_with(std::int64_t value);
  // This one or one above it, among those of this core, is at the exclusive place.
  bool within_exclusive() const;

 protected:
  // `creator`: the family of this core whose thread has created it; null: none.
  explicit ChipThreads(const ChipThreads* creator) : creator_(creator) {}
  ~ChipThreads() = default;

  virtual bool kill_asked() const = 0;
  // Brings the input to this core. The family fails with an error.
  virtual Status fetch(ChipSite& site) = 0;
  virtual const svp::Range& range() const = 0;
  virtual void begin_thread(svp::Index index, bool is_first, bool is_last) = 0;
  virtual void call(svp::Index index) = 0;
  // The family has no thread: the parent's values of channels go back to it.
  virtual void pass_on() = 0;
  // All threads of the family have ended; `early`: before their end, or without a begin.
  virtual void end_channels(bool early) = 0;
  // The family has ended.
  virtual void end(ChipSite& site, const svp::Completion& completion) = 0;

 private:
  void stop(const svp::Completion& end) {
    if (!stopped()) end_ = end;  // CHT1
  }
  bool run_guarded(ChipSite& site);
  void run_threads(ChipSite& site);

  const ChipThreads* creator_;
  svp::Completion end_;
};

// Of another core's request, from its first message until its channel is closed.
class ServedOnChip final : public ChipThreads {
 public:
  explicit ServedOnChip(const svp::VirtualChannel& channel)
      : ChipThreads(nullptr), service_(channel) {}

  bool take(const svp::Message& message) { return service_.take(message); }
  // True once: all of its data have come.
  bool becomes_ready();
  // True: the completion has been sent.
  bool advance(ChipSite& site);
  bool is_exclusive() const override { return service_.place() == svp::exclusive_place; }

 private:
  bool kill_asked() const override { return service_.kill_asked(); }
  Status fetch(ChipSite& site) override;
  const svp::Range& range() const override { return service_.range(); }
  void begin_thread(svp::Index index, bool is_first, bool is_last) override;
  void call(svp::Index index) override { service_.frame().call(index); }
  void pass_on() override;
  void end_channels(bool early) override;
  void end(ChipSite& site, const svp::Completion& completion) override;

  svp::Service service_;
  bool was_ready_ = false;
};

// Of a program of the same core, in the frame of its creator until it has ended.
class OwnOnChip : public ChipThreads {
 public:
  void ask_kill() { kill_asked_ = true; }
  // The creator will write to no channel any more.
  virtual void close_parent() = 0;
  bool is_exclusive() const override { return exclusive_; }
  bool ended() const { return completion_.has_value(); }
  const svp::Completion& completion() const { return *completion_; }

 protected:
  // `pieces`: the creator's data.
  OwnOnChip(const ChipThreads* creator, const svp::Range& range, bool exclusive,
            std::span<const svp::Piece> pieces)
      : ChipThreads(creator), pieces_(pieces), range_(range), exclusive_(exclusive) {}
  ~OwnOnChip() = default;

 private:
  bool kill_asked() const override { return kill_asked_; }
  Status fetch(ChipSite&) override {
    begun_ = true;
    return {};
  }
  const svp::Range& range() const override { return range_; }
  void end(ChipSite& site, const svp::Completion& completion) override;
  void store_output(ChipSite& site);

  std::span<const svp::Piece> pieces_;
  svp::Range range_;
  bool exclusive_;
  bool kill_asked_ = false;
  bool begun_ = false;
  std::optional<svp::Completion> completion_;
};

namespace detail {

template <class R, class Data, class Ends>
class OwnFamily;

template <auto f, class... P, class... E>
class OwnFamily<svp::Remote<f>, std::tuple<P...>, std::tuple<E...>> final : public OwnOnChip {
 public:
  template <class E1>
  using ChannelOf = typename svp::ChannelParameter<E1>::Channel;

  OwnFamily(const ChipThreads* creator, const svp::Range& range, bool exclusive,
            std::span<const svp::Piece> pieces, std::tuple<P...>& parameters,
            ChannelOf<E>&... channels)
      : OwnOnChip(creator, range, exclusive, pieces),
        parameters_(parameters),
        channels_(channels...),
        ends_(channels...) {}

  void close_parent() override {
    std::apply([](auto&... channel) { (channel.close_parent(), ...); }, channels_);
  }

 private:
  void begin_thread(svp::Index index, bool is_first, bool is_last) override {
    each_ordered([&](auto& end) { end.begin(index, is_first, is_last); });
  }
  void pass_on() override {
    each_ordered([](auto& end) { end.pass_on(); });
  }
  void end_channels(bool early) override {
    each_ordered([early](auto& end) { end.end(early); });
  }
  void call(svp::Index index) override {
    std::apply([&](P&... parameter) { call_with(index, parameter...); }, parameters_);
  }
  void call_with(svp::Index index, P&... parameter) {
    std::apply(
        [&](auto&... end) {
          if constexpr (svp::Remote<f>::takes_index)
            f(index, parameter..., end...);
          else
            f(parameter..., end...);
        },
        ends_);
  }
  template <class Use>
  void each_ordered(Use&& use) {
    std::apply([&](auto&... end) { (if_ordered<E>(use, end), ...); }, ends_);
  }
  template <class E1, class Use, class End>
  static void if_ordered(Use& use, End& end) {
    if constexpr (svp::OrderedChannel<ChannelOf<E1>>) use(end);
  }

  std::tuple<P...>& parameters_;
  std::tuple<ChannelOf<E>&...> channels_;
  std::tuple<typename ChannelOf<E>::End...> ends_;
};

}  // namespace detail

}  // namespace tombolo::experiments
