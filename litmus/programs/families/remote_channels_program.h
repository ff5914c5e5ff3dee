// SPDX-License-Identifier: Apache-2.0
// Purpose: channels of remote families (svp/remote/): core 0 creates families at core 1, and
// then writes a value for each; a family gives back one more than it has read. Core 0 takes the
// values in the order opposite to that of their families: with a wish for each before the sync, or
// after it.
//
// Invariants: GP1 of explorer/program.h: the outcome is that of memory alone.
// Thread safety: as Program.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "litmus/explorer/program.h"
#include "litmus/explorer/run.h"
#include "svp/remote/call.h"
#include "svp/remote/service.h"

namespace tombolo::litmus {

// When core 0 takes the last values.
enum class Taking : std::uint8_t { before_sync, with_the_end };

namespace detail {

// The family's end of its channel, without threads that block: the program looks.
class ExploredEnd final : public svp::FamilyEnd {
 public:
  void listen(svp::ChannelListener&) override {}
  void bring_value(const std::byte* from) override {
    std::memcpy(&value.emplace(), from, sizeof *value);
  }
  void close_parent() override { closed = true; }
  const void* last() const override { return written ? &*written : nullptr; }
  bool settled() const override { return written.has_value(); }
  bool ended_early() const override { return false; }
  void begin(svp::Index, bool, bool) override {}
  void pass_on() override {}
  void end(bool) override {}

  std::optional<std::uint64_t> value;
  std::optional<std::uint64_t> written;
  bool closed = false;
};

class ExploredFrame final : public svp::Frame {
 public:
  std::span<svp::Piece> pieces() override { return {}; }
  void bind() override {}
  void call(svp::Index) override {}
  std::span<svp::FamilyEnd* const> channels() override { return ends_; }
  static std::unique_ptr<svp::Frame> make(const svp::FunctionEntry&) {
    return std::make_unique<ExploredFrame>();
  }
  ExploredEnd end;

 private:
  std::array<svp::FamilyEnd*, 1> ends_{&end};
};

inline constexpr svp::ChannelForm explored_channel{
    .value = svp::form_of<std::uint64_t>(svp::Flow::in, false), .shared = true};
inline const svp::FunctionEntry& with_a_channel() {
  static const svp::FunctionEntry entry = [] {
    const svp::FunctionEntry made{.id = 1,
                                  .name = "with a channel",
                                  .channels = std::span(&explored_channel, 1),
                                  .frame = &ExploredFrame::make};
    svp::enter_function(made);
    return made;
  }();
  return entry;
}

}  // namespace detail

// `LinkOn`: as RemoteProgram's.
template <class C, template <class> class LinkOn, class Call = svp::Call,
          class Service = svp::Service>
class RemoteChannelsProgram final : public Program {
 public:
  using L = LinkOn<C>;
  RemoteChannelsProgram(unsigned families, Taking taking) : families_(families), taking_(taking) {
    (void)detail::with_a_channel();
  }

  MemoryShape shape() const override {
    machine::SyncLayout layout(C::reserved_sync_bytes(cores));
    (void)take(layout);
    return {.cores = cores, .sync_bytes = layout.bytes(), .data_bytes = cores * link_bytes};
  }
  void begin() override {}
  void run(const machine::Attachment& at, Run& run) override {
    C core(at);
    machine::SyncLayout layout(C::reserved_sync_bytes(cores));
    L link(core, take(layout));
    if (at.self == 0)
      create_and_sync(link, run);
    else
      serve(link, run);
  }
  std::string outcome(const Memory&, Run&) override { return "all values have come"; }

 private:
  static constexpr machine::Home cores = 2;
  static constexpr std::uint64_t link_bytes = 1024;

  static typename L::Layout take(machine::SyncLayout& layout) {
    if constexpr (svp::HasOneMailbox<L>)
      return L::take(layout, 0, link_bytes);
    else
      return L::take(layout, cores, 0, link_bytes);
  }
  static void wait(L& link, Run& run) {
    if (const Status status = link.wait(); !status.ok()) run.fail(status.message());
  }
  static void send(L& link, Call& call, Run& run) {
    while (!call.advance(link)) wait(link, run);
  }

  void create_and_sync(L& link, Run& run) {
    svp::NoReach reach;
    std::vector<std::unique_ptr<Call>> calls;
    for (std::uint32_t family = 0; family < families_; ++family) {
      calls.push_back(std::make_unique<Call>(
          svp::VirtualChannel{.opener = 0, .peer = 1, .number = family},
          svp::CallPlan{.function = &detail::with_a_channel()}, std::span<const svp::Piece>()));
      calls.back()->open(reach);
      send(link, *calls.back(), run);
      const std::uint64_t value = 10 + family;
      calls.back()->tell_value(0, &value);
      if (taking_ == Taking::before_sync) send(link, *calls.back(), run);
    }
    for (std::uint32_t family = families_; family-- > 0;)
      if (taking_ == Taking::before_sync) {
        calls[family]->want_last(0);
        take_value(link, *calls[family], family, run);
      }
    for (std::uint32_t family = families_; family-- > 0;) {
      calls[family]->ask_sync();
      if (taking_ == Taking::with_the_end) take_value(link, *calls[family], family, run);
      std::optional<std::uint64_t> none;
      while (!calls[family]->ended()) move(link, *calls[family], none, run);
    }
  }
  static void take_value(L& link, Call& call, std::uint32_t family, Run& run) {
    std::optional<std::uint64_t> last;
    while (!last) move(link, call, last, run);
    if (*last != 11 + family)
      run.fail(fmt::format("stale data: family {} gave back {}", family, *last));
  }
  // Takes the messages of its own virtual channel alone.
  static void move(L& link, Call& call, std::optional<std::uint64_t>& last, Run& run) {
    svp::NoReach reach;
    const bool sent = call.advance(link);
    const bool took = link.poll([&](const svp::Message& message) {
      return call.take(message, reach, [&](const svp::Note& note) {
        if (note.news == svp::News::value)
          std::memcpy(&last.emplace(), note.value, sizeof *last);
        else
          run.fail("no last value");
      });
    });
    if (!took && !call.ended() && !(sent && last)) wait(link, run);
  }

  void serve(L& link, Run& run) {
    svp::NoReach reach;
    std::map<std::uint32_t, Service> services;
    for (unsigned closed = 0; closed < families_;) {
      bool moved = link.poll([&](const svp::Message& message) {
        const svp::VirtualChannel& channel = message.channel;
        return services.try_emplace(channel.number, channel).first->second.take(message);
      });
      for (auto at = services.begin(); at != services.end();) {
        Service& service = at->second;
        moved = run_family(service, reach, run) || moved;
        const bool over = service.advance(link);
        closed += over ? 1 : 0;
        moved = moved || over;
        at = over ? services.erase(at) : std::next(at);
      }
      if (!moved && closed < families_) wait(link, run);
    }
  }
  static bool run_family(Service& service, svp::NoReach& reach, Run& run) {
    if (!service.ready() || service.ended()) return false;
    detail::ExploredEnd& end = static_cast<detail::ExploredFrame&>(service.frame()).end;
    if (!end.value && end.closed)
      run.fail("a thread reads a channel, and the parent is said to have written nothing");
    if (!end.value) return false;
    if (const Status there = service.fetch(reach); !there.ok()) run.fail(there.message());
    end.written = *end.value + 1;
    service.end(reach, {});
    return true;
  }

  unsigned families_;
  Taking taking_;
};

}  // namespace tombolo::litmus
