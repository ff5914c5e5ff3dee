// SPDX-License-Identifier: Apache-2.0
// Purpose: the calls that this process has open in others, and the families that it runs for them:
// brings each message to its conversation, and sends the messages that are due. A template over a
// link and the reach of memory.
//
// Invariants: SWB1 every message is taken when it is shown: the link holds up no channel.
//             SWB2 a call leaves the tables before its family's task is done; a served family when
//                 its completion is sent, or its creator's process has ended.
//             SWB3 a site that has ended gets no message; its calls fail with the cause, those that
//                 are open and those to come, and its families here are killed. A call whose answer
//                 has come before has that.
//             SWB4 without memory for its tables, or the link's, the process ends with a sentence:
//                 messages could neither be kept nor answered. Data have none of that (SVC3, CLL3).
// Thread safety: yes: one lock. Data that are fetched or given back from memory to memory are not
// under it.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "svp/family/family_base.h"
#include "svp/links/link.h"
#include "svp/remote/remote_place.h"
#include "svp/remote/served_family.h"
#include "svp/scheduler/pool.h"

namespace tombolo::svp {

template <Link L, Reach R>
class Switchboard final : public Host {
 public:
  // `places` of this site, by number. They, link and reach outlive it; `poller` is woken where
  // pump() is due.
  Switchboard(L& link, R& reach, std::vector<Place> places, RemotePoller& poller)
      : link_(link),
        reach_(reach),
        places_(std::move(places)),
        poller_(poller),
        ends_(link.sites()) {}

  // ---- Calls ------------------------------------------------------------------------------------

  // Throws std::bad_alloc: then there is no call.
  void open(OpenCall& open, const RemoteRecord& at, const CallPlan& plan,
            std::span<const Piece> pieces) {
    const std::uint32_t number = reserve();
    try {
      open_as(number, open, at, plan, pieces);
    } catch (const std::bad_alloc&) {
      const std::lock_guard lock(mutex_);
      free_.push_back(number);  // there is room for all numbers
      throw;
    }
    Call& call = *open.call;
    const std::lock_guard lock(mutex_);
    calls_[number] = &open;
    if (!ends_[at.site].empty()) return with_memory([&] { fail(open, ends_[at.site]); });
    // A kill that was told before the call was in the table.
    if (open.family.stopped()) call.ask_kill();
    with_memory([&] { advance(open); });
  }

  void ask_sync(OpenCall& open, bool stopped) {
    with_memory([&] {
      const std::lock_guard lock(mutex_);
      if (open.call->ended()) return;
      // Before the request to sync, which closes channels: a thread that is stopped reads none.
      if (stopped || open.family.stopped()) open.call->ask_kill();
      look_at_channels(open);
      open.call->ask_sync(reach_);
      advance(open);
      close_if_ended(open);
    });
  }

  // ---- Channels ---------------------------------------------------------------------------------

  void told(OpenCall& open) noexcept {
    told_calls_.tell(open);
    poller_.wake();
  }
  void told(ServedFamily& family) noexcept override {
    told_families_.tell(family);
    poller_.wake();
  }
  void forget(OpenCall& open) {
    const std::lock_guard lock(mutex_);
    told_calls_.drop(open);
  }

  // ---- Messages ---------------------------------------------------------------------------------

  // Takes the messages that are there, and sends those that are due. True if there were some.
  bool pump() {
    if (!mutex_.try_lock()) return false;
    const std::lock_guard lock(mutex_, std::adopt_lock);
    if (closed_) return false;
    bool any = false;
    with_memory([&] { any = pump_all(); });
    return any;
  }
  bool has_arrivals() {
    const std::lock_guard lock(mutex_);
    return told_calls_.any() || told_families_.any() || link_.has_arrivals();
  }
  // Conversations that are open.
  std::size_t open_calls() {
    const std::lock_guard lock(mutex_);
    return calls_.size() - free_.size() + served_.size();
  }

  void site_ended(Site site, const std::string& how) {
    const std::lock_guard lock(mutex_);
    with_memory([&] { end_site(site, how); });
  }
  // Calls `use` while no thread uses the link.
  template <class Use>
  void alone(Use&& use) {
    const std::lock_guard lock(mutex_);
    use();
  }
  // No thread uses the link any more.
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }

  // ---- Families of other sites ------------------------------------------------------------------

  Status fetch(Service& service) override { return service.fetch(reach_); }

