// SPDX-License-Identifier: Apache-2.0
#include "litmus/explorer/explored.h"
#include "litmus/programs/families/alarm_program.h"
#include "litmus/programs/families/channel_program.h"
#include "litmus/programs/families/deque_program.h"
#include "litmus/programs/families/inbox_program.h"
#include "litmus/programs/families/remote_channels_program.h"
#include "litmus/programs/families/remote_kill_program.h"
#include "litmus/programs/families/remote_program.h"
#include "litmus/programs/families/sleep_program.h"
#include "litmus/programs/families/turns_program.h"
#include "litmus/programs/omitting.h"
#include "litmus/programs/registry.h"
#include "svp/family/broken/hasty_list.h"
#include "svp/family/broken/hasty_unlist.h"
#include "svp/family/broken/late_next.h"
#include "svp/family/broken/unclaimed_close.h"
#include "svp/family/broken/unlocked_end.h"
#include "svp/family/broken/unlocked_ignore.h"
#include "svp/links/mailbox_link.h"
#include "svp/links/ring_link.h"
#include "svp/places/broken/careless_turns.h"
#include "svp/places/broken/hasty_turns.h"
#include "svp/places/broken/unclaimed_turns.h"
#include "svp/remote/broken/eager_service.h"
#include "svp/remote/broken/hasty_call.h"
#include "svp/remote/broken/hasty_service.h"
#include "svp/remote/broken/late_kill.h"
#include "svp/remote/broken/overtaking_kill.h"
#include "svp/scheduler/broken/hasty_deque.h"

