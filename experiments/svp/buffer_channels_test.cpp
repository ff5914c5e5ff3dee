// SPDX-License-Identifier: Apache-2.0
// Channels over the message passing buffers: bytes and their order, several channels at once, and
// the message in a buffer that only its own thread takes.
#include "experiments/svp/buffer_channels.h"

#include <gtest/gtest.h>

#include <deque>

#include "experiments/common/testing.h"

namespace tombolo::experiments {
namespace {

using scc::View;
using simulator::Address;
using simulator::CoreId;
using simulator::Duration;

struct Host {
  Host(scc::Chip& chip, CoreId core) : system(chip, core, {.threads = 3}), channels(chip, system) {}

  View memory(std::uint64_t bytes) {
    Address at;
    EXPECT_TRUE(system.allocate(bytes, &at).ok());
    return {at};
  }
  View filled(std::uint64_t bytes, std::uint32_t key) {
    const View at = memory(bytes);
    for (std::uint64_t i = 0; i < bytes; i += 4) system.cpu().store(at + i, word(i, key));
    return at;
  }
  std::uint64_t wrong(View at, std::uint64_t bytes, std::uint32_t key) {
    std::uint64_t words = 0;
    for (std::uint64_t i = 0; i < bytes; i += 4)
      if (system.cpu().load<std::uint32_t>(at + i) != word(i, key)) ++words;
    return words;
  }
  static std::uint32_t word(std::uint64_t i, std::uint32_t key) {
    return static_cast<std::uint32_t>(i * 2654435761u) + key;
  }
  Linux system;
  BufferChannels channels;
};

class BufferChannelsTest : public ::testing::Test {
 protected:
  using Program = std::function<void(Host&)>;