  void ended(ServedFamily& family) override {
    bool orphaned = false;
    {
      const std::lock_guard lock(mutex_);
      family.takes_kills = false;
      orphaned = family.orphaned;
    }
    with_memory([&] {
      const Completion completion = family.completion();
      if (!orphaned) family.service.end(reach_, completion);
      const std::lock_guard lock(mutex_);
      family.over = true;
      advance(family);
    });
  }

 private:
  using Key = std::pair<Site, std::uint32_t>;

  // SWB4.
  template <class Act>
  static void with_memory(Act&& act) try {
    act();
  } catch (const std::bad_alloc&) {
    constexpr std::string_view text =
        "tombolo: no memory for messages between the processes of a program\n";
    // Without stdio, which may need some.
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
    std::abort();
  }

  bool pump_all() {
    bool any = link_.poll([this](const Message& message) { return take(message); });
    while (const auto loss = link_.next_loss()) end_site(loss->site, loss->how);
    any = look_at_told() || any;
    if (!unsent_calls_.empty() || !unsent_families_.empty()) any = send_more() || any;
    if (const std::uint64_t raised = Pool::alarms_raised(); raised != alarms_seen_) {
      alarms_seen_ = raised;
      pass_kills_on();
    }
    return any;
  }

  std::uint32_t reserve() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) {
      free_.reserve(calls_.size() + 1);
      calls_.push_back(nullptr);
      return static_cast<std::uint32_t>(calls_.size() - 1);
    }
    const std::uint32_t number = free_.back();
    free_.pop_back();
    return number;
  }

  void open_as(std::uint32_t number, OpenCall& open, const RemoteRecord& at, const CallPlan& plan,
               std::span<const Piece> pieces) {
    CallPlan own = plan;
    own.takes_unasked = true;  // SWB1
    Call& call = open.call.emplace(
        VirtualChannel{.opener = link_.self(), .peer = at.site, .number = number}, own, pieces);
    TOMBOLO_CHECK(call.unfit() == nullptr,
                  "create: {} has an argument without a form in XDR, which transport stream needs",
                  plan.function->name);
    TOMBOLO_CHECK(!call.has_unfit_channel(),
                  "create: {} has a channel without a form in XDR, which transport stream needs",
                  plan.function->name);
    call.open(reach_);
  }

  bool take(const Message& message) {
    // SWB3: one that was on its way would begin a family that no message ends.
    if (!ends_[message.channel.peer].empty()) return true;
    if (message.channel.opener == link_.self())
      take_answer(message);
    else
      take_from_creator(message);
    return true;  // SWB1
  }
  void take_answer(const Message& message) {
    OpenCall* const open = calls_[message.channel.number];
    if (open == nullptr) return;  // it has failed meanwhile
    open->call->take(message, reach_, [open](const Note& note) { bring(*open, note); });
    open->call->expect(link_);
    close_if_ended(*open);
  }
  void take_from_creator(const Message& message) {
    const Key key{message.channel.opener, message.channel.number};
    auto at = served_.find(key);
    if (at == served_.end()) {
      if (!Service::begins(message)) return;
      at = served_.emplace(key, std::make_unique<ServedFamily>(*this, message.channel)).first;
    }
    ServedFamily& family = *at->second;
    family.service.take(message);
    family.service.expect(link_);
    const bool starts = family.service.ready() && !family.started();
    // The alarm of a kill is retired at the end of a family that was started. Before it begins: the
    // request to sync may have closed its channels.
    if (family.service.kill_asked() && (starts || family.started()) && family.takes_kills)
      family.kill();
    if (starts) start(family);
    if (family.service.kill_asked() && family.started() && family.takes_kills) family.leave_queue();
    if (message.kind != Kind::request && message.kind != Kind::kill) advance(family);
  }
  void start(ServedFamily& family) {
    const std::uint32_t place = family.service.place();
    if (place < places_.size()) return family.start(places_[place]);
    family.service.refuse("there is no place " + std::to_string(place) + " in process " +
                          std::to_string(link_.self()));
    family.start(places_[0]);
  }

  // ---- Channels of both ------------------------------------------------------------------------

  static void bring(OpenCall& open, const Note& note) {
    if (note.news == News::value)
      open.ends[note.channel]->bring_last(note.value);
    else
      open.ends[note.channel]->close_last(note.news == News::none_early);
  }
  static void look_at_channels(OpenCall& open) {
    for (std::uint32_t i = 0; i < open.ends.size(); ++i) {
      if (const void* const value = open.ends[i]->value()) open.call->tell_value(i, value);
      if (open.ends[i]->awaits_last()) open.call->want_last(i);
    }
  }
  bool look_at_told() {
    bool any = false;
    while (OpenCall* const open = told_calls_.take()) {
      any = true;
      if (open->call->ended()) continue;
      look_at_channels(*open);
      advance(*open);
    }
    while (ServedFamily* const family = told_families_.take()) {
      any = true;
      advance(*family);
    }
    return any;
  }

  // ---- Sending ----------------------------------------------------------------------------------

  void advance(OpenCall& open) {
    if (closed_ || open.call->advance(link_) || open.unsent) return;
    open.unsent = true;
    unsent_calls_.push_back(&open);
  }
  // Frees the family when there is nothing left to be said, and its output is out of its memory.
  void advance(ServedFamily& family) {
    if (closed_) return;
    const bool sent = family.orphaned || (family.over ? family.service.advance(link_)
                                                      : family.service.advance_channels(link_));
    if (sent == family.unsent) list_unsent(family, !sent);
    const VirtualChannel channel = family.service.channel();
    if (!sent || !family.over || is_moving(link_, channel)) return;
    told_families_.drop(family);
    served_.erase({channel.opener, channel.number});
  }
  void list_unsent(ServedFamily& family, bool unsent) {
    family.unsent = unsent;
    if (unsent)
      unsent_families_.push_back(&family);
    else
      std::erase(unsent_families_, &family);
  }
  bool send_more() {
    bool any = false;
    for (std::size_t i = 0; i < unsent_calls_.size();) {
      OpenCall& open = *unsent_calls_[i];
      if (!open.call->advance(link_)) {
        ++i;
        continue;
      }
      open.unsent = false;
      unsent_calls_.erase(unsent_calls_.begin() + static_cast<std::ptrdiff_t>(i));
      any = true;
    }
    for (std::size_t i = 0; i < unsent_families_.size();) {
      const std::size_t before = unsent_families_.size();
      advance(*unsent_families_[i]);
      if (unsent_families_.size() == before) ++i;
      any = any || unsent_families_.size() != before;
    }
    return any;
  }
  void pass_kills_on() {
    for (OpenCall* const open : calls_) {
      if (open == nullptr || !open->family.stopped()) continue;
      open->call->ask_kill();
      advance(*open);
    }
  }

  // ---- Ends -------------------------------------------------------------------------------------

  void end_site(Site site, const std::string& how) {
    if (!ends_[site].empty()) return;
    ends_[site] = how;
    for (OpenCall* const open : std::vector(calls_)) {
      if (open == nullptr || open->call->channel().peer != site) continue;
      if (open->call->ended())
        close(*open);  // its arrays do not move any more: the link has dropped them (HLK4)
      else if (!open->call->is_answered())
        fail(*open, how);
    }
    for (auto at = served_.lower_bound({site, 0}); at != served_.end();) {
      ServedFamily& family = *(at++)->second;
      if (family.service.channel().peer == site) orphan(family);
    }
  }
  // Its number, and the creator's memory, are in use as long as arrays move.
  void close_if_ended(OpenCall& open) {
    if (open.call->ended() && !is_moving(link_, open.call->channel())) close(open);
  }
  void fail(OpenCall& open, const std::string& how) {
    open.call->fail(how, reach_);
    close(open);
  }
  void close(OpenCall& open) {
    if (open.unsent) std::erase(unsent_calls_, &open);
    for (ParentEnd* const end : open.ends)
      end->close_last(open.call->completion().reason != ExitReason::done || open.family.stopped());
    const std::uint32_t number = open.call->channel().number;
    calls_[number] = nullptr;
    free_.push_back(number);
    Pool::finish_elsewhere(open.family);
  }
  void orphan(ServedFamily& family) {
    family.orphaned = true;
    if (family.started() && family.takes_kills) {
      family.kill();
      family.leave_queue();
    }
    if (family.over || !family.started()) {
      family.over = true;
      advance(family);
    }
  }

  L& link_;
  R& reach_;
  std::vector<Place> places_;
  RemotePoller& poller_;
  std::mutex mutex_;
  std::vector<OpenCall*> calls_;     // by number; null: none
  std::vector<std::uint32_t> free_;  // numbers
  std::map<Key, std::unique_ptr<ServedFamily>> served_;
  std::vector<OpenCall*> unsent_calls_;
  std::vector<ServedFamily*> unsent_families_;
  ChangeList<OpenCall> told_calls_;
  ChangeList<ServedFamily> told_families_;
  std::vector<std::string> ends_;  // of sites; empty: it runs
  std::uint64_t alarms_seen_ = 0;
  bool closed_ = false;
};

}  // namespace tombolo::svp
