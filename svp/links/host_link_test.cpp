// SPDX-License-Identifier: Apache-2.0
// Purpose: tests the link over the messages of a host MPI, without one: arrays in any order of
// their moves, room that is bounded, the sequence of 002 section 5.2.2, and sites that are lost.
// Thread safety: -
#include "svp/links/host_link.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "base/random.h"
#include "svp/links/testing/fake_messages.h"
#include "svp/remote/testing/two_families.h"

namespace tombolo::svp {
namespace {

using testing::FakeMessages;
using namespace std::chrono_literals;

// Each on a host of its own, but for those that have a process of this one.
struct Sites {
  explicit Sites(int size, std::uint64_t seed = 1,
                 const std::map<int, host::ProcessName>& of_this_host = {})
      : post(seed) {
    std::vector<HostLink::Process> processes;
    for (int i = 0; i < size; ++i)
      processes.push_back({"process 10 on host " + std::to_string(i),
                           of_this_host.contains(i) ? of_this_host.at(i) : host::ProcessName{}});
    for (int i = 0; i < size; ++i) {
      messages.push_back(std::make_unique<FakeMessages>(post, i, size));
      links.push_back(std::make_unique<HostLink>(*messages.back(), processes));
    }
  }
  HostLink& operator[](std::size_t i) { return *links[i]; }

  FakeMessages::Post post;
  std::vector<std::unique_ptr<FakeMessages>> messages;
  std::vector<std::unique_ptr<HostLink>> links;
};

constexpr auto takes_all = [](const Message&) { return true; };
constexpr auto takes_none = [](const Message&) { return false; };
constexpr VirtualChannel to_1{.opener = 0, .peer = 1, .number = 3};

void add(Index i, In<int> by, InArray<std::int64_t> from, InOutArray<std::int64_t> both,
         OutArray<std::int64_t> to) {
  const auto n = static_cast<std::size_t>(i);
  both[n] += by;
  to[n] = from[n] + both[n];
}

// One of many calls at once.
struct Running {
  std::vector<std::int64_t> from, both, to;
  InArray<std::int64_t> p1;
  InOutArray<std::int64_t> p2;
  OutArray<std::int64_t> p3;
  In<int> p0;
  std::array<Piece, 4> pieces;
  FunctionEntry function;
  Call call;

  Running(std::uint32_t number, std::size_t n, bool refused)
      : from(n, 5),
        both(n, number),
        to(n, -1),
        p1(from),
        p2(both),
        p3(to),
        p0(100),
        pieces{Parameter<In<int>>::piece(p0), Parameter<InArray<std::int64_t>>::piece(p1),
               Parameter<InOutArray<std::int64_t>>::piece(p2),
               Parameter<OutArray<std::int64_t>>::piece(p3)},
        function(remote<&add>.entry()),
        call({.opener = 0, .peer = 1, .number = number},
             {.function = &function,
              .range = {.limit = static_cast<Index>(n)},
              .transport = Transport::buffer},
             pieces) {
    if (refused) function.digest += 1;
  }
};

void run_if_ready(Service& service) {
  NoReach reach;
  if (!service.ready() || service.ended()) return;
  if (const Status there = service.fetch(reach); !there.ok())
    return service.end(reach, Service::refusal(there));
  for (std::uint64_t n = 0; n < service.range().count(); ++n)
    service.frame().call(service.range().index(n));
  service.end(reach, {});
}

void serve_some(HostLink& link, std::map<std::uint32_t, Service>& services) {
  link.poll([&](const Message& message) {
    Service& service = services.try_emplace(message.channel.number, message.channel).first->second;
    EXPECT_TRUE(service.take(message));
    service.expect(link);
    return true;
  });
  for (auto at = services.begin(); at != services.end();) {
    run_if_ready(at->second);
    const bool over = at->second.advance(link) && !is_moving(link, at->second.channel());
    at = over ? services.erase(at) : std::next(at);
  }
}

void many_at_once(std::uint64_t seed, std::uint32_t tags) {
  Sites sites(2, seed);
  sites.post.tags = tags;
  Random random = Random::stream(seed, 1);
  NoReach reach;
  std::map<std::uint32_t, Service> services;
  std::vector<std::unique_ptr<Running>> all;
  for (std::uint32_t number = 0; number < 30; ++number) {
    all.push_back(std::make_unique<Running>(number, random.below(random.one_in(4) ? 9000 : 90),
                                            random.one_in(5)));
    all.back()->call.open(reach);
    if (random.one_in(2)) all.back()->call.ask_sync();
  }
  const auto over = [&](auto& one) {
    return one->call.ended() && !sites[0].is_moving(one->call.channel());
  };
  for (int turns = 0; !std::ranges::all_of(all, over); ++turns) {
    ASSERT_LT(turns, 200000) << "no end";
    auto& one = all[random.below(all.size())];
    one->call.ask_sync();
    if (!over(one)) one->call.advance(sites[0]);
    if (random.one_in(2)) serve_some(sites[1], services);
    sites[0].poll([&](const Message& message) {
      Call& call = all[message.channel.number]->call;
      EXPECT_TRUE(call.take(message, reach));
      call.expect(sites[0]);
      return true;
    });
  }
  for (auto& one : all) {
    const bool refused = one->function.digest != remote<&add>.entry().digest;
    EXPECT_EQ(one->call.completion().reason, refused ? ExitReason::failed : ExitReason::done);
    if (refused) continue;
    const std::int64_t number = one->call.channel().number;
    for (std::size_t i = 0; i < one->to.size(); ++i) {
      ASSERT_EQ(one->both[i], number + 100);
      ASSERT_EQ(one->to[i], number + 105);
    }
  }
}

TEST(HostLink, MovesArraysOfManyFamiliesAtOnce) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    many_at_once(seed, 1 << 20);
    many_at_once(seed, 20);  // the arrays of most channels go in messages
  }
}

