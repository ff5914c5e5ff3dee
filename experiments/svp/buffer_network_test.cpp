// SPDX-License-Identifier: Apache-2.0
// The network driver: packets with their headers, from several senders to one core and from two
// cores to each other, through slots that are used again.
#include "experiments/svp/buffer_network.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>

#include "experiments/common/testing.h"

namespace tombolo::experiments {
namespace {

using scc::View;
using simulator::Address;
using simulator::CoreId;

struct Came {
  PacketHeader header;
  bool right = false;  // each byte of the data
};

std::byte byte_of(std::uint32_t i, std::uint32_t key) {
  return static_cast<std::byte>((i * 7 + key * 13 + 1) & 0xff);
}

struct Host {
  Host(scc::Chip& chip, CoreId core, std::uint8_t first_slot = 0)
      : system(chip, core, {}),
        network(
            chip, system, [this](const PacketHeader& h, Address data) { deliver(h, data); },
            first_slot) {
    system.on_interrupt([this] { network.receive(); });
  }
  // A packet whose kind is the key of its bytes.
  void send(CoreId to, std::uint32_t bytes, std::uint32_t key) {
    const Address data = network.take_buffer();
    for (std::uint32_t i = 0; i < bytes; ++i) system.cpu().store(View{data} + i, byte_of(i, key));
    PacketHeader header;
    header.data_bytes = bytes;
    header.kind = key;
    header.from = system.cpu().id().index();
    header.allowed = std::uint64_t{1} << 40 | key;
    network.send(to, header, data);
    network.give_buffer(data);
  }
  void deliver(const PacketHeader& header, Address data) {
    bool right = true;
    for (std::uint32_t i = 0; i < header.data_bytes; ++i)
      right = right && system.cpu().load<std::byte>(View{data} + i) == byte_of(i, header.kind);
    if (header.data_bytes > 0) network.give_buffer(data);
    came.push_back({header, right});
  }
  Linux system;
  BufferNetwork network;
  std::deque<Came> came;
};

class BufferNetworkTest : public ::testing::Test {
 protected:
  using Program = std::function<void(Host&)>;

  // Runs a program on each core; all stop when all programs are done and so many packets came.
  void run(const std::map<std::uint32_t, Program>& programs, std::size_t packets,
           std::uint8_t first_slot = 0) {
    scc::Chip chip(context_.chip);
    hosts_.clear();
    for (const auto& [core, program] : programs)
      hosts_.emplace(std::piecewise_construct, std::forward_as_tuple(core),
                     std::forward_as_tuple(chip, CoreId(core), first_slot));
    std::size_t done = 0;
    for (const auto& [core, program] : programs) {
      Host& host = hosts_.at(core);
      host.system.start([&, core = core] {
        programs.at(core)(host);
        ++done;
        if (core != programs.begin()->first) return;
        while (done < programs.size() || all_came() < packets) host.system.sleep();
        for (auto& [number, each] : hosts_) each.system.stop(host.system.cpu());
      });
    }
    const simulator::RunResult result = chip.run();
    EXPECT_TRUE(result.status.ok()) << result.status.message();
  }
  std::size_t all_came() const {
    std::size_t sum = 0;
    for (const auto& [core, host] : hosts_) sum += host.came.size();
    return sum;
  }
  static void nothing(Host&) {}

