// SPDX-License-Identifier: Apache-2.0
// Purpose: tests the links over memory on every machine: messages of all sizes arrive in order,
// with little room as well; and the sequence of 002 section 5.2.2 on each of them, with each way
// for data to travel.
// Thread safety: -
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <vector>

#include "backends/machines.h"
#include "base/random.h"
#include "machine/testing/ensemble.h"
#include "svp/transport/mailbox_link.h"
#include "svp/transport/ring_link.h"
#include "svp/transport/service.h"

namespace tombolo::svp {
namespace {

constexpr std::uint64_t small_ring = 1024;

template <class C>
class Links : public ::testing::Test {
 protected:
  // Each core runs body(core, link).
  template <template <class> class L, class Body>
  static void run(machine::Home cores, std::uint64_t seed, Body&& body) {
    machine::SyncLayout layout(C::reserved_sync_bytes(cores));
    const auto at = take<L>(layout, cores);
    machine::testing::Ensemble<C> ensemble({.cores = cores,
                                            .sync_bytes = layout.bytes(),
                                            .data_bytes = cores * small_ring,
                                            .seed = seed});
    ensemble.run([&](C& core) {
      L<C> link(core, at);
      body(core, link);
    });
  }

 private:
  template <template <class> class L>
  static auto take(machine::SyncLayout& layout, machine::Home cores) {
    if constexpr (requires { L<C>::one_mailbox; })
      return L<C>::take(layout, 0, small_ring);
    else
      return L<C>::take(layout, cores, 0, small_ring);
  }
};
TYPED_TEST_SUITE(Links, AllMachines::apply<::testing::Types>, MachineNames);

// Each core sends numbered messages of random sizes to all others, and takes theirs.
template <class L>
void exchange(L& link, std::uint64_t seed, unsigned messages) {
  Random random = Random::stream(seed, link.self());
  struct Peer {
    unsigned sent = 0;
    unsigned received = 0;
    std::size_t next_size = 0;
  };
  std::vector<Peer> peers(link.sites());
  const auto done = [&] {
    for (Site other = 0; other < link.sites(); ++other)
      if (other != link.self() &&
          (peers[other].sent < messages || peers[other].received < messages))
        return false;
    return true;
  };
  std::vector<std::byte> bytes(link.most_bytes());
  while (!done()) {
    bool moved = false;
    for (Site other = 0; other < link.sites(); ++other) {
      Peer& peer = peers[other];
      if (other == link.self() || peer.sent == messages) continue;
      const VirtualChannel channel{.opener = link.self(), .peer = other, .number = peer.sent};
      for (std::size_t i = 0; i < peer.next_size; ++i)
        bytes[i] = static_cast<std::byte>(peer.sent + i + link.self());
      if (!link.try_send(channel, Kind::data, {bytes.data(), peer.next_size})) continue;
      ++peer.sent;
      peer.next_size = random.below(random.one_in(2) ? 40 : link.most_bytes() + 1);
      moved = true;
    }
    moved = link.poll([&](const Message& message) {
      Peer& peer = peers[message.channel.peer];
      EXPECT_EQ(message.channel.opener, message.channel.peer);
      EXPECT_EQ(message.channel.number, peer.received);
      for (std::size_t i = 0; i < message.bytes.size(); ++i)
        if (message.bytes[i] != static_cast<std::byte>(peer.received + i + message.channel.peer))
          ADD_FAILURE() << "byte " << i << " of message " << peer.received;
      ++peer.received;
      return true;
    }) || moved;
    if (!moved && !done()) {
      EXPECT_TRUE(link.wait().ok());
    }
  }
}

TYPED_TEST(Links, BringAllMessagesInOrder) {
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    SCOPED_TRACE(seed);
    for (const machine::Home cores : {2u, 3u}) {
      TestFixture::template run<RingLink>(cores, seed,
                                          [&](auto&, auto& link) { exchange(link, seed, 60); });
      TestFixture::template run<MailboxLink>(cores, seed,
                                             [&](auto&, auto& link) { exchange(link, seed, 30); });
    }
  }
}

void count(Index i, In<int> by, InArray<std::int32_t> from, OutArray<std::int32_t> to) {
  const auto n = static_cast<std::size_t>(i);
  to[n] = from[n] * by;
}

// The site that runs families, whose first one ends first. Its channels take their messages each.
template <class L>
void serve(L& link, unsigned families) {
  NoReach reach;
  std::map<std::uint32_t, Service> services;
  unsigned closed = 0;
  while (closed < families) {
    bool moved = link.poll([&](const Message& message) {
      auto& service = services.try_emplace(message.channel.number, message.channel).first->second;
      return service.take(message);
    });
    for (auto at = services.begin(); at != services.end();) {
      Service& service = at->second;
      if (service.ready() && !service.ended()) {
        ASSERT_TRUE(service.fetch(reach).ok());
        for (std::uint64_t n = 0; n < service.range().count(); ++n)
          service.frame().call(service.range().index(n));
        service.end(reach, {});
        moved = true;
      }
      const bool over = service.advance(link);
      closed += over ? 1 : 0;
      at = over ? services.erase(at) : std::next(at);
    }
    if (!moved && closed < families) {
      EXPECT_TRUE(link.wait().ok());
    }
  }
}

// Takes messages of its own channel alone, as the thread of a virtual channel does.
template <class L>
void sync(L& link, Call& call) {
  NoReach reach;
  call.ask_sync();
  while (!call.ended()) {
    const bool sent = call.advance(link);
    const bool took = link.poll([&](const Message& m) { return call.take(m, reach); });
    if (!took && sent && !call.ended()) {
      EXPECT_TRUE(link.wait().ok());
    }
  }
}

template <class L>
void create_two_and_sync_the_second_first(L& link, Carriage carriage, std::size_t elements) {
  NoReach reach;
  std::array<std::vector<std::int32_t>, 2> from;
  std::array<std::vector<std::int32_t>, 2> to;
  std::vector<std::unique_ptr<Call>> calls;
  for (unsigned f = 0; f < 2; ++f) {
    for (std::size_t i = 0; i < elements; ++i)
      from[f].push_back(static_cast<std::int32_t>(i + 7 * f));
    to[f].resize(elements);
    In<int> by(static_cast<int>(f) + 2);
    InArray<std::int32_t> in(from[f]);
    OutArray<std::int32_t> out(to[f]);
    const std::array<Piece, 3> pieces{Parameter<In<int>>::piece(by),
                                      Parameter<InArray<std::int32_t>>::piece(in),
                                      Parameter<OutArray<std::int32_t>>::piece(out)};
    calls.push_back(
        std::make_unique<Call>(VirtualChannel{.opener = 0, .peer = 1, .number = f},
                               CallPlan{.function = &remote<&count>.entry(),
                                        .range = {.limit = static_cast<Index>(elements)},
                                        .carriage = carriage},
                               pieces));
    calls.back()->open(reach);
    while (!calls.back()->advance(link)) EXPECT_TRUE(link.wait().ok());
  }
  sync(link, *calls[1]);
  sync(link, *calls[0]);
  for (unsigned f = 0; f < 2; ++f)
    for (std::size_t i = 0; i < elements; ++i)
      EXPECT_EQ(to[f][i], from[f][i] * (static_cast<int>(f) + 2));
}

TYPED_TEST(Links, SyncInAnyOrder) {
  for (const Carriage carriage :
       {Carriage::stream, Carriage::direct, Carriage::buffer, Carriage::remap, Carriage::best}) {
    SCOPED_TRACE(carriage_names[static_cast<std::size_t>(carriage)]);
    for (const std::size_t elements : {1u, 400u}) {
      const auto both = [&](auto& core, auto& link) {
        if (core.self() == 0)
          create_two_and_sync_the_second_first(link, carriage, elements);
        else
          serve(link, 2);
      };
      TestFixture::template run<RingLink>(2, 1, both);
      TestFixture::template run<MailboxLink>(2, 1, both);
    }
  }
}

}  // namespace
}  // namespace tombolo::svp