namespace tombolo::litmus {
namespace {

template <class C, class Deque = svp::SplitDeque<C>>
ExploredProgram deque(const std::string& name, const std::string& about, machine::Home cores,
                      std::vector<unsigned> rounds, unsigned tries) {
  return {.name = name,
          .about = about,
          .cores = cores,
          .make = [=](machine::Home n) -> std::unique_ptr<Program> {
            return std::make_unique<DequeProgram<C, Deque>>(n, rounds, tries);
          }};
}

template <class C>
ExploredProgram alarm(const std::string& name, const std::string& about, machine::Home cores,
                      AlarmOrder order = AlarmOrder::right) {
  return {.name = name, .about = about, .cores = cores, .make = [order](machine::Home n) {
            return std::unique_ptr<Program>(std::make_unique<AlarmProgram<C>>(n, order));
          }};
}

template <class Sleeper, class Waker = Sleeper>
ExploredProgram sleep_handshake(const std::string& name, const std::string& about,
                                machine::Home cores) {
  return {.name = name, .about = about, .cores = cores, .make = [](machine::Home n) {
            return std::unique_ptr<Program>(std::make_unique<SleepProgram<Sleeper, Waker>>(n));
          }};
}

template <class C, class Turns = svp::Turns<C>>
ExploredProgram turns(const std::string& name, const std::string& about, machine::Home cores,
                      unsigned rounds, TurnsOrder order = TurnsOrder::left_before_told,
                      TurnsEnd end = TurnsEnd::synced) {
  return {.name = name, .about = about, .cores = cores, .make = [=](machine::Home n) {
            return std::unique_ptr<Program>(
                std::make_unique<TurnsProgram<C, Turns>>(n, rounds, order, end));
          }};
}
template <class C, class Turns = svp::Turns<C>>
ExploredProgram stopped_turns(const std::string& name, const std::string& about,
                              machine::Home cores) {
  return turns<C, Turns>(name, about, cores, 1, TurnsOrder::left_before_told, TurnsEnd::stopped);
}

template <class C, class Channel = svp::WriteOnce<C>>
ExploredProgram channel(const std::string& name, const std::string& about, machine::Home cores,
                        ChannelScript script, const Bounds& bounds = {}) {
  return {
      .name = name,
      .about = about,
      .bounds = bounds,
      .cores = cores,
      .make = [script](machine::Home n) {
        return std::unique_ptr<Program>(std::make_unique<ChannelProgram<C, Channel>>(n, script));
      }};
}

template <class C>
ExploredProgram inbox(const std::string& name, const std::string& about, machine::Home cores,
                      unsigned items, const Bounds& bounds = {}) {
  return {.name = name,
          .about = about,
          .bounds = bounds,
          .cores = cores,
          .make = [items](machine::Home n) {
            return std::unique_ptr<Program>(std::make_unique<InboxProgram<C>>(n, items));
          }};
}

template <template <class> class L, class Service = svp::Service>
ExploredProgram remote(const std::string& name, const std::string& about, unsigned families,
                       RemoteFault fault = RemoteFault::none, const Bounds& bounds = {},
                       Answers answers = Answers::asked) {
  return {.name = name, .about = about, .bounds = bounds, .cores = 2, .make = [=](machine::Home) {
            return std::unique_ptr<Program>(
                std::make_unique<RemoteProgram<Explored, L, Service>>(families, fault, answers));
          }};
}

template <template <class> class L, class Call = svp::Call, class Service = svp::Service>
ExploredProgram remote_channels(const std::string& name, const std::string& about,
                                unsigned families, Taking taking, const Bounds& bounds = {}) {
  return {
      .name = name, .about = about, .bounds = bounds, .cores = 2, .make = [=](machine::Home) {
        return std::unique_ptr<Program>(
            std::make_unique<RemoteChannelsProgram<Explored, L, Call, Service>>(families, taking));
      }};
}

template <template <class> class L, class Call = svp::Call, class Service = svp::Service>
ExploredProgram remote_kill(const std::string& name, const std::string& about, Killing killing,
                            const Bounds& bounds = {}, bool unasked = false) {
  return {.name = name, .about = about, .bounds = bounds, .cores = 2, .make = [=](machine::Home) {
            return std::unique_ptr<Program>(
                std::make_unique<RemoteKillProgram<Explored, L, Call, Service>>(killing, unasked));
          }};
}

ExploredProgram broken(ExploredProgram program) {
  program.name = "broken/" + program.name;
  program.broken = true;
  return program;
}

}  // namespace

std::vector<ExploredProgram> family_programs() {
  using enum ChannelScript;
  return {
      deque<Explored>("families/deque",
                      "core 0 creates two tasks and syncs them, core 1 takes some", 2, {2}, 2),
      deque<Explored>("families/deque-again", "a task, and one more in the slot of the first", 2,
                      {1, 1}, 2),
      deque<Explored>("families/deque-withdrawn",
                      "three tasks, of which two are shared and may be taken back", 2, {3}, 2),
      deque<Explored>("families/deque-of-three", "three tasks, two cores that take one each", 3,
                      {3}, 1),
      deque<ExploredTestAndSet>("families/deque-by-test-and-set", "a task, on the SCC's atomics", 2,
                                {1}, 1),
      alarm<Explored>("families/kill", "core 0 stops a family, core 1 blocks in it", 2),
      alarm<Explored>("families/kill-of-two", "the same with two cores that block", 3),
      sleep_handshake<Explored>("families/sleep",
                                "core 1 ends a task, of which core 0 waits for the end", 2),
      sleep_handshake<Explored>("families/sleep-of-two-tasks",
                                "the same with two cores and a task of each", 3),
      turns<Explored>("families/exclusive", "two cores, two families each at one exclusive place",
                      2, 2),
      turns<Explored>("families/exclusive-of-three", "three cores, a family each", 3, 1),
      stopped_turns<Explored>("families/exclusive-stopped",
                              "three cores, a family each, which are stopped behind others", 3),
      channel<Explored>("families/channel", "core 0 writes, core 1 reads", 2, written),
      channel<Explored>("families/channel-of-two", "core 0 writes, two cores read", 3, written,
                        {.evictions = 0, .preemptions = 2}),
      channel<Explored>("families/channel-stopped", "core 0 stops a reader, and then writes", 2,
                        stopped),
      channel<Explored>("families/channel-stopped-of-two", "the same where another core reads", 3,
                        stopped, {.evictions = 0, .preemptions = 2}),
      channel<Explored>("families/channel-closed",
                        "core 0 closes the channel, core 1 reads, core 2 writes", 3, closed,
                        {.evictions = 0, .preemptions = 3}),
      channel<Explored>("families/channel-listened",
                        "core 0 writes, core 1 listens for a while, core 2 reads", 3, listened,
                        {.evictions = 0, .preemptions = 2}),
      inbox<Explored>("families/inbox", "two cores hand an item each to core 0", 3, 1),
      inbox<Explored>("families/inbox-of-two-items", "two cores hand two items each to core 0", 3,
                      2, {.evictions = 0, .preemptions = 2}),
      remote<svp::RingLink>("families/remote", "a family at another core, over rings", 1),
      remote<svp::MailboxLink>("families/remote-by-mailbox", "the same by one mailbox each", 1),
      remote<svp::MailboxLink>("families/remote-sync-in-any-order",
                               "two families at another core, of which the second is synced first",
                               2, RemoteFault::none, {.evictions = 0, .preemptions = 2}),
      remote<svp::MailboxLink>("families/remote-unasked",
                               "the same, with answers that come unasked and are taken at once", 2,
                               RemoteFault::none, {.evictions = 0, .preemptions = 2},
                               Answers::unasked),
      remote_channels<svp::RingLink>(
          "families/remote-channel",
          "a value for a family at another core, and one back with its end", 1,
          Taking::with_the_end, {.evictions = 0, .preemptions = 2}),
      remote_channels<svp::MailboxLink>(
          "families/remote-channels-in-any-order",
          "two families, of which the second one's value is wanted first, by one mailbox each", 2,
          Taking::before_sync, {.evictions = 0, .preemptions = 1}),
      remote_kill<svp::RingLink>("families/remote-kill",
                                 "a kill that races with the end of a family at another core, and "
                                 "another family of its number",
                                 Killing::races_with_its_end),
      remote_kill<svp::MailboxLink>("families/remote-kill-by-mailbox",
                                    "the same by one mailbox each", Killing::races_with_its_end,
                                    {.evictions = 0, .preemptions = 1}),
      remote_kill<svp::RingLink>("families/remote-kill-unasked",
                                 "the same over rings, with a completion that comes unasked",
                                 Killing::races_with_its_end, {}, true),
      remote_kill<svp::RingLink>("families/remote-killed",
                                 "a family at another core that ends by its kill alone",
                                 Killing::ends_it),
  };
}

std::vector<ExploredProgram> broken_family_programs() {
  using NoPublish = Omitting<Explored, Omit::publish>;
  using NoRefresh = Omitting<Explored, Omit::refresh>;
  using NoNotify = Omitting<Explored, Omit::notify>;
  using NoWait = Omitting<Explored, Omit::wait>;
  using NoAtomics = Divided<Explored>;
  using NoFence = Omitting<Explored, Omit::fence>;
  const std::string exclusive = "families/exclusive/";
  const std::string of_channel = "families/channel/";
  using enum ChannelScript;
  return {
      broken(sleep_handshake<NoFence, Explored>("families/sleep/no-fence-of-the-sleeper",
                                                "its last look overtakes what it announces", 2)),
      broken(sleep_handshake<Explored, NoFence>("families/sleep/no-fence-of-the-waker",
                                                "its look overtakes the end of the task", 2)),
      broken(sleep_handshake<NoNotify>("families/sleep/no-notify", "the sleeper is not woken (R6)",
                                       2)),
      broken(turns<NoPublish>(exclusive + "no-publish", "families leave unpublished", 2, 1)),
      broken(turns<NoRefresh>(exclusive + "no-refresh", "memory is not refreshed", 2, 1)),
      broken(turns<NoNotify>(exclusive + "no-notify", "creators are not woken (R6)", 2, 1)),
      broken(turns<NoWait>(exclusive + "no-wait", "no end is awaited", 2, 1)),
      broken(
          turns<NoAtomics>(exclusive + "divided-atomics", "atomics are a load and a store", 2, 1)),
      broken(stopped_turns<NoAtomics>("families/exclusive-stopped/divided-atomics",
                                      "atomics are a load and a store", 2)),
      broken(stopped_turns<Explored, svp::broken::CarelessTurns<Explored>>(
          "families/exclusive-stopped/careless", "turns are run without a look at their claim", 2)),
      broken(stopped_turns<Explored, svp::broken::UnclaimedTurns<Explored>>(
          "families/exclusive-stopped/unclaimed", "a turn that is the first at once is unclaimed",
          2)),
      broken(turns<Explored, svp::broken::HastyTurns<Explored>>(
          exclusive + "hasty", "the queue is emptied while another core enters it", 2, 1)),
      broken(turns<Explored>(exclusive + "told-before-left",
                             "a creator goes on before its turn was left", 2, 2,
                             TurnsOrder::told_before_left)),
      broken(
          deque<NoPublish>("families/deque/no-publish", "tasks are shared unpublished", 2, {1}, 1)),
      broken(deque<NoRefresh>("families/deque/no-refresh", "tasks and results are not refreshed", 2,
                              {1}, 1)),
      broken(
          deque<NoNotify>("families/deque/no-notify", "the creator is not woken (R6)", 2, {1}, 1)),
      broken(deque<NoWait>("families/deque/no-wait", "a sync does not wait", 2, {1}, 1)),
      broken(deque<NoAtomics>("families/deque/divided-atomics", "atomics are a load and a store", 2,
                              {1}, 1)),
      broken(deque<Explored, svp::broken::HastyDeque<Explored>>(
          "families/deque/hasty", "the owner takes back without a look at the split", 2, {1}, 1)),
      broken(
          channel<NoPublish>(of_channel + "no-publish", "the value is not published", 2, written)),
      broken(channel<NoRefresh>(of_channel + "no-refresh", "the reader's memory is not refreshed",
                                2, written)),
      broken(channel<NoNotify>(of_channel + "no-notify", "readers are not woken (R6)", 2, written)),
      broken(channel<NoAtomics>(of_channel + "divided-atomics", "atomics are a load and a store", 2,
                                written)),
      broken(channel<Explored, svp::broken::HastyList<Explored>>(
          of_channel + "hasty-list", "a reader lists itself after the end", 2, written)),
      broken(channel<Explored, svp::broken::UnlockedEnd<Explored>>(
          of_channel + "unlocked-end", "a reader lists itself while the list is emptied", 2,
          written)),
      broken(channel<Explored, svp::broken::LateNext<Explored>>(
          of_channel + "late-next", "a reader's word is read after its delivery", 3, written,
          {.evictions = 0, .preemptions = 2})),
      broken(channel<Explored, svp::broken::HastyUnlist<Explored>>(
          of_channel + "hasty-unlist", "a stopped reader leaves before its delivery", 2, stopped)),
      broken(channel<Explored, svp::broken::UnclaimedClose<Explored>>(
          of_channel + "unclaimed-close", "a channel is closed that a writer has claimed", 3,
          closed)),
      broken(channel<Explored, svp::broken::UnlockedIgnore<Explored>>(
          of_channel + "unlocked-ignore", "a listener leaves while it is told", 3, listened,
          {.evictions = 0, .preemptions = 2})),
      broken(inbox<NoAtomics>("families/inbox/divided-atomics", "atomics are a load and a store", 3,
                              1)),
      broken(remote<svp::MailboxLink, svp::broken::HastyService>(
          "families/remote/no-sync-request",
          "completions are sent unasked, and the first blocks the mailbox (002 section 5.2.2)", 2)),
      broken(remote<svp::MailboxLink>(
          "families/remote-unasked/of-the-synced-alone",
          "answers come unasked, and the creator takes those of the family that it syncs", 2,
          RemoteFault::none, {}, Answers::unasked_of_the_synced)),
      broken(remote<svp::MailboxLink>("families/remote-unasked/no-refresh-at-sync",
                                      "results that came unasked are not refreshed", 2,
                                      RemoteFault::refresh, {}, Answers::unasked)),
      broken(remote_kill<svp::RingLink, svp::Call, svp::broken::LateKill>(
          "families/remote-kill-unasked/late-kill",
          "a kill that comes after the end stays for the next family of the number",
          Killing::races_with_its_end, {}, true)),
      broken(remote_channels<svp::MailboxLink, svp::Call, svp::broken::EagerService>(
          "families/remote/value-not-wanted",
          "the value of a channel is sent unasked, and blocks the mailbox", 2,
          Taking::before_sync)),
      broken(remote_channels<svp::RingLink, svp::broken::HastyCall>(
          "families/remote/sync-before-value",
          "the request to sync overtakes a value of the parent, and closes its channel", 1,
          Taking::with_the_end)),
      broken(remote_kill<svp::RingLink, svp::Call, svp::broken::LateKill>(
          "families/remote-kill/late-kill",
          "a kill that comes after the end stays for the next family of the number",
          Killing::races_with_its_end)),
      broken(remote_kill<svp::RingLink, svp::broken::OvertakingKill>(
          "families/remote-killed/overtaking-kill",
          "a kill goes before the request, and is dropped", Killing::ends_it)),
      broken(remote<svp::RingLink>("families/remote/no-publish-at-create",
                                   "arguments are not published", 1, RemoteFault::publish)),
      broken(remote<svp::RingLink>("families/remote/no-refresh-at-create",
                                   "arguments are not refreshed", 1, RemoteFault::map)),
      broken(remote<svp::RingLink>("families/remote/no-publish-at-end", "results are not published",
                                   1, RemoteFault::unmap)),
      broken(remote<svp::RingLink>("families/remote/no-refresh-at-sync",
                                   "results are not refreshed", 1, RemoteFault::refresh)),
      broken(alarm<NoNotify>("families/kill/no-notify", "blocked cores are not woken (R6)", 2)),
      broken(alarm<Explored>("families/kill/raised-before-marked",
                             "the alarm comes before the family is marked", 2,
                             AlarmOrder::raised_before_marked)),
      broken(alarm<Explored>("families/kill/not-looked-after-listing",
                             "a thread blocks without a further look", 2,
                             AlarmOrder::not_looked_after_listing)),
      broken(
          alarm<NoAtomics>("families/kill/divided-atomics", "atomics are a load and a store", 3)),
  };
}

}  // namespace tombolo::litmus
