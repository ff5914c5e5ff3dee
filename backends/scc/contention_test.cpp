// SPDX-License-Identifier: Apache-2.0
// Cores that use one memory controller, or one register, all the time.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "backends/scc/cpu.h"

namespace tombolo::scc {
namespace {

Parameters chip_parameters(const char* name = "scc") {
  Parameters parameters{};
  const Status status = find_parameters(name, &parameters);
  EXPECT_TRUE(status.ok()) << status.message();
  return parameters;
}

// The cores of the first controller's domain.
std::vector<CoreId> domain(const Chip& chip) {
  std::vector<CoreId> cores;
  for (std::uint32_t core = 0; core < chip.cores(); ++core)
    if (chip.controller_of(CoreId(core)) == 0) cores.emplace_back(core);
  return cores;
}

// Nanoseconds for each access to own words at one controller, by core; the first `writers` of them
// store. All go on until the first is done, so that the load stays the same.
std::vector<double> accesses(Chip& chip, const std::vector<CoreId>& cores, std::size_t writers,
                             std::uint64_t stride) {
  constexpr int access_count = 1000;
  std::vector<double> each(cores.size());
  bool over = false;
  for (std::size_t n = 0; n < cores.size(); ++n)
    chip.start(cores[n], [&, n, writes = n < writers](Cpu& cpu) {
      const View own{chip.shared(0) + n * stride, MemoryType::ncm};
      int done = 0;
      for (; done < access_count && !over; ++done) {
        if (writes) {
          cpu.store<std::uint32_t>(own, 1);
        } else {
          cpu.load<std::uint32_t>(own);
        }
      }
      over = true;
      each[n] = cpu.now().since_start().in_nanoseconds() / done;
    });
  EXPECT_TRUE(chip.run().status.ok());
  return each;
}

TEST(Contention, AControllerServesReadsAndWritesAlike) {
  Chip chip(chip_parameters());
  const std::vector<CoreId> cores = domain(chip);
  ASSERT_EQ(cores.size(), 12u);
  const std::vector<double> each = accesses(chip, cores, 1, 256);
  const auto [least, most] = std::minmax_element(each.begin(), each.end());
  EXPECT_LT(*most, *least * 1.05);
}

TEST(Contention, ABankServesOneRequestAfterTheOther) {
  const Parameters parameters = chip_parameters();
  Chip chip(parameters);
  const std::vector<CoreId> cores = domain(chip);
  const std::vector<double> each = accesses(chip, cores, 0, 256);
  const double busy = chip.timing().bank_busy.in_nanoseconds();
  for (const double time : each) EXPECT_NEAR(time, 12 * busy, 12 * busy * 0.05);
}

// Lets the cores' pages of legacy memory lie in one bank after the other.
void spread_over_banks(Chip& chip, const std::vector<CoreId>& cores) {
  const Parameters& parameters = chip.parameters();
  const auto banks = static_cast<std::uint64_t>(parameters.layout.banks_per_controller);
  const std::uint64_t bank_bytes =
      (static_cast<std::uint64_t>(parameters.layout.controller_megabytes) << 20) / banks;
  for (std::uint32_t n = 0; n < cores.size(); ++n)  // the pages of legacy memory
    chip.set_lut(cores[n], static_cast<std::uint32_t>(parameters.layout.shared_lut_entry),
                 {DeviceKind::dram, 0, n % banks * bank_bytes});
}

TEST(Contention, BanksServeSideBySide) {
  Chip chip(chip_parameters());
  const std::vector<CoreId> cores = domain(chip);
  spread_over_banks(chip, cores);
  for (const double time : accesses(chip, cores, 0, 256))
    EXPECT_LT(time, 12 * chip.timing().bank_busy.in_nanoseconds() * 0.8);
}

TEST(Contention, ARequestForABusyBankHoldsUpThoseBehindIt) {
  Chip chip(chip_parameters());
  const std::vector<CoreId> cores = domain(chip);
  // The last one alone has memory in another bank.
  spread_over_banks(chip, {cores[0], cores.back()});
  const std::vector<double> each = accesses(chip, cores, 0, 256);
  const double busy = chip.timing().bank_busy.in_nanoseconds();
  EXPECT_NEAR(each.back(), 11 * busy, 11 * busy * 0.1);
}

// Requests are handed in when they leave, so that one may find those ahead of it that come later.
TEST(Contention, ARequestThatComesLateForItsBankDoesNotStall) {
  Chip chip(chip_parameters());
  const Target bank = chip.resolve(CoreId(0), chip.shared(0));
  Target other = bank;
  other.offset = (bank.offset + bank.device->memory->bytes() / 2) % bank.device->memory->bytes();
  const Duration controller_busy = bank.device->timing.busy;
  const Duration little = Duration::ticks(controller_busy.in_ticks() / 2);
  const Duration until_after = chip.timing().bank_busy + little;
  const auto load = [&chip](const Target& from, Duration start) {
    return chip.send(CoreId(0), from, Time() + start, 0, 4).effect;
  };
  const Time first = load(bank, Duration());
  const Time after = load(other, until_after);
  ASSERT_EQ(after, first + until_after);
  // It would have to wait for the first one's bank, and then too little is left before the one
  // after. When that is served the bank is no longer busy.
  EXPECT_EQ(load(bank, controller_busy), after + controller_busy);
}

TEST(Contention, AnotherModelOfMemoryTakesTheBanksPlace) {
  Parameters parameters = chip_parameters();
  parameters.layout.memory_model = MemoryKind::plain;
  Chip chip(parameters);
  const std::vector<CoreId> cores = domain(chip);
  const double busy = chip.timing().dram.busy.in_nanoseconds();
  ASSERT_LT(busy, chip.timing().bank_busy.in_nanoseconds());
  for (const double time : accesses(chip, cores, 6, 256))
    EXPECT_NEAR(time, 12 * busy, 12 * busy * 0.05);
  EXPECT_TRUE(chip.memory_unit(0).banks().empty());
}

TEST(Contention, LinesThatTakeTurnsOnTheBanksAreServedSideBySide) {
  const auto slowest = [](std::int64_t interleave) {
    Parameters parameters = chip_parameters();
    parameters.layout.bank_interleave_bytes = interleave;
    Chip chip(parameters);
    const std::vector<double> each = accesses(chip, domain(chip), 0, 32);
    return *std::max_element(each.begin(), each.end());
  };
  EXPECT_LT(slowest(32), slowest(0) * 0.8);
}

TEST(Contention, ABusTurnsBetweenWritesAndReads) {
  const auto slowest = [](const Parameters& parameters, std::size_t writers) {
    Chip chip(parameters);
    spread_over_banks(chip, domain(chip));
    const std::vector<double> each = accesses(chip, domain(chip), writers, 256);
    return *std::max_element(each.begin(), each.end());
  };
  const Parameters turns = chip_parameters();
  Parameters at_once = turns;
  at_once.path.write_to_read_memory_cycles = 0;
  at_once.path.read_to_write_memory_cycles = 0;
  EXPECT_GT(slowest(turns, 6), slowest(at_once, 6) * 1.1);
  EXPECT_NEAR(slowest(turns, 0), slowest(at_once, 0), 1);
}

// Nanoseconds for a store of core 0, while 40 others read the register of `owner`, which is taken.
double store_while_others_spin(CoreId owner) {
  constexpr int stores = 300;
  Chip chip(chip_parameters());
  bool over = false;
  double each = 0;
  chip.start(CoreId(0), [&](Cpu& cpu) {
    cpu.test_and_set(owner);
    cpu.compute_cycles(2000);  // the others have begun
    const Time begin = cpu.now();
    for (int i = 0; i < stores; ++i) cpu.store<std::uint32_t>({chip.shared(0), MemoryType::ncm}, 1);
    each = (cpu.now() - begin).in_nanoseconds() / stores;
    over = true;
  });
  for (std::uint32_t core = 8; core < chip.cores(); ++core)
    chip.start(CoreId(core), [&](Cpu& cpu) {
      cpu.compute_cycles(500);
      while (!over) cpu.test_and_set(owner);
    });
  EXPECT_TRUE(chip.run().status.ok());
  return each;
}

TEST(Contention, WhoSpinsOnARegisterSlowsDownItsTile) {
  const double alone = store_while_others_spin(CoreId(4));
  EXPECT_GT(store_while_others_spin(CoreId(0)), alone * 1.4);
  EXPECT_GT(store_while_others_spin(CoreId(1)), alone * 1.4);  // the other core of the tile
}

}  // namespace
}  // namespace tombolo::scc
