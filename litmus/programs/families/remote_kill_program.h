// SPDX-License-Identifier: Apache-2.0
// Purpose: the kill of a remote family (svp/remote/): core 0 creates a family at core 1, kills
// it and syncs it, and then creates and syncs another one of the same number. Each end is told
// once, and the second family is not killed. The kill either races with the first one's end and the
// completion, asked for or not, or goes before the request to sync to a family that ends by it
// alone.
//
// Invariants: GP1 of explorer/program.h: the outcome is that of memory alone.
// Thread safety: as Program.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <span>

#include "litmus/explorer/program.h"
#include "litmus/explorer/run.h"
#include "svp/remote/call.h"
#include "svp/remote/service.h"

namespace tombolo::litmus {

// How the first family's kill is asked for.
enum class Killing : std::uint8_t { races_with_its_end, ends_it };

namespace detail {

inline void without_arguments() {}

}  // namespace detail

// `LinkOn`: as RemoteProgram's.
template <class C, template <class> class LinkOn, class Call = svp::Call,
          class Service = svp::Service>
class RemoteKillProgram final : public Program {
 public:
  using L = LinkOn<C>;
  RemoteKillProgram(Killing killing, bool unasked) : killing_(killing), unasked_(unasked) {}

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
      for (unsigned family = 0; family < families; ++family) create_and_sync(link, family, run);
    else
      serve(link, run);
  }
  std::string outcome(const Memory&, Run&) override { return "both ends were told"; }

 private:
  static constexpr machine::Home cores = 2;
  static constexpr unsigned families = 2;
  static constexpr std::uint64_t link_bytes = 1024;
  static constexpr std::int64_t first_value = 20;

  static typename L::Layout take(machine::SyncLayout& layout) {
    if constexpr (svp::HasOneMailbox<L>)
      return L::take(layout, 0, link_bytes);
    else
      return L::take(layout, cores, 0, link_bytes);
  }
  static void wait(L& link, Run& run) {
    if (const Status status = link.wait(); !status.ok()) run.fail(status.message());
  }

  void create_and_sync(L& link, unsigned family, Run& run) {
    svp::NoReach reach;
    Call call(svp::VirtualChannel{.opener = 0, .peer = 1, .number = 0},
              svp::CallPlan{.function = &svp::remote<&detail::without_arguments>.entry(),
                            .takes_unasked = unasked_},
              std::span<const svp::Piece>());
    call.open(reach);
    const bool killed = family == 0;
    if (killed && killing_ == Killing::ends_it) call.ask_kill();
    while (!call.advance(link)) wait(link, run);
    // An answer that comes unasked may be there before the kill, and before the request to sync.
    const auto take = [&](const svp::Message& message) { return call.take(message, reach); };
    if (unasked_) (void)link.poll(take);
    if (unasked_ && killed) call.ask_kill();
    call.ask_sync(reach);
    (void)call.advance(link);
    if (killed) call.ask_kill();
    while (!call.ended()) {
      (void)call.advance(link);
      const bool took = link.poll(take);
      if (!took && !call.ended()) wait(link, run);
    }
    look_at(call.completion(), family, run);
  }
  void look_at(const svp::Completion& end, unsigned family, Run& run) const {
    const bool may_be_killed = family == 0;
    const bool must_be_killed = may_be_killed && killing_ == Killing::ends_it;
    if (end.reason == svp::ExitReason::killed && may_be_killed) return;
    if (end.reason != svp::ExitReason::done || must_be_killed)
      run.fail(fmt::format("family {} ends by reason {}", family, static_cast<int>(end.reason)));
    else if (end.value != first_value + family)
      run.fail(fmt::format("family {} has the end of another one: {}", family, end.value));
  }

  // As the switchboard (svp/remote/switchboard.h) of a process that has one call open.
  void serve(L& link, Run& run) {
    std::optional<Service> service;
    bool begun = false;
    for (unsigned closed = 0; closed < families;) {
      bool moved = link.poll([&](const svp::Message& message) {
        if (!service && !Service::begins(message)) return true;
        if (!service) service.emplace(message.channel);
        return service->take(message);
      });
      if (service) moved = step(*service, begun, closed, run) || moved;
      if (service && service->advance(link)) {
        service.reset();
        begun = false;
        ++closed;
        moved = true;
      }
      if (!moved && closed < families) wait(link, run);
    }
  }
  // The family's thread: it looks for a kill where it begins and once more.
  bool step(Service& service, bool& begun, unsigned family, Run& run) const {
    if (!service.ready() || service.ended()) return false;
    svp::NoReach reach;
    if (service.kill_asked()) {
      service.end(reach, {.reason = svp::ExitReason::killed});
      return true;
    }
    if (!begun) {
      begun = true;
      if (const Status there = service.fetch(reach); !there.ok()) run.fail(there.message());
      return true;
    }
    if (family == 0 && killing_ == Killing::ends_it) return false;
    service.end(reach, {.value = first_value + family});
    return true;
  }

  Killing killing_;
  bool unasked_;
};

}  // namespace tombolo::litmus
