// SPDX-License-Identifier: Apache-2.0
// The parts' and the cores' statistics: against counts and times that are known beforehand.
#include "backends/scc/usage.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tombolo::scc {
namespace {

constexpr int accesses = 50;

class UsageTest : public ::testing::Test {
 protected:
  UsageTest() { EXPECT_TRUE(find_parameters("scc", &parameters_).ok()); }

  // One use of a kind at a tile, or none.
  static const PartUse* find(const std::vector<PartUse>& all, Part part, Tile tile,
                             std::uint32_t number) {
    const auto found = std::find_if(all.begin(), all.end(), [&](const PartUse& use) {
      return use.part == part && use.tile == tile && use.number == number;
    });
    return found == all.end() ? nullptr : &*found;
  }

  Parameters parameters_{};
};

TEST_F(UsageTest, AnIdleChipHasNone) {
  Chip chip(parameters_);
  EXPECT_TRUE(chip.run().status.ok());
  EXPECT_TRUE(parts_of(chip).empty());
  EXPECT_TRUE(cores_of(chip).empty());
}

TEST_F(UsageTest, ALoneCoreWaitsForItsTripsAndForNothingElse) {
  Chip chip(parameters_);
  Duration loads;
  chip.start(CoreId(2), [&](Cpu& cpu) {  // tile (1, 0): a hop from controller 0
    const Time begin = cpu.now();
    for (int i = 0; i < accesses; ++i) cpu.load<std::uint32_t>({chip.shared(0), MemoryType::ncm});
    loads = cpu.now() - begin;
  });
  EXPECT_TRUE(chip.run().status.ok());
  const std::vector<PartUse> parts = parts_of(chip);
  const PartUse* const there = find(parts, Part::link, {1, 0}, 1);  // west
  const PartUse* const back = find(parts, Part::link, {0, 0}, 0);   // east
  const PartUse* const bank = find(parts, Part::bank, {0, 0}, 0);
  const PartUse* const controller = find(parts, Part::controller, {0, 0}, 0);
  const PartUse* const interface = find(parts, Part::interface, {1, 0}, 0);
  for (const PartUse* use : {there, back, bank, controller, interface}) {
    ASSERT_NE(use, nullptr);
    EXPECT_EQ(use->served, static_cast<std::uint64_t>(accesses)) << name_of(use->part);
    EXPECT_EQ(use->waited, Duration()) << name_of(use->part);
  }
  EXPECT_EQ(parts.size(), 5u);
  EXPECT_EQ(bank->busy, chip.timing().bank_busy * accesses);
  EXPECT_EQ(controller->busy, chip.timing().dram.busy * accesses);
  const std::vector<CoreUse> cores = cores_of(chip);
  ASSERT_EQ(cores.size(), 1u);
  EXPECT_EQ(cores[0].core, CoreId(2));
  EXPECT_EQ(cores[0].counters.reading, loads - chip.timing().load * accesses);
  EXPECT_EQ(cores[0].counters.writing, Duration());
}

TEST_F(UsageTest, CoresThatShareABankWaitThere) {
  Chip chip(parameters_);
  for (const std::uint32_t core : {0u, 1u, 2u, 3u, 12u, 13u})
    chip.start(CoreId(core), [&](Cpu& cpu) {
      for (int i = 0; i < accesses; ++i) cpu.load<std::uint32_t>({chip.shared(0), MemoryType::ncm});
    });
  EXPECT_TRUE(chip.run().status.ok());
  const std::vector<PartUse> parts = parts_of(chip);
  const PartUse* const controller = find(parts, Part::controller, {0, 0}, 0);
  const PartUse* const bank = find(parts, Part::bank, {0, 0}, 0);
  ASSERT_TRUE(controller != nullptr && bank != nullptr);
  EXPECT_GT(controller->waited, Duration());
  EXPECT_GT(bank->waited, Duration());
  EXPECT_LE(bank->waited, controller->waited);
}

TEST_F(UsageTest, TimeForStoresAndRegistersIsToldApart) {
  Chip chip(parameters_);
  Duration stores;
  Duration tests;
  chip.start(CoreId(0), [&](Cpu& cpu) {
    const auto time_of = [&cpu](auto&& act) {
      const Time begin = cpu.now();
      for (int i = 0; i < accesses; ++i) act();
      cpu.wait_for_writes();
      return cpu.now() - begin;
    };
    stores = time_of([&] { cpu.store<std::uint32_t>({chip.shared(0), MemoryType::ncm}, 1); });
    tests = time_of([&] { cpu.test_and_set(CoreId(10)); });
  });
  EXPECT_TRUE(chip.run().status.ok());
  const Counters counters = cores_of(chip).at(0).counters;
  EXPECT_EQ(counters.tests, static_cast<std::uint64_t>(accesses));
  EXPECT_EQ(counters.tests_failed, static_cast<std::uint64_t>(accesses - 1));
  EXPECT_EQ(counters.testing, tests - chip.timing().load * accesses);
  EXPECT_EQ(counters.reading, Duration());
  const std::vector<PartUse> parts = parts_of(chip);
  const PartUse* const registers = find(parts, Part::registers, {5, 0}, 0);  // of core 10
  const PartUse* const interface = find(parts, Part::interface, {5, 0}, 0);
  ASSERT_TRUE(registers != nullptr && interface != nullptr);
  EXPECT_EQ(registers->served, static_cast<std::uint64_t>(accesses));
  EXPECT_EQ(registers->busy, chip.timing().registers.busy * accesses);
  EXPECT_EQ(registers->busy, interface->busy);  // nothing else of that tile
  EXPECT_EQ(registers->waited, Duration());
  // The first of the cycles of each store falls into the wait for the one before.
  EXPECT_GE(counters.writing + chip.timing().store * accesses, stores);
  EXPECT_LE(counters.writing, stores);
}

TEST_F(UsageTest, RegistersAreToldApartFromEachOtherAndFromTheRestOfTheirInterface) {
  Chip chip(parameters_);
  for (const std::uint32_t core : {0u, 4u, 6u})  // core 0 reads its own tile's and memory
    chip.start(CoreId(core), [&, core](Cpu& cpu) {
      for (int i = 0; i < accesses; ++i) {
        cpu.test_and_set(CoreId(core == 6 ? 1 : 0));
        if (core == 0) cpu.load<std::uint32_t>({chip.shared(1), MemoryType::ncm});
      }
      cpu.clear(CoreId(0));
    });
  EXPECT_TRUE(chip.run().status.ok());
  const std::vector<PartUse> parts = parts_of(chip);
  const PartUse* const first = find(parts, Part::registers, {0, 0}, 0);
  const PartUse* const second = find(parts, Part::registers, {0, 0}, 1);
  const PartUse* const interface = find(parts, Part::interface, {0, 0}, 0);
  ASSERT_TRUE(first != nullptr && second != nullptr && interface != nullptr);
  EXPECT_EQ(first->served, 2u * accesses + 3);
  EXPECT_EQ(second->served, static_cast<std::uint64_t>(accesses));
  EXPECT_EQ(interface->served, first->served + second->served + accesses);
  EXPECT_GT(first->waited, Duration());
  EXPECT_GE(interface->waited, first->waited + second->waited);
  EXPECT_EQ(std::count_if(parts.begin(), parts.end(),
                          [](const PartUse& use) { return use.part == Part::registers; }),
            2);
}

}  // namespace
}  // namespace tombolo::scc
