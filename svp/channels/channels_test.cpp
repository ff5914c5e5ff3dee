// SPDX-License-Identifier: Apache-2.0
// Purpose: tests global and shared channels: blocking reads, write-once, and reads that would never
// end.
// Thread safety: -
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "svp/api/include/tombolo/svp.hpp"

namespace tombolo::svp {
namespace {

class Channels : public ::testing::TestWithParam<unsigned> {
 protected:
  template <class Body>
  Exit inside(Body&& body) {
    auto family = create(place_, std::forward<Body>(body));
    return family.sync();
  }
  LocalPlace place_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Workers, Channels, ::testing::Values(1u, 2u, 4u));

// 002 listing 3.1.
TEST_P(Channels, ComputeFibonacciNumbers) {
  inside([] {
    constexpr int n = 45;
    std::vector<long> fibonacci(n + 1);
    fibonacci[1] = 1;
    Shared<long> prev(fibonacci[1]);
    Shared<long> prev2(fibonacci[0]);
    auto family = create(
        {.start = 2, .limit = n + 1},
        [&](Index i, SharedEnd<long>& one, SharedEnd<long>& two) {
          fibonacci[static_cast<std::size_t>(i)] = one.read() + two.read();
          two.write(one.read());
          one.write(fibonacci[static_cast<std::size_t>(i)]);
        },
        prev, prev2);
    EXPECT_TRUE(family.sync().done());
    EXPECT_EQ(fibonacci[n], 1134903170);
    EXPECT_EQ(prev.read(), fibonacci[n]);
    EXPECT_EQ(prev2.read(), fibonacci[n - 1]);
  });
}

TEST_P(Channels, GlobalIsReadByAllAndWrittenLate) {
  inside([] {
    std::atomic<long> sum{0};
    Global<std::string> word;
    auto family = create(
        {.limit = 50},
        [&](Index i, Global<std::string>& text) {
          sum += i + static_cast<long>(text.read().size());
        },
        word);
    auto other = create([] {});
    other.sync();
    word.write("four");
    EXPECT_TRUE(family.sync().done());
    EXPECT_EQ(sum, 50 * 49 / 2 + 200);
  });
}

// The parent waits for the last thread before it syncs, so its family must begin meanwhile.
TEST_P(Channels, TheParentReadsBeforeItSyncs) {
  inside([] {
    Shared<int> sum;
    auto family = create(
        {.limit = 100}, [](SharedEnd<int>& s) { s.write(s.read() + 1); }, sum);
    sum.write(5);
    EXPECT_EQ(sum.read(), 105);
    EXPECT_TRUE(family.sync().done());
  });
}

TEST_P(Channels, OneFamilyFeedsTheNext) {
  inside([] {
    Shared<int> one(1);
    Shared<int> two;
    const auto twice = [](SharedEnd<int>& s) { s.write(s.read() * 2); };
    auto second = create({.limit = 5}, twice, two);
    auto first = create({.limit = 5}, twice, one);
    two.write(one.read());
    EXPECT_EQ(two.read(), 1024);
    second.sync();
    first.sync();
  });
}

TEST_P(Channels, ManyThreadsBlockAtOnce) {
  inside([] {
    constexpr int families = 300;
    Global<int> start;
    std::atomic<int> sum{0};
    const auto body = [&] { sum += start.read(); };
    using One = decltype(create(body));
    std::vector<std::unique_ptr<One>> all;
    for (int i = 0; i < families; ++i) all.emplace_back(new One(create(body)));
    auto writer = create([&] { start.write(3); });
    for (auto& family : all) family->sync();
    writer.sync();
    EXPECT_EQ(sum, 3 * families);
  });
}

TEST_P(Channels, AKillEndsABlockedThread) {
  LocalPlace elsewhere(1);
  for (int round = 0; round < 50; ++round)
    inside([&] {
      Global<int> never;
      std::atomic<bool> reading{false};
      auto family = create(elsewhere, [&] {
        auto inner = create([&] {
          reading = true;
          never.read();
          ADD_FAILURE() << "a read without a value returned";
        });
        inner.sync();
      });
      while (!reading) std::this_thread::yield();
      family.kill();
      EXPECT_EQ(family.sync().reason, ExitReason::killed);
    });
}

TEST_P(Channels, AKillMeetsAWrite) {
  LocalPlace elsewhere(1);
  for (int round = 0; round < 300; ++round)
    inside([&] {
      Global<int> value;
      std::atomic<bool> reading{false};
      auto family = create(elsewhere, [&] {
        reading = true;
        value.read();
      });
      auto writer = create([&] { value.write(1); });
      while (!reading) std::this_thread::yield();
      family.kill();
      writer.sync();
      const Exit exit = family.sync();
      EXPECT_TRUE(exit.done() || exit.reason == ExitReason::killed);
    });
}

TEST_P(Channels, AFailureEndsTheChain) {
  inside([] {
    Shared<int> sum(0);
    auto family = create(
        {.limit = 100},
        [](Index i, SharedEnd<int>& s) {
          if (i == 50) throw std::runtime_error("in the chain");
          s.write(s.read() + 1);
        },
        sum);
    EXPECT_THROW(sum.read(), NoValue);
    EXPECT_EQ(family.sync().reason, ExitReason::failed);
  });
}

TEST_P(Channels, AFamilyWithoutThreadsPassesTheValueOn) {
  inside([] {
    Shared<int> same(9);
    auto family = create(
        {.limit = 0}, [](SharedEnd<int>& s) { s.write(0); }, same);
    EXPECT_EQ(same.read(), 9);
    EXPECT_TRUE(family.sync().done());
  });
}

TEST_P(Channels, CarryWhatCanOnlyBeMoved) {
  inside([] {
    Shared<std::unique_ptr<int>> last(std::make_unique<int>(1));
    auto family = create(
        {.limit = 3},
        [](SharedEnd<std::unique_ptr<int>>& s) { s.write(std::make_unique<int>(*s.read() + 1)); },
        last);
    family.sync();
    EXPECT_EQ(*last.read(), 4);
  });
}

TEST_P(Channels, AChainHasAMillionThreads) {
  inside([] {
    Shared<long> sum(0);
    auto family = create(
        {.limit = 1000000}, [](Index i, SharedEnd<long>& s) { s.write(s.read() + i); }, sum);
    EXPECT_TRUE(family.sync().done());
    EXPECT_EQ(sum.read(), 499999500000);
  });
}

TEST_P(Channels, AreReadByThreadsThatAreNoWorkers) {
  Shared<int> sum;
  auto family = create(
      place_, {.limit = 10}, [](SharedEnd<int>& s) { s.write(s.read() + 1); }, sum);
  sum.write(0);
  EXPECT_EQ(sum.read(), 10);
  EXPECT_TRUE(family.sync().done());
}

class ChannelsDeathTest : public ::testing::Test {
 protected:
  ChannelsDeathTest() { ::testing::GTEST_FLAG(death_test_style) = "threadsafe"; }
};

TEST_F(ChannelsDeathTest, GlobalIsWrittenOnce) {
  Global<int> value(1);
  EXPECT_DEATH(value.write(2), "write: a global channel was written before");
}

TEST_F(ChannelsDeathTest, SharedIsWrittenOnceByTheParent) {
  Shared<int> value(1);
  EXPECT_DEATH(value.write(2), "write: the parent wrote to this shared channel before");
}

TEST_F(ChannelsDeathTest, SharedIsWrittenOnceByAThread) {
  EXPECT_DEATH(
      {
        Shared<int> value(1);
        auto family = create(
            {.start = 3, .limit = 4},
            [](SharedEnd<int>& s) {
              s.write(1);
              s.write(2);
            },
            value);
        family.sync();
      },
      "write: thread 3 writes to a shared channel a second time");
}

TEST_F(ChannelsDeathTest, AReadNeedsAWriteByTheThreadBefore) {
  EXPECT_DEATH(
      {
        Shared<int> value(1);
        auto family = create(
            {.limit = 4},
            [](Index i, SharedEnd<int>& s) {
              if (i == 2) s.read();
              if (i == 0) s.write(1);
            },
            value);
        family.sync();
      },
      "read: thread 2 reads a shared channel, and the thread before it ended without a write");
}

TEST_F(ChannelsDeathTest, AReadNeedsAWriteByTheParent) {
  EXPECT_DEATH(
      {
        Global<int> value;
        auto family = create([](Global<int>& v) { v.read(); }, value);
        family.sync();
      },
      "read: the parent synced without a write to this global channel");
  EXPECT_DEATH(
      {
        Shared<int> value;
        auto family = create([](SharedEnd<int>& v) { v.read(); }, value);
        family.sync();
      },
      "read: the parent synced without a write to this shared channel");
}

TEST_F(ChannelsDeathTest, AReadNeedsAFamily) {
  EXPECT_DEATH(
      {
        Shared<int> value(1);
        value.read();
      },
      "read: the parent reads a shared channel that belongs to no family yet");
}

TEST_F(ChannelsDeathTest, TheParentsReadNeedsAWriteByTheLast) {
  EXPECT_DEATH(
      {
        Shared<int> value(1);
        auto family = create(
            {.limit = 3}, [](SharedEnd<int>&) {}, value);
        family.sync();
        value.read();
      },
      "read: the last thread ended without a write to this shared channel");
}

TEST_F(ChannelsDeathTest, AWriteComesBeforeTheSync) {
  EXPECT_DEATH(
      {
        Global<int> value;
        auto family = create([](Global<int>&) {}, value);
        family.sync();
        value.write(1);
      },
      "or its family was synced");
}

// Also if that has been synced: the second one would read the values of the first.
TEST_F(ChannelsDeathTest, BelongToOneFamily) {
  EXPECT_DEATH(
      {
        Global<int> value(1);
        create([](Global<int>& v) { v.read(); }, value).sync();
        create([](Global<int>& v) { v.read(); }, value).sync();
      },
      "create: a channel that belongs to another family");
  EXPECT_DEATH(
      {
        Shared<int> value(1);
        create(
            {.limit = 2}, [](SharedEnd<int>&) {}, value)
            .sync();
        create(
            {.limit = 2}, [](SharedEnd<int>&) {}, value)
            .sync();
      },
      "create: a channel that belongs to another family");
}

class Listening final : public ChannelListener {
 public:
  void channel_changed() noexcept override { ++told; }
  std::atomic<int> told{0};
};

TEST(ChannelListeners, AreToldOfValuesAndEnds) {
  for (const bool written : {true, false}) {
    Listening listener;
    Global<int> value;
    EXPECT_TRUE(value.parent_channel().listen(listener));
    EXPECT_EQ(value.parent_value(), nullptr);
    if (written)
      value.write(5);
    else
      value.close_parent();
    EXPECT_EQ(listener.told, 1);
    value.close_parent();
    EXPECT_EQ(listener.told, 1);
    EXPECT_EQ(value.parent_value() != nullptr, written);
    EXPECT_TRUE(value.parent_channel().settled());
  }
}

TEST(ChannelListeners, AreOneForEachChannelAndEnd) {
  Listening listener;
  Listening other;
  Shared<int> value;
  EXPECT_TRUE(value.parent_channel().listen(listener));
  EXPECT_TRUE(value.last_channel().listen(listener));
  EXPECT_FALSE(value.parent_channel().listen(other));
  value.parent_channel().ignore();
  value.write(1);
  EXPECT_EQ(listener.told + other.told, 0);
  EXPECT_TRUE(value.parent_channel().listen(other));
  value.bring_last(7);
  EXPECT_EQ(listener.told, 1);
  EXPECT_EQ(value.read(), 7);
  value.bring_last(8);
  EXPECT_EQ(value.read(), 7);
}

TEST(ChannelListeners, AreToldOfThreadsThatBlock) {
  Listening listener;
  Shared<int> value;
  value.hand_over();
  EXPECT_TRUE(value.last_channel().listen(listener));
  EXPECT_FALSE(value.last_channel().awaited());
  std::thread reader([&] { EXPECT_EQ(value.read(), 3); });
  while (listener.told == 0) std::this_thread::yield();
  EXPECT_TRUE(value.last_channel().awaited());
  EXPECT_FALSE(value.last_channel().settled());
  value.bring_last(3);
  reader.join();
  EXPECT_EQ(listener.told, 2);
  EXPECT_FALSE(value.last_channel().awaited());
}

}  // namespace
}  // namespace tombolo::svp
