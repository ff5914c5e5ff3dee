// SPDX-License-Identifier: Apache-2.0
// Purpose: the protocol of remote families (svp/remote/) in the sequence of 002 section 5.2.2:
// core 0 creates families at core 1 and syncs the last one first, while the first one ends first.
// Each has a variable of core 0 that goes by its address: its family sees the value at the create,
// and core 0 the family's after the sync. Core 0 takes the messages of the family that it syncs
// alone, and they are asked for; or all messages when they come, and they come unasked.
//
// Invariants: GP1 of explorer/program.h: the outcome is that of memory alone.
// Thread safety: as Program.
#pragma once

#include <fmt/format.h>

#include <array>
#include <map>
#include <memory>
#include <vector>

#include "litmus/explorer/program.h"
#include "litmus/explorer/run.h"
#include "svp/remote/call.h"
#include "svp/remote/service.h"

namespace tombolo::litmus {

// The steps of the reach that the program leaves out, wrongly.
enum class RemoteFault : std::uint8_t { none, publish, refresh, map, unmap };

// The messages that core 0 takes.
enum class Answers : std::uint8_t { asked, unasked, unasked_of_the_synced };

namespace detail {

inline void of_a_variable(svp::InOutArray<std::uint64_t>) {}

}  // namespace detail

// `Link`: over C, with take(layout, at, bytes) or take(layout, cores, at, bytes).
template <class C, template <class> class LinkOn, class Service = svp::Service>
class RemoteProgram final : public Program {
 public:
  using L = LinkOn<C>;
  RemoteProgram(unsigned families, RemoteFault fault, Answers answers)
      : families_(families), fault_(fault), answers_(answers) {}

  MemoryShape shape() const override {
    machine::SyncLayout layout(C::reserved_sync_bytes(cores));
    (void)take(layout);
    return {.cores = cores,
            .sync_bytes = layout.bytes(),
            .data_bytes = variables + std::size_t{families_} * line_bytes};
  }
  void begin() override {}
  void run(const machine::Attachment& at, Run& run) override {
    C core(at);
    machine::SyncLayout layout(C::reserved_sync_bytes(cores));
    L link(core, take(layout));
    Reached reach{core, fault_};
    if (at.self == 0)
      create_and_sync(core, link, reach, run);
    else
      serve(core, link, reach, run);
  }
  std::string outcome(const Memory&, Run&) override { return "all families were synced"; }

 private:
  using Calls = std::vector<std::unique_ptr<svp::Call>>;
  static constexpr machine::Home cores = 2;
  static constexpr std::uint64_t link_bytes = 1024;
  static constexpr machine::Offset variables = cores * link_bytes;

  // Memory of core 0, whose addresses are offsets.
  struct Reached {
    C& core;
    RemoteFault fault;

    static machine::DataPlace place(const void* at) {
      return {0, reinterpret_cast<std::uintptr_t>(at)};
    }
    static bool copies(svp::Site) { return false; }
    static Status get(svp::Site, std::uint64_t, void*, std::size_t) { return {}; }
    static Status put(svp::Site, std::uint64_t, const void*, std::size_t) { return {}; }
    static bool can_show(svp::Site, const void*, std::size_t) { return true; }
    void publish(const void* at, std::size_t bytes) {
      if (fault != RemoteFault::publish) core.publish(place(at), bytes);
    }
    void refresh(void* at, std::size_t bytes) {
      if (fault != RemoteFault::refresh) core.refresh(place(at), bytes);
    }
    void* map(svp::Site, std::uint64_t address, std::size_t bytes) {
      auto* const at = reinterpret_cast<void*>(address);
      if (fault != RemoteFault::map) core.refresh(place(at), bytes);
      return at;
    }
    void unmap(svp::Site, std::uint64_t, void* at, std::size_t bytes, bool) {
      if (fault != RemoteFault::unmap) core.publish(place(at), bytes);
    }
  };
  static_assert(svp::Reach<Reached>);

