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

}  // namespace
}  // namespace tombolo::scc