  Context context_ = test_context();
  std::map<std::uint32_t, Host> hosts_;
};

TEST_F(BufferNetworkTest, APacketComesWithItsHeader) {
  run({{0, [](Host& host) { host.send(CoreId(5), 1000, 3); }}, {5, nothing}}, 1);
  ASSERT_EQ(hosts_.at(5).came.size(), 1u);
  const Came& one = hosts_.at(5).came.front();
  EXPECT_TRUE(one.right);
  EXPECT_EQ(one.header.data_bytes, 1000u);
  EXPECT_EQ(one.header.kind, 3u);
  EXPECT_EQ(one.header.from, 0u);
  EXPECT_EQ(one.header.allowed, std::uint64_t{1} << 40 | 3u);
}

// More than there are slots, of all sizes that a packet has.
TEST_F(BufferNetworkTest, PacketsToOneCoreComeInOrder) {
  constexpr std::uint32_t count = 23;
  run({{0,
        [](Host& host) {
          const auto most = static_cast<std::uint32_t>(host.network.most_data());
          for (std::uint32_t n = 0; n < count; ++n)
            host.send(CoreId(5), n % 3 == 0 ? most : n * 17 % most, n);
        }},
       {5, nothing}},
      count);
  ASSERT_EQ(hosts_.at(5).came.size(), count);
  for (std::uint32_t n = 0; n < count; ++n) {
    EXPECT_EQ(hosts_.at(5).came[n].header.kind, n);
    EXPECT_TRUE(hosts_.at(5).came[n].right) << n;
  }
}

TEST_F(BufferNetworkTest, APacketWithoutDataTakesNoBuffer) {
  run({{0, [](Host& host) { host.send(CoreId(1), 0, 9); }}, {1, nothing}}, 1);
  ASSERT_EQ(hosts_.at(1).came.size(), 1u);
  EXPECT_EQ(hosts_.at(1).came.front().header.kind, 9u);
}

TEST_F(BufferNetworkTest, ManySendersReachOneCore) {
  constexpr std::uint32_t each = 4;
  std::map<std::uint32_t, Program> programs = {{0, nothing}};
  for (const std::uint32_t core : {1u, 6u, 13u, 47u})
    programs[core] = [](Host& host) {
      for (std::uint32_t n = 0; n < each; ++n) host.send(CoreId(0), 600, n);
    };
  run(programs, 4 * each);
  std::map<std::uint32_t, std::uint32_t> next;
  for (const Came& packet : hosts_.at(0).came) {
    EXPECT_TRUE(packet.right);
    EXPECT_EQ(packet.header.kind, next[packet.header.from]++) << packet.header.from;
  }
  EXPECT_EQ(next.size(), 4u);
}

// BN2: each waits for a slot of its own that the other empties.
TEST_F(BufferNetworkTest, TwoCoresThatSendToEachOtherBothGoOn) {
  constexpr std::uint32_t count = 15;
  const auto sender = [](std::uint32_t to) {
    return [to](Host& host) {
      for (std::uint32_t n = 0; n < count; ++n) host.send(CoreId(to), 1400, n);
    };
  };
  run({{2, sender(7)}, {7, sender(2)}}, 2 * count);
  for (const std::uint32_t core : {2u, 7u}) {
    ASSERT_EQ(hosts_.at(core).came.size(), count);
    for (std::uint32_t n = 0; n < count; ++n) {
      EXPECT_TRUE(hosts_.at(core).came[n].right);
      EXPECT_EQ(hosts_.at(core).came[n].header.kind, n);
    }
  }
}

TEST_F(BufferNetworkTest, SlotsAreLeftToOthers) {
  run({{0,
        [](Host& host) {
          // A mark in the first two slots, which the driver's offset leaves alone.
          const std::uint32_t mark = 0xabcdef01;
          const View slot{host.system.cpu().chip().mpb(CoreId(0)), scc::MemoryType::ncm};
          host.system.cpu().store(slot + 8, mark);
          host.system.cpu().store(slot + (1504 + 8), mark);
          for (std::uint32_t n = 0; n < 7; ++n) host.send(CoreId(3), 1400, n);
          EXPECT_EQ(host.system.cpu().load<std::uint32_t>(slot + 8), mark);
          EXPECT_EQ(host.system.cpu().load<std::uint32_t>(slot + (1504 + 8)), mark);
        }},
       {3, nothing}},
      7, 2);
  ASSERT_EQ(hosts_.at(3).came.size(), 7u);
  for (const Came& packet : hosts_.at(3).came) EXPECT_TRUE(packet.right);
}

TEST_F(BufferNetworkTest, BuffersAreUsedAgain) {
  scc::Chip chip(context_.chip);
  Host host(chip, CoreId(0));
  const Address first = host.network.take_buffer();
  const Address second = host.network.take_buffer();
  EXPECT_NE(first, second);
  host.network.give_buffer(first);
  EXPECT_EQ(host.network.take_buffer(), first);
}

}  // namespace
}  // namespace tombolo::experiments
