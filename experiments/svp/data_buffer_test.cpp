// SPDX-License-Identifier: Apache-2.0
// The gathering buffer: bytes go through gather, encode, decode and scatter unchanged, numbers are
// in the order of XDR between, and each element costs its calls.
#include "experiments/svp/data_buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "experiments/common/testing.h"

namespace tombolo::experiments {
namespace {

using scc::View;
using simulator::Address;
using simulator::CoreId;
using simulator::Duration;

class DataBufferTest : public ::testing::Test {
 protected:
  template <class Program>
  void alone(Program&& program) {
    scc::Chip chip(context_.chip);
    Linux system(chip, CoreId(0), {});
    system.start([&] {
      program(system);
      system.stop(system.cpu());
    });
    const simulator::RunResult result = chip.run();
    EXPECT_TRUE(result.status.ok()) << result.status.message();
  }
  static View memory(Linux& system, std::uint64_t bytes) {
    Address at;
    EXPECT_TRUE(system.allocate(bytes, &at).ok());
    return {at};
  }
  static std::byte byte_of(std::uint64_t i, unsigned key) {
    return static_cast<std::byte>((i * 37 + key * 11 + 1) & 0xff);
  }
  static void fill(Linux& system, View at, std::uint64_t bytes, unsigned key) {
    for (std::uint64_t i = 0; i < bytes; ++i) system.cpu().store(at + i, byte_of(i, key));
  }
  static std::uint64_t wrong(Linux& system, View at, std::uint64_t bytes, unsigned key) {
    std::uint64_t count = 0;
    for (std::uint64_t i = 0; i < bytes; ++i)
      if (system.cpu().load<std::byte>(at + i) != byte_of(i, key)) ++count;
    return count;
  }
  static Duration time_of(Linux& system, const std::function<void()>& act) {
    const simulator::Time begin = system.now();
    act();
    return system.now() - begin;
  }
  Context context_ = test_context();
};

// The second run crosses the parts in which bytes are moved.
TEST_F(DataBufferTest, BringsRunsThroughBothSides) {
  alone([&](Linux& system) {
    const experiments::Run small{5, 4};
    const experiments::Run large{700, 8};
    const View a = memory(system, small.bytes());
    const View b = memory(system, large.bytes());
    fill(system, a, small.bytes(), 1);
    fill(system, b, large.bytes(), 2);
    DataBuffer out(system);
    ASSERT_TRUE(out.gather(a, small).ok());
    ASSERT_TRUE(out.gather(b, large).ok());
    EXPECT_EQ(out.bytes(), small.bytes() + large.bytes());
    ASSERT_EQ(out.runs().size(), 2u);
    const View wire = memory(system, out.bytes());
    out.encode(wire);
    DataBuffer in(system);
    ASSERT_TRUE(in.decode(wire, out.runs()).ok());
    const View to_a = memory(system, small.bytes());
    const View to_b = memory(system, large.bytes());
    in.scatter(to_a, small);
    in.scatter(to_b, large);
    EXPECT_EQ(wrong(system, to_a, small.bytes(), 1), 0u);
    EXPECT_EQ(wrong(system, to_b, large.bytes(), 2), 0u);
  });
}

TEST_F(DataBufferTest, NumbersAreBigEndianOnTheWire) {
  alone([&](Linux& system) {
    const View from = memory(system, 12);
    system.cpu().store<std::uint64_t>(from, 0x0102030405060708u);
    system.cpu().store<std::uint32_t>(from + 8, 0x0a0b0c0du);
    DataBuffer buffer(system);
    ASSERT_TRUE(buffer.gather(from, {1, 8}).ok());
    ASSERT_TRUE(buffer.gather(from + 8, {1, 4}).ok());
    const View wire = memory(system, 12);
    buffer.encode(wire);
    const std::uint8_t expected[] = {1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13};
    for (std::uint64_t i = 0; i < 12; ++i)
      EXPECT_EQ(system.cpu().load<std::uint8_t>(wire + i), expected[i]) << i;
  });
}

TEST_F(DataBufferTest, GrowsByDoublingAndKeepsWhatItHas) {
  alone([&](Linux& system) {
    const std::uint64_t before = system.heap().bytes_used();
    const View from = memory(system, 8);
    DataBuffer buffer(system);
    std::uint64_t largest = 0;
    for (std::uint64_t i = 0; i < 40; ++i) {
      system.cpu().store<std::uint64_t>(from, i + 1);
      ASSERT_TRUE(buffer.gather(from, {1, 8}).ok());
      const std::uint64_t used = system.heap().bytes_used() - before;
      EXPECT_GE(used, buffer.bytes());
      largest = std::max(largest, used);
    }
    // 320 bytes in a block of 512, beside the number that is gathered.
    EXPECT_EQ(largest, 512u + 32u);
    for (std::uint64_t i = 0; i < 40; ++i) {
      buffer.scatter(from, {1, 8});
      EXPECT_EQ(system.cpu().load<std::uint64_t>(from), i + 1);
    }
    buffer.clear();
    EXPECT_EQ(buffer.bytes(), 0u);
    EXPECT_EQ(system.heap().bytes_used() - before, 32u);
  });
}

TEST_F(DataBufferTest, ReservedMemoryIsNotMoved) {
  alone([&](Linux& system) {
    const View from = memory(system, 1024);
    DataBuffer buffer(system);
    ASSERT_TRUE(buffer.reserve(4096).ok());
    const std::uint64_t used = system.heap().bytes_used();
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(buffer.gather(from, {128, 8}).ok());
    EXPECT_EQ(system.heap().bytes_used(), used);
  });
}

TEST_F(DataBufferTest, SaysThatThereIsNoMemory) {
  alone([&](Linux& system) {
    DataBuffer buffer(system);
    EXPECT_EQ(buffer.reserve(system.heap().bytes_free() + 1).code(), Code::no_memory);
    EXPECT_TRUE(buffer.reserve(64).ok());
  });
}

// So much as many calls more take, for each element more; and encoding by words beside.
TEST_F(DataBufferTest, EachElementCostsItsCalls) {
  alone([&](Linux& system) {
    const auto gather = [&](const experiments::Run& run) {
      const View from = memory(system, 1024);
      fill(system, from, 1024, 3);
      DataBuffer buffer(system);
      EXPECT_TRUE(buffer.reserve(1024).ok());
      return time_of(system, [&] { EXPECT_TRUE(buffer.gather(from, run).ok()); });
    };
    const auto halves = [&](std::int64_t n) { return system.cpu().timing().cycles({n}); };
    const Duration by_words = gather({128, 4});
    const Duration by_doubles = gather({64, 8});
    // The same bytes in twice as many elements.
    const Duration calls = halves(system.svp().gather_element.halves * 64);
    EXPECT_GE((by_words - by_doubles) * 10, calls * 9);
    EXPECT_LE((by_words - by_doubles) * 10, calls * 11);
  });
}

TEST_F(DataBufferTest, CopiesMemoryOfAnySize) {
  alone([&](Linux& system) {
    for (const std::uint64_t bytes : {0u, 1u, 31u, 1024u, 1025u, 3000u}) {
      const View from = memory(system, 3072);
      const View to = memory(system, 3072);
      fill(system, from, 3072, 4);
      fill(system, to, 3072, 5);
      copy_memory(system, from, to, bytes);
      EXPECT_EQ(wrong(system, to, bytes, 4), 0u) << bytes;
      EXPECT_EQ(system.cpu().load<std::byte>(to + bytes), byte_of(bytes, 5)) << bytes;
    }
  });
}

}  // namespace
}  // namespace tombolo::experiments
