// SPDX-License-Identifier: Apache-2.0
// The write-combining buffer, by itself and against a memory that is written directly.
#include "simulator/parts/write_combining_buffer.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"

namespace tombolo::simulator {
namespace {

constexpr LineSize line_size{32};

TEST(WriteCombiningBuffer, CombinesWritesToOneLineAndLetsItGoForAnother) {
  WriteCombiningBuffer buffer(line_size);
  const std::uint32_t value = 0x01020304;
  EXPECT_FALSE(buffer.drain().has_value());
  EXPECT_FALSE(buffer.write(Address(4), &value, 4).has_value());
  EXPECT_FALSE(buffer.write(Address(8), &value, 4).has_value());
  EXPECT_TRUE(buffer.holds(Line(0)));
  const auto out = buffer.write(Address(64), &value, 4);
  ASSERT_TRUE(out.has_value());
  EXPECT_EQ(out->line, Line(0));
  EXPECT_EQ(out->mask, 0xff0u);
  EXPECT_EQ(buffer.line(), Line(2));
}

TEST(WriteCombiningBuffer, IsFullWhenEveryByteOfTheLineWasWritten) {
  for (const std::size_t bytes : {16u, 32u, 64u}) {
    WriteCombiningBuffer buffer{LineSize(bytes)};
    const std::uint64_t value = 1;
    for (std::size_t at = 0; at < bytes; at += 8) {
      EXPECT_FALSE(buffer.full());
      buffer.write(Address(at), &value, 8);
    }
    EXPECT_TRUE(buffer.full());
    buffer.drain();
    EXPECT_TRUE(buffer.empty());
  }
}

TEST(WriteCombiningBuffer, B1MemoryIsAsIfItWereWrittenDirectly) {
  Random random(11);
  std::vector<std::byte> direct(256);
  std::vector<std::byte> combined(256);
  WriteCombiningBuffer buffer(line_size);
  const auto leave = [&](const std::optional<CombinedLine>& out) {
    if (!out) return;
    for (std::size_t i = 0; i < line_size.bytes(); ++i) {
      if ((out->mask >> i & 1) != 0)
        combined[line_size.first(out->line).byte() + i] = out->bytes[i];
    }
  };
  for (int step = 0; step < 20000; ++step) {
    const std::size_t bytes = 1 + random.below(8);
    const Address to(random.below(direct.size() - bytes));
    if (!line_size.within_one(to, bytes)) continue;
    const std::uint64_t value = random.next();
    std::memcpy(direct.data() + to.byte(), &value, bytes);
    leave(buffer.write(to, &value, bytes));
    if (buffer.full() || random.one_in(10)) leave(buffer.drain());
    if (buffer.empty()) {
      ASSERT_EQ(direct, combined);
    }
  }
}

TEST(WriteCombiningBufferDeathTest, AWriteAcrossLinesIsAMistake) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  WriteCombiningBuffer buffer(line_size);
  const std::uint64_t value = 0;
  EXPECT_DEATH(buffer.write(Address(28), &value, 8), "not in one line of 32 bytes");
}

}  // namespace
}  // namespace tombolo::simulator
