// SPDX-License-Identifier: Apache-2.0
// A change of a lookup table counts once the core has waited for its writes, for loads as for
// stores.
#include <gtest/gtest.h>

#include "backends/scc/cpu.h"

namespace tombolo::scc {
namespace {

class LookupTableTest : public ::testing::TestWithParam<const char*> {
 protected:
  LookupTableTest() : chip(parameters()) {}
  static Parameters parameters() {
    Parameters p;
    EXPECT_TRUE(find_parameters(GetParam(), &p).ok());
    return p;
  }

  // Lets an entry of `cpu` lead to page `n` of core 5's public ones, and waits for that.
  View map(Cpu& cpu, std::uint32_t n, MemoryType type) {
    cpu.set_lut(cpu.id(), chip.first_free_entry(), chip.public_page(CoreId(5), n));
    cpu.wait_for_writes();
    return {chip.page(chip.first_free_entry()), type};
  }

  Chip chip;
};

TEST_P(LookupTableTest, TheFirstAccessAfterTheWaitMayBeALoad) {
  const std::uint32_t values[] = {11, 22};
  const std::uint64_t page = chip.page_bytes();
  chip.poke(CoreId(5), chip.public_memory(), &values[0], sizeof values[0]);
  chip.poke(CoreId(5), chip.public_memory() + page, &values[1], sizeof values[1]);
  std::uint32_t seen[2] = {};
  chip.start(CoreId(0), [&](Cpu& cpu) {
    for (std::uint32_t n = 0; n < 2; ++n)
      seen[n] = cpu.load<std::uint32_t>(map(cpu, n, MemoryType::ncm));
  });
  ASSERT_TRUE(chip.run().status.ok());
  EXPECT_EQ(seen[0], 11);
  EXPECT_EQ(seen[1], 22);
}

TEST_P(LookupTableTest, OrAStore) {
  chip.start(CoreId(0), [&](Cpu& cpu) {
    for (std::uint32_t n = 0; n < 2; ++n)
      cpu.store<std::uint32_t>(map(cpu, n, MemoryType::ncm), 7 + n);
  });
  ASSERT_TRUE(chip.run().status.ok());
  for (std::uint32_t n = 0; n < 2; ++n) {
    std::uint32_t value = 0;
    chip.peek(CoreId(5), chip.public_memory() + n * chip.page_bytes(), &value, sizeof value);
    EXPECT_EQ(value, 7 + n);
  }
}

// 000 section 2.2.2: caches stand before the lookup table.
TEST_P(LookupTableTest, CachedLinesStayAndAreStale) {
  const std::uint32_t values[] = {11, 22};
  chip.poke(CoreId(5), chip.public_memory(), &values[0], sizeof values[0]);
  chip.poke(CoreId(5), chip.public_memory() + chip.page_bytes(), &values[1], sizeof values[1]);
  std::uint32_t seen = 0;
  chip.start(CoreId(0), [&](Cpu& cpu) {
    cpu.load<std::uint32_t>(map(cpu, 0, MemoryType::dcm));
    seen = cpu.load<std::uint32_t>(map(cpu, 1, MemoryType::dcm));
  });
  ASSERT_TRUE(chip.run().status.ok());
  EXPECT_EQ(seen, 11);
}

INSTANTIATE_TEST_SUITE_P(Chips, LookupTableTest, ::testing::Values("scc", "scc-repaired"),
                         [](const auto& chip) { return chip.index == 0 ? "plain" : "repaired"; });

}  // namespace
}  // namespace tombolo::scc
