// SPDX-License-Identifier: Apache-2.0
// One instruction costs one: 8 aligned bytes as much as 4, wherever they lie.
#include <gtest/gtest.h>

#include "backends/scc/cpu.h"

namespace tombolo::scc {
namespace {

// Core cycles that a second load or store of the same bytes takes.
template <class T>
std::int64_t cycles(bool stores) {
  Parameters parameters;
  EXPECT_TRUE(find_parameters("scc", &parameters).ok());
  Chip chip(parameters);
  Duration took;
  chip.start(CoreId(0), [&](Cpu& cpu) {
    const View at{cpu.allocate_private(64), MemoryType::dcm};
    cpu.load<T>(at);
    const Time begin = cpu.now();
    if (stores) {
      cpu.store<T>(at, T{});
    } else {
      cpu.load<T>(at);
    }
    took = cpu.now() - begin;
  });
  EXPECT_TRUE(chip.run().status.ok());
  return took.in_ticks() / chip.timing().core.period().in_ticks();
}

TEST(Instructions, LoadsAndStoresOfEightBytesThatHitTakeOneCycle) {
  EXPECT_EQ(cycles<std::uint32_t>(false), 1);
  EXPECT_EQ(cycles<std::uint64_t>(false), 1);
  EXPECT_EQ(cycles<std::uint32_t>(true), 1);
  EXPECT_EQ(cycles<std::uint64_t>(true), 1);
}

TEST(Instructions, ALineTakesOneForEachWord) {
  struct Line {
    std::uint32_t words[2];
    std::uint64_t rest[3];
  };
  Parameters parameters;
  ASSERT_TRUE(find_parameters("scc", &parameters).ok());
  Chip chip(parameters);
  Duration took;
  chip.start(CoreId(0), [&](Cpu& cpu) {
    const View at{cpu.allocate_private(64), MemoryType::dcm};
    Line line{};
    cpu.read(at, &line, sizeof line);
    const Time begin = cpu.now();
    cpu.read(at, &line, sizeof line);
    took = cpu.now() - begin;
  });
  ASSERT_TRUE(chip.run().status.ok());
  EXPECT_EQ(took, chip.timing().load * 8);
}

// Requests that a store and then a load of 32 bytes at `offset` send.
std::pair<std::uint64_t, std::uint64_t> requests(MemoryType type, std::uint64_t offset) {
  Parameters parameters;
  EXPECT_TRUE(find_parameters("scc", &parameters).ok());
  Chip chip(parameters);
  std::pair<std::uint64_t, std::uint64_t> sent;
  chip.start(CoreId(0), [&](Cpu& cpu) {
    const View at{chip.shared(0) + offset, type};
    const std::byte line[32] = {};
    std::byte back[32];
    cpu.write(at, line, sizeof line);
    cpu.read(at, back, sizeof back);
    sent = {cpu.counters().requests_written, cpu.counters().requests_read};
  });
  EXPECT_TRUE(chip.run().status.ok());
  return sent;
}

TEST(Instructions, DoublewordsGoToUncachedMemory) {
  EXPECT_EQ(requests(MemoryType::ncm, 0), std::pair(4ul, 4ul));
  EXPECT_EQ(requests(MemoryType::ncm, 4), std::pair(5ul, 5ul));
  // Combined to a line; reads are uncached by the erratum.
  EXPECT_EQ(requests(MemoryType::mpbt_wt, 0), std::pair(1ul, 4ul));
}

TEST(Instructions, WordsGoAroundTheCachesThatMissThem) {
  EXPECT_EQ(requests(MemoryType::dcm, 0), std::pair(8ul, 1ul));
}

}  // namespace
}  // namespace tombolo::scc
