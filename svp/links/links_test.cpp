// SPDX-License-Identifier: Apache-2.0
// Purpose: tests the links over memory on every machine: messages of all sizes arrive in order,
// with little room as well; and the sequence of 002 section 5.2.2 on each of them, with each way
// for data to travel.
// Thread safety: -
#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "backends/machines.h"
#include "base/random.h"
#include "machine/testing/ensemble.h"
#include "svp/links/mailbox_link.h"
#include "svp/links/ring_link.h"
#include "svp/remote/testing/two_families.h"

namespace tombolo::svp {
namespace {

constexpr std::uint64_t small_ring = 1024;
// A mailbox whose first word is in another line than the rest.
constexpr std::uint64_t split = 64 - sizeof(std::uint64_t);

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
      return L<C>::take(layout, split, small_ring - split);
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

// Of all sizes, some times round the ring: each line of a message is published and refreshed, the
// last one, with a byte of it, too.
template <class L>
void send_each_size(L& link) {
  const std::size_t sizes = link.most_bytes() + 1;
  std::vector<std::byte> bytes(sizes);
  for (std::size_t size = 0; size != 2 * sizes;) {
    bool moved = false;
    if (link.self() == 0) {
      for (std::size_t i = 0; i < size % sizes; ++i) bytes[i] = static_cast<std::byte>(size + i);
      const VirtualChannel to{.opener = 0, .peer = 1, .number = 0};
      moved = link.try_send(to, Kind::data, {bytes.data(), size % sizes});
      size += moved ? 1 : 0;
    } else {
      moved = link.poll([&](const Message& message) {
        EXPECT_EQ(message.bytes.size(), size % sizes);
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < message.bytes.size(); ++i)
          wrong += message.bytes[i] == static_cast<std::byte>(size + i) ? 0 : 1;
        EXPECT_EQ(wrong, 0u) << "of " << size % sizes << " bytes";
        ++size;
        return true;
      });
    }
    if (!moved && size != 2 * sizes) {
      EXPECT_TRUE(link.wait().ok());
    }
  }
}

TYPED_TEST(Links, BringAllBytesOfEachSize) {
  TestFixture::template run<RingLink>(2, 1, [](auto&, auto& link) { send_each_size(link); });
  TestFixture::template run<MailboxLink>(2, 1, [](auto&, auto& link) { send_each_size(link); });
}

template <class C>
class LinksDeathTest : public ::testing::Test {};
TYPED_TEST_SUITE(LinksDeathTest, AllMachines::apply<::testing::Types>, MachineNames);

TYPED_TEST(LinksDeathTest, NeedRoomForMessages) {
  const auto with = [](auto&& make) {
    machine::SyncLayout layout(TypeParam::reserved_sync_bytes(1));
    const auto at = make(layout);
    machine::testing::Ensemble<TypeParam> ensemble(
        {.cores = 1, .sync_bytes = layout.bytes(), .data_bytes = small_ring});
    ensemble.run([&](TypeParam& core) { at(core); });
  };
  const auto ring = [](machine::SyncLayout& layout) {
    const auto at = RingLink<TypeParam>::take(layout, 1, 0, 384);
    return [at](TypeParam& core) { RingLink<TypeParam>(core, at); };
  };
  const auto mailbox = [](machine::SyncLayout& layout) {
    const auto at = MailboxLink<TypeParam>::take(layout, 0, 24);
    return [at](TypeParam& core) { MailboxLink<TypeParam>(core, at); };
  };
  EXPECT_DEATH(with(ring), "link: a ring of 384 bytes");
  EXPECT_DEATH(with(mailbox), "link: a mailbox of 24 bytes");
}

// Messages of a line each; RLK2: one that ends with the ring is not written at its beginning.
TYPED_TEST(Links, FillARingToItsEnd) {
  TestFixture::template run<RingLink>(2, 1, [](auto& core, auto& link) {
    if (core.self() != 0) return;
    const VirtualChannel channel{.opener = 0, .peer = 1, .number = 0};
    for (unsigned sent = 0; sent < small_ring / 64; ++sent)
      EXPECT_TRUE(link.try_send(channel, Kind::data, {})) << sent;
    EXPECT_FALSE(link.try_send(channel, Kind::data, {}));
  });
}

// RLK3: the receiver takes no more than a quarter.
TYPED_TEST(Links, GiveBackAQuarterOfARing) {
  constexpr unsigned all = small_ring / 64;
  std::atomic<bool> all_taken{false};
  TestFixture::template run<RingLink>(2, 1, [&](auto& core, auto& link) {
    if (core.self() == 1) {
      unsigned taken = 0;
      while (taken != all / 4)
        if (!link.poll([&](const Message&) { return taken != all / 4 && ++taken != 0; })) {
          EXPECT_TRUE(link.wait().ok());
        }
      all_taken = true;
      return;
    }
    const VirtualChannel channel{.opener = 0, .peer = 1, .number = 0};
    for (unsigned sent = 0; sent < all; ++sent)
      EXPECT_TRUE(link.try_send(channel, Kind::data, {})) << sent;
    while (!all_taken) EXPECT_TRUE(core.pause(1000).ok());
    // No store of the machine says that all are taken: the one that gives back may come later.
    unsigned sent = 0;
    for (unsigned looks = 0; sent < all / 4 && looks < 10'000; ++looks)
      if (link.try_send(channel, Kind::data, {}))
        ++sent;
      else
        EXPECT_TRUE(core.pause(1000).ok());
    EXPECT_EQ(sent, all / 4);
  });
}

TYPED_TEST(Links, SyncInAnyOrder) {
  for (const Transport transport : {Transport::stream, Transport::direct, Transport::buffer,
                                    Transport::remap, Transport::best}) {
    SCOPED_TRACE(transport_names[static_cast<std::size_t>(transport)]);
    for (const std::size_t elements : {1u, 400u}) {
      const auto both = [&](auto& core, auto& link) {
        if (core.self() == 0)
          testing::create_two_and_sync_the_second_first(link, transport, elements);
        else
          testing::serve(link, 2);
      };
      TestFixture::template run<RingLink>(2, 1, both);
      TestFixture::template run<MailboxLink>(2, 1, both);
    }
  }
}

}  // namespace
}  // namespace tombolo::svp
