// SPDX-License-Identifier: Apache-2.0
// Purpose: tests the protocol of remote families with each way for data to travel, links with much
// and little room, and requests that cannot be served.
// Thread safety: -
#include "svp/remote/call.h"

#include <gtest/gtest.h>

#include <array>
#include <numeric>

#include "svp/links/testing/queue_link.h"
#include "svp/remote/service.h"
#include "svp/remote/testing/scarce_memory.h"

namespace tombolo::svp {
namespace {

void work(Index i, In<int> by, InArray<double> from, InOutArray<std::int64_t> both,
          OutArray<float> to, Out<double> last, InOut<std::uint16_t> count) {
  const auto n = static_cast<std::size_t>(i);
  to[n] = static_cast<float>(from[n] * by);
  both[n] += 1000;
  if (n + 1 == to.size()) *last = from[n];
  *count = static_cast<std::uint16_t>(*count + 1);
}
void sum(Out<std::int64_t> all, InArray<std::int32_t> last) {
  *all = std::accumulate(last.begin(), last.end(), std::int64_t{0});
}
void fill(Index i, OutArray<float> to) { to[static_cast<std::size_t>(i)] = 7; }
struct NoXdr {
  int a;
  int b;
};
void of_structures(InArray<NoXdr>) {}

struct Way5 {
  Transport transport;
  std::size_t room;
  std::size_t most_bytes;
  std::size_t elements;
};

class Protocol : public ::testing::Test {
 protected:
  // Until the call has ended; the service runs its family when it is ready.
  template <class F>
  void converse(Call& call, F&& run, std::size_t room, std::size_t most_bytes) {
    testing::QueueLink here(post_, 0, room, most_bytes);
    testing::QueueLink there(post_, 1, room, most_bytes);
    Service service({.opener = 0, .peer = 0, .number = call.channel().number});
    bool closed = false;
    bool ran = false;
    for (int turns = 0; !call.ended() || !closed; ++turns) {
      ASSERT_LT(turns, 100000) << "no end";
      call.advance(here);
      there.poll([&](const Message& m) { return service.take(m); });
      if (service.ready() && !ran) {
        run(service);
        ran = true;
      }
      closed = closed || service.advance(there);
      here.poll([&](const Message& m) { return call.take(m, reach_); });
    }
  }
  template <Reach R>
  static void run_all(Service& service, R& reach) {
    if (Status status = service.fetch(reach); !status.ok())
      return service.end(reach, Service::refusal(status));
    for (std::uint64_t n = 0; n < service.range().count(); ++n)
      service.frame().call(service.range().index(n));
    service.end(reach, {});
  }
  testing::QueueLink::Post post_;
  testing::NotingReach reach_;
};

class Ways : public Protocol, public ::testing::WithParamInterface<Way5> {};
INSTANTIATE_TEST_SUITE_P(
    All, Ways,
    ::testing::Values(Way5{Transport::stream, 100, 4096, 10}, Way5{Transport::stream, 1, 24, 1000},
                      Way5{Transport::direct, 100, 4096, 10}, Way5{Transport::direct, 1, 24, 1000},
                      Way5{Transport::buffer, 100, 4096, 10}, Way5{Transport::buffer, 1, 24, 1000},
                      Way5{Transport::buffer, 2, 8192, 0}, Way5{Transport::stream, 2, 8192, 0},
                      Way5{Transport::remap, 100, 4096, 10}, Way5{Transport::remap, 1, 24, 1000},
                      Way5{Transport::best, 2, 4096, 10}, Way5{Transport::best, 2, 4096, 1000}));

TEST_P(Ways, BringInputThereAndOutputBack) {
  const auto [transport, room, most_bytes, n] = GetParam();
  for (const auto& [direct, unasked] :
       {std::pair(false, false), std::pair(true, false), std::pair(true, true)}) {
    reach_ = {.direct = direct, .shows = transport == Transport::remap};
    std::vector<double> from(n);
    std::iota(from.begin(), from.end(), 0.5);
    std::vector<std::int64_t> both(n, -7);
    std::vector<float> to(n, 1);
    double last = 0;
    std::uint16_t count = 65000;
    In<int> p0(-3);
    InArray<double> p1(from);
    InOutArray<std::int64_t> p2(both);
    OutArray<float> p3(to);
    Out<double> p4(last);
    InOut<std::uint16_t> p5(count);
    const std::array<Piece, 6> pieces{Parameter<In<int>>::piece(p0),
                                      Parameter<InArray<double>>::piece(p1),
                                      Parameter<InOutArray<std::int64_t>>::piece(p2),
                                      Parameter<OutArray<float>>::piece(p3),
                                      Parameter<Out<double>>::piece(p4),
                                      Parameter<InOut<std::uint16_t>>::piece(p5)};
    Call call({.opener = 0, .peer = 1, .number = 5},
              {.function = &remote<&work>.entry(),
               .range = {.limit = static_cast<Index>(n)},
               .transport = transport,
               .takes_unasked = unasked},
              pieces);
    ASSERT_EQ(call.unfit(), nullptr);
    call.open(reach_);
    call.ask_sync(reach_);
    converse(
        call, [&](Service& s) { run_all(s, reach_); }, room, most_bytes);
    EXPECT_EQ(call.completion().reason, ExitReason::done) << call.completion().text;
    for (std::size_t i = 0; i < n; ++i) {
      EXPECT_EQ(to[i], static_cast<float>(from[i] * -3));
      EXPECT_EQ(both[i], 993);
    }
    EXPECT_EQ(count, static_cast<std::uint16_t>(65000 + n));
    if (n != 0) {
      EXPECT_EQ(last, from[n - 1]);
    }
    if (transport == Transport::remap) {
      EXPECT_EQ(reach_.done,
                "publish publish publish map map map unmap unmap-written unmap-written "
                "refresh refresh ");
    }
    if (transport == Transport::direct && direct) {
      EXPECT_EQ(reach_.done, "get get put put ");
    }
  }
}

TEST_F(Protocol, BringsAnArrayThatEndsTheRequest) {
  for (const Transport transport : {Transport::stream, Transport::best}) {
    const std::vector<std::int32_t> values{1, 20, 300};
    std::int64_t all = 0;
    Out<std::int64_t> p0(all);
    InArray<std::int32_t> p1(values);
    const std::array<Piece, 2> pieces{Parameter<Out<std::int64_t>>::piece(p0),
                                      Parameter<InArray<std::int32_t>>::piece(p1)};
    Call call({.opener = 0, .peer = 1, .number = 3},
              {.function = &remote<&sum>.entry(), .range = {.limit = 1}, .transport = transport},
              pieces);
    call.open(reach_);
    call.ask_sync();
    converse(
        call, [&](Service& s) { run_all(s, reach_); }, 10, 4096);
    EXPECT_EQ(call.completion().reason, ExitReason::done) << call.completion().text;
    EXPECT_EQ(all, 321);
  }
}

void halve(InArray<double> from, InOutArray<double> both, OutArray<float> to) {
  for (std::size_t i = 0; i < from.size(); ++i) both[i] += from[i] / 2;
  for (float& value : to) value = 7;
}

// Large arrays by the engine, the small one from memory to memory; where the family's site has no
// engine the family fails.
TEST_F(Protocol, CopiesByAnEngineWhereTheMachineHasOne) {
  for (const bool there : {true, false}) {
    const std::vector<double> from{1, 3, 5};
    std::vector<double> both{10, 20, 30};
    std::vector<float> to(3);
    InArray<double> p0(from);
    InOutArray<double> p1(both);
    OutArray<float> p2(to);
    const std::array<Piece, 3> pieces{Parameter<InArray<double>>::piece(p0),
                                      Parameter<InOutArray<double>>::piece(p1),
                                      Parameter<OutArray<float>>::piece(p2)};
    testing::EngineReach engine{{.direct = true, .shows = true}, 3 * sizeof(double)};
    Call call({.opener = 0, .peer = 1, .number = 4},
              {.function = &remote<&halve>.entry(), .transport = Transport::engine}, pieces);
    call.open(engine);
    call.ask_sync();
    converse(
        call, [&](Service& s) { there ? run_all(s, engine) : run_all(s, reach_); }, 10, 4096);
    EXPECT_EQ(engine.done, there ? "engine-get engine-get engine-put put " : "");
    EXPECT_EQ(call.completion().reason, there ? ExitReason::done : ExitReason::failed);
    EXPECT_EQ(call.completion().text, there ? "" : "this site has no engine that copies");
    EXPECT_EQ(both,
              there ? (std::vector<double>{10.5, 21.5, 32.5}) : (std::vector<double>{10, 20, 30}));
    EXPECT_EQ(to, std::vector<float>(3, there ? 7 : 0));
  }
}

TEST_F(Protocol, GoesFromMemoryToMemoryWhereThereIsNoEngine) {
  const std::vector<std::int64_t> values(2);
  InArray<std::int64_t> array(values);
  const auto way = [&] {
    return way_of(Transport::engine, Parameter<InArray<std::int64_t>>::piece(array), 1, reach_);
  };
  reach_ = {.direct = true, .shows = true};
  EXPECT_EQ(way(), Way::direct);
  reach_.direct = false;
  EXPECT_EQ(way(), Way::messages);
}

TEST_F(Protocol, SendsFewBytesOfAnArrayWithTheRequest) {
  const auto way = [&](std::size_t elements) {
    const std::vector<std::int64_t> values(elements);
    InArray<std::int64_t> array(values);
    return way_of(Transport::best, Parameter<InArray<std::int64_t>>::piece(array), 1, reach_);
  };
  reach_.direct = true;
  EXPECT_EQ(way(few_bytes / 8), Way::inside);
  EXPECT_EQ(way(few_bytes / 8 + 1), Way::direct);
}

TEST_F(Protocol, HasRoomForFewBytesWithoutMemory) {
  const std::array<std::byte, 256> bytes{};
  Bytes block;
  const auto in_object = [&] {
    const auto at = reinterpret_cast<std::uintptr_t>(block.all().data());
    const auto begin = reinterpret_cast<std::uintptr_t>(&block);
    return at >= begin && at < begin + sizeof block;
  };
  block.append(bytes.data(), bytes.size());
  EXPECT_TRUE(in_object());
  block.append(bytes.front());
  EXPECT_FALSE(in_object());
}

TEST_F(Protocol, AnswersOnlyOnceItIsAsked) {
  In<int> one(1);
  Call call({.opener = 0, .peer = 1, .number = 0}, {.function = nullptr}, {});
  Service service({.opener = 0, .peer = 0, .number = 0});
  testing::QueueLink there(post_, 1, 10, 100);
  service.end(reach_, {.reason = ExitReason::broken, .value = 42});
  EXPECT_FALSE(service.advance(there));
  EXPECT_TRUE(post_[0].empty());
  EXPECT_FALSE(service.take({.channel = {0, 0, 1}, .kind = Kind::sync}));
  EXPECT_FALSE(service.advance(there));
  EXPECT_TRUE(service.take({.channel = {0, 0, 0}, .kind = Kind::sync}));
  EXPECT_TRUE(service.advance(there));
  testing::QueueLink here(post_, 0, 10, 100);
  here.poll([&](const Message& m) { return call.take(m, reach_); });
  EXPECT_TRUE(call.ended());
  EXPECT_EQ(call.completion().reason, ExitReason::broken);
  EXPECT_EQ(call.completion().value, 42);
}

template <std::size_t n>
struct Words {
  std::array<std::uint64_t, n> of;
};
constexpr std::size_t room = (Bytes::few - sizeof(CompletionHead)) / 8;
void tell_few(Out<Words<room>>) {}
void tell_more(Out<Words<room + 1>>) {}
void tell_shorts(OutArray<std::uint16_t>) {}
void tell_array(OutArray<std::uint64_t>) {}

// The answer has room in the call, comes in one message, and the creator's site takes it then.
TEST_F(Protocol, WantsShortAnswersUnasked) {
  const auto wants = [&](const auto& of, const Piece& piece, Transport transport, bool takes) {
    Call call({.opener = 0, .peer = 1, .number = 0},
              {.function = &of.entry(), .transport = transport, .takes_unasked = takes},
              std::span<const Piece>(&piece, 1));
    call.open(reach_);
    testing::QueueLink here(post_, 0, 10, 4096);
    EXPECT_TRUE(call.advance(here));
    RequestHead head;
    EXPECT_TRUE(BytesReader(post_[1].back().bytes).take(head));
    post_[1].clear();
    call.ask_sync(reach_);
    EXPECT_TRUE(call.advance(here));
    EXPECT_EQ(post_[1].empty(), head.unasked != 0) << "the request to sync";
    post_[1].clear();
    return head.unasked != 0;
  };
  Words<room> few{};
  Words<room + 1> more{};
  std::array<std::uint64_t, 2> words{};
  Out<Words<room>> p0(few);
  Out<Words<room + 1>> p1(more);
  OutArray<std::uint64_t> p2(words);
  const auto piece0 = Parameter<Out<Words<room>>>::piece(p0);
  const auto piece1 = Parameter<Out<Words<room + 1>>>::piece(p1);
  const auto piece2 = Parameter<OutArray<std::uint64_t>>::piece(p2);
  EXPECT_TRUE(wants(remote<&tell_few>, piece0, Transport::best, true));
  EXPECT_FALSE(wants(remote<&tell_few>, piece0, Transport::best, false));
  EXPECT_FALSE(wants(remote<&tell_more>, piece1, Transport::best, true));
  EXPECT_TRUE(wants(remote<&tell_array>, piece2, Transport::best, true));
  EXPECT_FALSE(wants(remote<&tell_array>, piece2, Transport::buffer, true));
  // 4 bytes each in XDR.
  for (const std::size_t count : {2 * room, 2 * room + 1}) {
    std::vector<std::uint16_t> shorts(count);
    OutArray<std::uint16_t> p3(shorts);
    const auto piece3 = Parameter<OutArray<std::uint16_t>>::piece(p3);
    EXPECT_TRUE(wants(remote<&tell_shorts>, piece3, Transport::best, true));
    EXPECT_EQ(wants(remote<&tell_shorts>, piece3, Transport::stream, true), count == 2 * room);
  }
}

using ProtocolDeathTest = Protocol;

// Its output would not be read.
TEST_F(ProtocolDeathTest, ACallWhoseAnswerMayHaveComeIsAskedWithTheReach) {
  std::array<std::uint64_t, 1> words{};
  OutArray<std::uint64_t> array(words);
  const std::array<Piece, 1> pieces{Parameter<OutArray<std::uint64_t>>::piece(array)};
  Call call({.opener = 0, .peer = 1, .number = 0},
            {.function = &remote<&tell_array>.entry(), .takes_unasked = true}, pieces);
  call.open(reach_);
  EXPECT_DEATH(call.ask_sync(), "call: its answer may have come; ask_sync\\(reach\\)");
}

// The answer is read when the creator asks, and not before.
TEST_F(Protocol, KeepsAnAnswerThatComesUnasked) {
  std::vector<std::uint64_t> words(3, 5);
  OutArray<std::uint64_t> array(words);
  const std::array<Piece, 1> pieces{Parameter<OutArray<std::uint64_t>>::piece(array)};
  Call call({.opener = 0, .peer = 1, .number = 0},
            {.function = &remote<&tell_array>.entry(), .takes_unasked = true}, pieces);
  Service service({.opener = 0, .peer = 0, .number = 0});
  call.open(reach_);
  testing::QueueLink here(post_, 0, 10, 16);
  testing::QueueLink there(post_, 1, 10, 16);
  while (!service.ready()) {
    call.advance(here);
    there.poll([&](const Message& m) { return service.take(m); });
  }
  run_all(service, reach_);
  EXPECT_TRUE(service.advance(there));
  ASSERT_GT(post_[0].size(), 1u);
  while (!post_[0].empty()) {
    EXPECT_FALSE(call.is_answered());
    here.poll([&](const Message& m) { return call.take(m, reach_); });
  }
  EXPECT_TRUE(call.is_answered());
  EXPECT_FALSE(call.ended());
  EXPECT_EQ(words[0], 5u);
  call.ask_kill();
  EXPECT_TRUE(call.advance(here));
  EXPECT_TRUE(post_[1].empty()) << "a kill after the end";
  call.ask_sync(reach_);
  EXPECT_TRUE(call.ended());
  EXPECT_EQ(words, std::vector<std::uint64_t>(3, 0));
}

TEST_F(Protocol, RefusesFunctionsThatAreNotThereOrDiffer) {
  FunctionEntry unknown{.id = 1, .name = "unknown", .digest = 0};
  FunctionEntry other = remote<&work>.entry();
  other.digest += 1;
  for (const FunctionEntry* function : {&unknown, &other}) {
    std::vector<std::int64_t> data(100);
    InArray<std::int64_t> array(data);
    const std::array<Piece, 1> pieces{Parameter<InArray<std::int64_t>>::piece(array)};
    Call call({.opener = 0, .peer = 1, .number = 9},
              {.function = function, .transport = Transport::buffer}, pieces);
    call.open(reach_);
    call.ask_sync();
    converse(
        call, [&](Service& s) { run_all(s, reach_); }, 1, 64);
    EXPECT_EQ(call.completion().reason, ExitReason::failed);
    EXPECT_NE(call.completion().text.find("same program"), std::string::npos)
        << call.completion().text;
  }
}

TEST_F(Protocol, RefusesDataThatDoNotFit) {
  const FunctionEntry& function = remote<&work>.entry();
  std::vector<std::int64_t> data(100);
  InArray<std::int64_t> array(data);
  const std::array<Piece, 1> too_few{Parameter<InArray<std::int64_t>>::piece(array)};
  for (const Transport transport : {Transport::buffer, Transport::stream, Transport::best}) {
    Call call({.opener = 0, .peer = 1, .number = 9},
              {.function = &function, .transport = transport}, too_few);
    call.open(reach_);
    call.ask_sync();
    converse(
        call, [&](Service& s) { run_all(s, reach_); }, 4, 64);
    EXPECT_EQ(call.completion().reason, ExitReason::failed);
    EXPECT_NE(call.completion().text.find("do not fit"), std::string::npos);
  }
}

// At the creator, whose messages are smaller than a head and larger, and at the family's site.
TEST_F(Protocol, FailsWithoutMemoryForTheOutput) {
  if (!testing::memory_can_run_out) GTEST_SKIP() << "the sanitizer has operator new[]";
  for (const std::size_t most_bytes : {24u, 4096u})
    for (const bool at_creator : {true, false}) {
      std::vector<float> to(1000, 1);
      OutArray<float> array(to);
      const std::array<Piece, 1> pieces{Parameter<OutArray<float>>::piece(array)};
      Call call({.opener = 0, .peer = 1, .number = 3},
                {.function = &remote<&fill>.entry(),
                 .range = {.limit = 1000},
                 .transport = Transport::stream},
                pieces);
      call.open(reach_);
      call.ask_sync();
      const auto run = [&](Service& service) {
        if (!at_creator) testing::most_array_bytes = 300;
        run_all(service, reach_);
        if (at_creator) testing::most_array_bytes = 300;
      };
      converse(call, run, 2, most_bytes);
      testing::most_array_bytes = testing::any_bytes;
      EXPECT_EQ(call.completion().reason, ExitReason::failed);
      EXPECT_EQ(call.completion().text, "no memory for the output");
      EXPECT_EQ(to, std::vector<float>(1000, 1));
    }
}

// For the request, or for the array of its input.
TEST_F(Protocol, FailsWithoutMemoryForTheInput) {
  if (!testing::memory_can_run_out) GTEST_SKIP() << "the sanitizer has operator new[]";
  const std::vector<std::int32_t> values(1000, 1);
  for (const std::size_t most_bytes : {24u, 4096u})
    for (const Transport transport : {Transport::stream, Transport::buffer})
      for (const bool unasked : {false, true}) {
        std::int64_t all = 7;
        Out<std::int64_t> p0(all);
        InArray<std::int32_t> p1(values);
        const std::array<Piece, 2> pieces{Parameter<Out<std::int64_t>>::piece(p0),
                                          Parameter<InArray<std::int32_t>>::piece(p1)};
        Call call({.opener = 0, .peer = 1, .number = 3},
                  {.function = &remote<&sum>.entry(),
                   .range = {.limit = 1},
                   .transport = transport,
                   .takes_unasked = unasked},
                  pieces);
        call.open(reach_);
        call.ask_sync(reach_);
        testing::most_array_bytes = 300;
        converse(
            call, [&](Service& s) { run_all(s, reach_); }, 2, most_bytes);
        testing::most_array_bytes = testing::any_bytes;
        EXPECT_EQ(call.completion().reason, ExitReason::failed);
        EXPECT_EQ(call.completion().text, "no memory for the data of a family from another site");
        EXPECT_EQ(all, 7);
      }
}

TEST_F(Protocol, KnowsTypesWithoutAFormInAStream) {
  std::vector<NoXdr> data(3);
  InArray<NoXdr> array(data);
  const std::array<Piece, 1> pieces{Parameter<InArray<NoXdr>>::piece(array)};
  CallPlan plan{.function = &remote<&of_structures>.entry(), .transport = Transport::stream};
  EXPECT_EQ(Call({}, plan, pieces).unfit()->at, data.data());
  plan.transport = Transport::best;
  EXPECT_EQ(Call({}, plan, pieces).unfit(), nullptr);
}

TEST_F(Protocol, TellsOfAKillOnce) {
  Call call({.opener = 0, .peer = 1, .number = 2}, {.function = &remote<&work>.entry()}, {});
  call.open(reach_);
  call.ask_kill();
  call.ask_kill();
  testing::QueueLink here(post_, 0, 10, 1000);
  EXPECT_TRUE(call.advance(here));
  call.ask_kill();
  EXPECT_TRUE(call.advance(here));
  ASSERT_EQ(post_[1].size(), 2u);
  EXPECT_EQ(post_[1][0].kind, Kind::request);
  EXPECT_EQ(post_[1][1].kind, Kind::kill);
  call.fail("gone", reach_);
  EXPECT_TRUE(call.ended());
  EXPECT_EQ(call.completion().text, "gone");
}

}  // namespace
}  // namespace tombolo::svp