  static typename L::Layout take(machine::SyncLayout& layout) {
    if constexpr (svp::HasOneMailbox<L>)
      return L::take(layout, 0, link_bytes);
    else
      return L::take(layout, cores, 0, link_bytes);
  }
  static machine::Offset variable(std::uint32_t family) { return variables + family * line_bytes; }
  static bool see(C& core, std::uint32_t family, std::uint64_t wanted, const char* at, Run& run) {
    std::uint64_t seen = 0;
    (void)core.read({0, variable(family)}, &seen, sizeof seen).ok();
    if (seen != wanted)
      run.fail(fmt::format("stale data: family {} {}: {} instead of {}", family, at, seen, wanted));
    return seen == wanted;
  }
  static void write(C& core, std::uint32_t family, std::uint64_t value) {
    (void)core.write({0, variable(family)}, &value, sizeof value).ok();
  }
  static void wait(L& link, Run& run) {
    if (const Status status = link.wait(); !status.ok()) run.fail(status.message());
  }

  void create_and_sync(C& core, L& link, Reached& reach, Run& run) {
    const svp::Form& form = svp::Parameter<svp::InOutArray<std::uint64_t>>::form;
    Calls calls;
    for (std::uint32_t family = 0; family < families_; ++family) {
      write(core, family, 10 + family);
      const std::array<svp::Piece, 1> pieces{
          svp::Piece{&form, reinterpret_cast<void*>(variable(family)), 1}};
      calls.push_back(std::make_unique<svp::Call>(
          svp::VirtualChannel{.opener = 0, .peer = 1, .number = family},
          svp::CallPlan{.function = &svp::remote<&detail::of_a_variable>.entry(),
                        .transport = svp::Transport::remap,
                        .takes_unasked = answers_ != Answers::asked},
          pieces));
      calls.back()->open(reach);
      while (!calls.back()->advance(link)) wait(link, run);
    }
    for (std::uint32_t family = families_; family-- > 0;) {
      sync(link, calls, family, reach, run);
      see(core, family, 20 + family, "after its sync", run);
    }
  }
  void sync(L& link, const Calls& calls, std::uint32_t family, Reached& reach, Run& run) const {
    svp::Call& call = *calls[family];
    call.ask_sync(reach);
    while (!call.ended()) {
      const bool sent = call.advance(link);
      const bool took = link.poll([&](const svp::Message& message) {
        const bool all = answers_ == Answers::unasked;
        return calls[all ? message.channel.number : family]->take(message, reach);
      });
      if (!took && sent && !call.ended()) wait(link, run);
      if (!sent && !took) wait(link, run);
    }
  }

  void serve(C& core, L& link, Reached& reach, Run& run) {
    std::map<std::uint32_t, Service> services;
    for (unsigned closed = 0; closed < families_;) {
      bool moved = link.poll([&](const svp::Message& message) {
        const svp::VirtualChannel& channel = message.channel;
        return services.try_emplace(channel.number, channel).first->second.take(message);
      });
      for (auto at = services.begin(); at != services.end();) {
        Service& service = at->second;
        if (service.ready() && !service.ended()) {
          if (!run_family(core, service, reach, run)) return;
          moved = true;
        }
        const bool over = service.advance(link);
        closed += over ? 1 : 0;
        moved = moved || over;
        at = over ? services.erase(at) : std::next(at);
      }
      if (!moved && closed < families_) wait(link, run);
    }
  }
  // False: it has failed, and nothing is to follow that.
  static bool run_family(C& core, Service& service, Reached& reach, Run& run) {
    if (const Status there = service.fetch(reach); !there.ok()) run.fail(there.message());
    const std::uint32_t family = service.channel().number;
    if (!see(core, family, 10 + family, "at its create", run)) return false;
    write(core, family, 20 + family);
    service.end(reach, {});
    return true;
  }

  unsigned families_;
  RemoteFault fault_;
  Answers answers_;
};

}  // namespace tombolo::litmus