// Until the call has ended or `turns` are over.
void step(Sites& sites, std::map<std::uint32_t, Service>& services,
          std::vector<std::unique_ptr<Running>>& all, Call& until, int turns) {
  NoReach reach;
  for (int turn = 0; !until.ended() && turn < turns; ++turn) {
    for (auto& one : all)
      if (!one->call.ended()) one->call.advance(sites[0]);
    serve_some(sites[1], services);
    sites[0].poll([&](const Message& message) {
      Call& call = all[message.channel.number]->call;
      call.take(message, reach);
      call.expect(sites[0]);
      return true;
    });
  }
}

TEST(HostLink, KeepsNoFamilyWaitingForAnotherOnesData) {
  Sites sites(2);
  sites.post.holds_arrays = true;
  NoReach reach;
  std::map<std::uint32_t, Service> services;
  std::vector<std::unique_ptr<Running>> all;
  for (const std::size_t n : {100000u, 0u}) {
    all.push_back(std::make_unique<Running>(static_cast<std::uint32_t>(all.size()), n, false));
    all.back()->call.open(reach);
    all.back()->call.ask_sync();
  }
  step(sites, services, all, all[1]->call, 1000);
  EXPECT_TRUE(all[1]->call.ended());
  EXPECT_FALSE(all[0]->call.ended());
  sites.post.holds_arrays = false;
  step(sites, services, all, all[0]->call, 1000);
  EXPECT_TRUE(all[0]->call.ended());
  EXPECT_EQ(all[0]->to, std::vector<std::int64_t>(100000, 105));
}

TEST(HostLink, HasRoomForAWindow) {
  Sites sites(2);
  const std::vector<std::byte> bytes(1000);
  std::size_t sent = 0;
  while (sites[0].try_send(to_1, Kind::data, bytes)) ASSERT_LT(++sent, 1000u);
  EXPECT_GE(sent, 30u);
  EXPECT_LE(sites.post.most_letters, sent);
  EXPECT_TRUE(sites[1].poll(takes_all));
  EXPECT_FALSE(sites[0].poll(takes_all)) << "no message";  // but it hears of the room
  EXPECT_TRUE(sites[0].try_send(to_1, Kind::data, bytes));
}

TEST(HostLink, KeepsMessagesThatAreNotTaken) {
  Sites sites(2);
  constexpr VirtualChannel other{.opener = 0, .peer = 1, .number = 4};
  ASSERT_TRUE(sites[0].try_send(to_1, Kind::request, {}));
  ASSERT_TRUE(sites[0].try_send(to_1, Kind::sync, {}));
  ASSERT_TRUE(sites[0].try_send(other, Kind::kill, {}));
  std::vector<Kind> taken;
  sites[1].poll([&](const Message& message) {
    if (message.channel.number != 4) return false;
    taken.push_back(message.kind);
    return true;
  });
  EXPECT_EQ(taken, std::vector{Kind::kill});
  sites[1].poll(takes_none);
  sites[1].poll([&](const Message& message) {
    taken.push_back(message.kind);
    return true;
  });
  EXPECT_EQ(taken, (std::vector{Kind::kill, Kind::request, Kind::sync}));
}

TEST(HostLink, SyncsInAnyOrder) {
  for (const Transport transport : {Transport::stream, Transport::buffer, Transport::best})
    for (const std::size_t elements : {1u, 400u, 40000u}) {
      Sites sites(2);
      std::thread server([&] { testing::serve(sites[1], 2); });
      testing::create_two_and_sync_the_second_first(sites[0], transport, elements);
      server.join();
    }
}

