// SPDX-License-Identifier: Apache-2.0
// Purpose: TCP/IP between simulated cores: bytes, order, the window, and two cores that send at
// once.
#include "experiments/svp/tcp.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "experiments/common/testing.h"

namespace tombolo::experiments {
namespace {

using scc::View;
using simulator::Address;
using simulator::CoreId;

struct Host {
  Host(scc::Chip& chip, CoreId core)
      : system(chip, core, {.threads = 2}), tcp(chip, system), id(core) {}
  // Memory for so many bytes, which are random if a seed is given.
  View memory(std::uint64_t bytes, std::uint64_t seed = 0) {
    Address at;
    EXPECT_TRUE(system.allocate(bytes, &at).ok());
    Random random(seed);
    for (std::uint64_t i = 0; seed != 0 && i < bytes; i += 4)
      system.cpu().store<std::uint32_t>({at + i}, static_cast<std::uint32_t>(random.next()));
    return {at};
  }
  std::uint64_t wrong(View at, std::uint64_t bytes, std::uint64_t seed) {
    Random random(seed);
    std::uint64_t words = 0;
    for (std::uint64_t i = 0; i < bytes; i += 4)
      if (system.cpu().load<std::uint32_t>(at + i) != static_cast<std::uint32_t>(random.next()))
        ++words;
    return words;
  }
  Linux system;
  Tcp tcp;
  CoreId id;
};

class TcpTest : public ::testing::Test {
 protected:
  void run(const std::function<void(Host&)>& client, const std::function<void(Host&)>& server) {
    const Context context = test_context();
    scc::Chip chip(context.chip);
    Host one(chip, CoreId(0));
    Host other(chip, CoreId(5));
    bool served = false;
    other.system.start([&] {
      server(other);
      served = true;
    });
    one.system.start([&] {
      client(one);
      while (!served) one.system.sleep();
      one.system.stop(one.system.cpu());
      other.system.stop(one.system.cpu());
    });
    const simulator::RunResult result = chip.run();
    EXPECT_TRUE(result.status.ok()) << result.status.message();
  }
};

TEST_F(TcpTest, BytesArriveInOrderWhateverTheCutIs) {
  constexpr std::uint64_t bytes = 20'000;
  run(
      [&](Host& host) {
        const View from = host.memory(bytes, 3);
        const auto stream = host.tcp.open(CoreId(5));
        for (std::uint64_t at = 0; at < bytes; at += 2'500) stream->send(from + at, 2'500);
        stream->close();
      },
      [&](Host& host) {
        const View to = host.memory(bytes);
        const auto stream = host.tcp.accept();
        for (std::uint64_t at = 0; at < bytes; at += 4'000) stream->receive(to + at, 4'000);
        EXPECT_EQ(host.wrong(to, bytes, 3), 0u);
        stream->await_close();
      });
}

TEST_F(TcpTest, ASenderWaitsForAReceiverThatDoesNotRead) {
  constexpr std::uint64_t bytes = 200'000;
  const auto pause = simulator::Duration::milliseconds(500);
  run(
      [&](Host& host) {
        const View from = host.memory(bytes, 4);
        const auto stream = host.tcp.open(CoreId(5));
        const simulator::Time begin = host.system.now();
        stream->send(from, bytes);
        EXPECT_GE(host.system.now() - begin, pause);
        stream->close();
      },
      [&](Host& host) {
        const View to = host.memory(bytes);
        const auto stream = host.tcp.accept();
        host.system.compute(pause);
        stream->receive(to, bytes);
        EXPECT_EQ(host.wrong(to, bytes, 4), 0u);
        stream->await_close();
      });
}

TEST_F(TcpTest, BothSidesSendAtOnce) {
  constexpr std::uint64_t bytes = 40'000;
  const auto exchange = [&](Host& host, Stream& stream, std::uint64_t own, std::uint64_t peers) {
    const View from = host.memory(bytes, own);
    const View to = host.memory(bytes);
    stream.send(from, bytes);
    stream.receive(to, bytes);
    EXPECT_EQ(host.wrong(to, bytes, peers), 0u);
  };
  run(
      [&](Host& host) {
        const auto stream = host.tcp.open(CoreId(5));
        exchange(host, *stream, 5, 6);
      },
      [&](Host& host) {
        const auto stream = host.tcp.accept();
        exchange(host, *stream, 6, 5);
      });
}

TEST(BufferNetwork, NamesABufferThatIsTooSmall) {
  Context context = test_context();
  context.chip.layout.mpb_bytes_per_tile = 8192;
  const Status status = BufferNetwork::fits(context.chip);
  EXPECT_EQ(status.code(), Code::bad_configuration);
  EXPECT_NE(status.message().find("4096"), std::string::npos);
}

}  // namespace
}  // namespace tombolo::experiments
