// SPDX-License-Identifier: Apache-2.0
// Cores that use one memory controller all the time.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "backends/scc/cpu.h"

namespace tombolo::scc {
namespace {

Parameters chip_parameters() {
  Parameters parameters{};
  const Status status = find_parameters("scc", &parameters);
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
  constexpr int kAccesses = 1000;
  std::vector<double> each(cores.size());
  bool over = false;
  for (std::size_t n = 0; n < cores.size(); ++n)
    chip.start(cores[n], [&, n, writes = n < writers](Cpu& cpu) {
      const View own{chip.shared(0) + n * stride, MemoryType::ncm};
      int done = 0;
      for (; done < kAccesses && !over; ++done) {
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

TEST(Contention, ARankServesOneRequestAfterTheOther) {
  const Parameters parameters = chip_parameters();
  Chip chip(parameters);
  const std::vector<CoreId> cores = domain(chip);
  const std::vector<double> each = accesses(chip, cores, 0, 256);
  const double busy = chip.timing().rank_busy.in_nanoseconds();
  for (const double time : each) EXPECT_NEAR(time, 12 * busy, 12 * busy * 0.05);
}

TEST(Contention, RanksServeSideBySide) {
  const Parameters parameters = chip_parameters();
  Chip chip(parameters);
  const std::vector<CoreId> cores = domain(chip);
  const auto ranks = static_cast<std::uint64_t>(parameters.layout.ranks_per_controller);
  const std::uint64_t rank_bytes =
      (static_cast<std::uint64_t>(parameters.layout.controller_megabytes) << 20) / ranks;
  for (std::uint32_t n = 0; n < cores.size(); ++n)  // the pages of legacy memory, one in each rank
    chip.set_lut(cores[n], static_cast<std::uint32_t>(parameters.layout.shared_lut_entry),
                 {DeviceKind::dram, 0, n % ranks * rank_bytes});
  for (const double time : accesses(chip, cores, 0, 256))
    EXPECT_LT(time, 12 * chip.timing().rank_busy.in_nanoseconds() * 0.8);
}

}  // namespace
}  // namespace tombolo::scc