TEST(HostLink, TellsAllOfASiteThatIsLost) {
  Sites sites(3);
  std::vector<std::byte> bytes(10);
  sites[0].move_in(to_1, bytes);
  sites.messages[0]->trouble = {.with = 1, .text = "it hangs"};
  sites[0].poll(takes_all);
  const auto loss = sites[0].next_loss();
  ASSERT_TRUE(loss);
  EXPECT_EQ(loss->site, 1u);
  EXPECT_EQ(loss->how,
            "process 1 of the program (process 10 on host 1) cannot be reached any more: it hangs");
  EXPECT_FALSE(sites[0].next_loss());
  EXPECT_FALSE(sites[0].is_moving(to_1));
  EXPECT_FALSE(sites[0].is_whole());
  sites.post.letters[{0, 1}].clear();  // a beat
  EXPECT_TRUE(sites[0].try_send(to_1, Kind::sync, {})) << "it is gone";
  EXPECT_TRUE((sites.post.letters[{0, 1}].empty()));
  sites[2].poll(takes_all);
  EXPECT_EQ(sites[2].next_loss()->how, loss->how);
  sites[0].say_end();
  sites[2].poll(takes_all);
  EXPECT_TRUE(sites[2].has_ended());
  EXPECT_FALSE(sites[2].is_whole());
}

// A child that has ended, and was collected.
host::ProcessName ended_process() {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  const host::ProcessName name = host::process_named(child);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
  return name;
}

// 1 is of another host, and cut off; 2 lives here, stopped; 3 has ended here.
TEST(HostLink, TakesNoSilentProcessForLostThatLives) {
  Sites sites(4, 1, {{2, host::process_named(getpid())}, {3, ended_process()}});
  std::vector<Site> lost;
  const auto start = HostLink::Clock::now();
  for (auto now = start; now < start + 6s; now += 10ms) {
    sites[0].poll(takes_all, now);
    while (const auto loss = sites[0].next_loss()) lost.push_back(loss->site);
  }
  EXPECT_EQ(lost, (std::vector<Site>{1, 3}));
  EXPECT_TRUE(sites[0].try_send({.opener = 0, .peer = 2, .number = 3}, Kind::request, {}));
  std::vector<Kind> taken;
  sites[2].poll([&](const Message& message) {
    taken.push_back(message.kind);
    return true;
  });
  EXPECT_EQ(taken, std::vector{Kind::request});
}
// Likewise of process 0, without which the others end.
TEST(HostLink, OutlivesAProcess0ThatIsStopped) {
  Sites sites(2, 1, {{0, host::process_named(getpid())}});
  const auto start = HostLink::Clock::now();
  for (auto now = start; now < start + 6s; now += 10ms) sites[1].poll(takes_all, now);
  EXPECT_TRUE(sites[1].is_whole());
}

TEST(HostLinkDeathTest, EndsTheProcessWhereItCannotGoOn) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto lose = [](std::size_t site, int lost, bool refuses) {
    Sites sites(3);
    std::vector<std::byte> bytes(10);
    sites[site].move_in({.opener = 0, .peer = 1, .number = 3}, bytes);
    sites.messages[site]->refuses_drops = refuses;
    sites.messages[site]->trouble = {.with = lost, .text = "it hangs"};
    sites[site].poll(takes_all);
  };
  EXPECT_EXIT(lose(2, 0, false), ::testing::ExitedWithCode(1),
              "tombolo: process 2: process 0 of the program .* it hangs");
  EXPECT_EXIT(lose(0, 1, true), ::testing::ExitedWithCode(1), "in the midst of an array");
  EXPECT_EXIT(lose(2, -1, false), ::testing::ExitedWithCode(1), "the host MPI failed: it hangs");
}

TEST(HostLinkDeathTest, HasANameForEachSite) {
  FakeMessages::Post post(1);
  FakeMessages messages(post, 0, 3);
  EXPECT_DEATH(HostLink(messages, {{"process 1 on host a", {}}, {"process 2 on host b", {}}}),
               "link: 2 names of 3 sites");
}

TEST(Beats, TellOfSilence) {
  const auto start = Beats::Clock::time_point() + 1h;
  Beats beats(0, 3, start);
  std::vector<Site> silent;
  int beaten = 0;
  const auto look = [&](Beats::Clock::time_point now) {
    beats.look(
        now, [&](Site) { ++beaten; }, [&](Site site) { silent.push_back(site); });
  };
  auto now = start;
  for (; now < start + 3900ms; now += 10ms) look(now);
  EXPECT_EQ(beaten, 16);
  beats.heard(1, now);
  for (; now < start + 5s; now += 10ms) look(now);
  ASSERT_FALSE(silent.empty());
  EXPECT_EQ(silent.front(), 2u);
  beats.forget(2);
  silent.clear();
  // This process was kept from looking: beats that have come are not read yet.
  now += 1h;
  look(now);
  look(now + 10ms);
  EXPECT_TRUE(silent.empty());
}

}  // namespace
}  // namespace tombolo::svp