  // Runs a program on core 0 and one on core 5, and on core 9 if there is a third.
  void run(const Program& first, const Program& second, const Program& third = {}) {
    scc::Chip chip(context_.chip);
    std::deque<Host> hosts;
    const std::vector<Program> programs = {first, second, third};
    const std::uint32_t cores[] = {0, 5, 9};
    int left = 0;
    for (std::size_t n = 0; n < programs.size(); ++n)
      if (programs[n]) {
        hosts.emplace_back(chip, CoreId(cores[n]));
        ++left;
      }
    for (std::size_t n = 0; n < hosts.size(); ++n)
      hosts[n].system.start([&, n] {
        programs[n](hosts[n]);
        hosts[n].system.cpu().fibre().await_turn();
        if (--left > 0) return;
        for (Host& host : hosts) host.system.stop(hosts[n].system.cpu());
      });
    const simulator::RunResult result = chip.run();
    EXPECT_TRUE(result.status.ok()) << result.status.message();
  }
  Context context_ = test_context();
};

// The largest are cut: a buffer has 8 KB less a line.
TEST_F(BufferChannelsTest, BytesOfAllSizesArriveInOrder) {
  const std::uint64_t sizes[] = {4, 32, 36, 4096, 8160, 8164, 20'000};
  run(
      [&](Host& host) {
        const auto stream = host.channels.open(CoreId(5));
        for (const std::uint64_t bytes : sizes)
          stream->send(host.filled(bytes, static_cast<std::uint32_t>(bytes)), bytes);
      },
      [&](Host& host) {
        const auto stream = host.channels.accept();
        ASSERT_NE(stream, nullptr);
        EXPECT_EQ(stream->peer(), CoreId(0));
        for (const std::uint64_t bytes : sizes) {
          const View to = host.memory(bytes);
          stream->receive(to, bytes);
          EXPECT_EQ(host.wrong(to, bytes, static_cast<std::uint32_t>(bytes)), 0u) << bytes;
        }
      });
}

TEST_F(BufferChannelsTest, WordsGoBothWays) {
  run(
      [](Host& host) {
        const auto stream = host.channels.open(CoreId(5));
        const std::uint64_t question[] = {40, 2};
        stream->send_words(question);
        std::uint64_t answer[1] = {};
        stream->receive_words(answer);
        EXPECT_EQ(answer[0], 42u);
      },
      [](Host& host) {
        const auto stream = host.channels.accept();
        std::uint64_t question[2] = {};
        stream->receive_words(question);
        const std::uint64_t answer[] = {question[0] + question[1]};
        stream->send_words(answer);
      });
}

// Messages of another channel stay in the buffer until their thread looks.
TEST_F(BufferChannelsTest, EachThreadTakesItsOwnChannelsMessages) {
  std::uint64_t got[2] = {};
  run(
      [](Host& host) {
        const auto one = host.channels.open(CoreId(5));
        const auto other = host.channels.open(CoreId(5));
        for (std::uint64_t i = 1; i <= 4; ++i) {
          const std::uint64_t of_one[] = {i};
          const std::uint64_t of_other[] = {100 * i};
          one->send_words(of_one);
          other->send_words(of_other);
        }
      },
      [&](Host& host) {
        const auto sum = [&](std::shared_ptr<Stream> stream, std::size_t n) {
          return [&, stream, n] {
            for (int i = 0; i < 4; ++i) {
              std::uint64_t word[1] = {};
              stream->receive_words(word);
              got[n] += word[0];
            }
          };
        };
        for (std::size_t n = 0; n < 2; ++n) host.system.spawn(sum(host.channels.accept(), n));
        host.system.join();
      });
  EXPECT_EQ(got[0], 1u + 2 + 3 + 4);
  EXPECT_EQ(got[1], 100u + 200 + 300 + 400);
}

TEST_F(BufferChannelsTest, TwoSendersToOneCoreDoNotMix) {
  const auto sender = [](std::uint32_t key) {
    return [key](Host& host) {
      const auto stream = host.channels.open(CoreId(5));
      for (std::uint32_t i = 0; i < 3; ++i) stream->send(host.filled(9000, key + i), 9000);
    };
  };
  std::uint64_t wrong = 0;
  run(
      sender(10),
      [&](Host& host) {
        const auto take = [&](std::shared_ptr<Stream> stream) {
          return [&, stream] {
            const std::uint32_t key = stream->peer() == CoreId(0) ? 10 : 20;
            for (std::uint32_t i = 0; i < 3; ++i) {
              const View to = host.memory(9000);
              stream->receive(to, 9000);
              wrong += host.wrong(to, 9000, key + i);
            }
          };
        };
        for (int n = 0; n < 2; ++n) host.system.spawn(take(host.channels.accept()));
        host.system.join();
      },
      sender(20));
  EXPECT_EQ(wrong, 0u);
}

// A buffer takes one message: the second send waits until the first was taken.
TEST_F(BufferChannelsTest, ASenderWaitsForAFullBuffer) {
  const auto pause = Duration::milliseconds(20);
  run(
      [&](Host& host) {
        const auto stream = host.channels.open(CoreId(5));
        const View from = host.filled(8, 1);
        const simulator::Time begin = host.system.now();
        stream->send(from, 8);
        EXPECT_LT(host.system.now() - begin, pause);
        stream->send(from, 8);
        EXPECT_GE(host.system.now() - begin, pause);
      },
      [&](Host& host) {
        host.system.compute(pause + Duration::milliseconds(1));
        const auto stream = host.channels.accept();
        const View to = host.memory(16);
        stream->receive(to, 16);
      });
}

TEST_F(BufferChannelsTest, TheSideThatIsAskedWaitsForIt) {
  const auto pause = Duration::milliseconds(20);
  simulator::Time asked;
  run(
      [&](Host& host) {
        const auto stream = host.channels.open(CoreId(5));
        const std::uint64_t hello[] = {1};
        stream->send_words(hello);
        host.system.compute(pause);
        asked = host.system.now();
        stream->ask();
        std::uint64_t word[1] = {};
        stream->receive_words(word);
        EXPECT_EQ(word[0], 5u);
      },
      [&](Host& host) {
        const auto stream = host.channels.accept();
        std::uint64_t hello[1] = {};
        stream->receive_words(hello);
        stream->await_asking();
        EXPECT_GE(host.system.now(), asked);
        EXPECT_GE(host.system.now().since_start(), pause);
        const std::uint64_t word[] = {5};
        stream->send_words(word);
      });
}

TEST_F(BufferChannelsTest, AcceptEndsWithTheSystem) {
  scc::Chip chip(context_.chip);
  Host host(chip, CoreId(0));
  bool ended = false;
  host.system.start([&] {
    host.system.spawn([&] {
      EXPECT_EQ(host.channels.accept(), nullptr);
      ended = true;
    });
    host.system.sleep();
    host.system.stop(host.system.cpu());
    host.system.join();
  });
  const simulator::RunResult result = chip.run();
  EXPECT_TRUE(result.status.ok()) << result.status.message();
  EXPECT_TRUE(ended);
}

}  // namespace
}  // namespace tombolo::experiments
