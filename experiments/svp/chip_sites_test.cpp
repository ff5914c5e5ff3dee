// SPDX-License-Identifier: Apache-2.0
// Purpose: Tombolo's protocol of remote families on simulated cores: a multiplication and a tree
// search have the results that they have on this host's threads, with each way for data to
// travel; publish at create and refresh at sync are needed; the sequence of 002 section 5.2.2.
#include "experiments/svp/chip_sites.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "examples/svp/kernels.h"
#include "experiments/common/measure.h"
#include "experiments/common/testing.h"
#include "svp/svp.h"

namespace tombolo::experiments {
namespace {

using svp::Carriage;
using svp::Index;

constexpr std::uint32_t sites = 5;  // a creator and four others
constexpr std::size_t size = 24;
constexpr std::size_t rows = size / (sites - 1);  // of each

using Multiply = svp::Remote<&kernels::multiply_row>;
using Search = svp::Remote<&kernels::count_nodes>;

std::vector<double> numbers(std::size_t count, int factor) {
  std::vector<double> values;
  for (std::size_t i = 0; i < count; ++i)
    values.push_back(static_cast<double>(i * static_cast<std::size_t>(factor) % 17));
  return values;
}

// By this host's threads.
std::vector<double> local_product(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> c(size * size);
  svp::create({.limit = static_cast<Index>(size)}, [&](Index i) {
    kernels::multiply_row(i, {a}, {b}, {c}, std::uint64_t{size});
  }).sync();
  return c;
}

class ChipSitesTest : public ::testing::TestWithParam<Carriage> {
 protected:
  void run(const std::function<void(ChipSite&)>& creator, ChipReach::Care care = {}) {
    const Context context = test_context();
    simulator::Options options = options_of(context);
    options.time_limit = simulator::Time::after_start(simulator::Duration::seconds(5));
    scc::Chip chip(context.chip, options);
    ChipSites all(chip, sites, care);
    const simulator::RunResult result = all.run(creator);
    EXPECT_TRUE(result.status.ok()) << result.status.message();
  }
  // Values in the memory of the creator's core, through its caches.
  static std::span<double> on_chip(ChipSite& here, const std::vector<double>& values) {
    std::byte* const at = here.memory().allocate(here.cpu(), values.size() * sizeof(double));
    std::span<double> span(reinterpret_cast<double*>(at), values.size());
    here.memory().load(here.cpu(), at, span.size_bytes());  // so that the stores stay in a cache
    std::memcpy(at, values.data(), span.size_bytes());
    here.memory().stored(here.cpu(), at, span.size_bytes());
    return span;
  }
  std::vector<double> product(const std::vector<double>& a, const std::vector<double>& b,
                              Carriage carriage, ChipReach::Care care = {}) {
    std::vector<double> result;
    run(
        [&](ChipSite& here) {
          const std::span<double> on_a = on_chip(here, a);
          const std::span<double> on_b = on_chip(here, b);
          const std::span<double> on_c = on_chip(here, std::vector<double>(a.size(), -1.0));
          std::vector<std::unique_ptr<FamilyOf<Multiply>>> families;
          for (std::uint32_t n = 0; n < sites - 1; ++n) {
            const std::size_t first = n * rows * size;
            families.push_back(std::make_unique<FamilyOf<Multiply>>(
                here, n + 1, Multiply(), svp::Range{.limit = static_cast<Index>(rows)}, carriage,
                std::span<const double>(on_a.subspan(first, rows * size)),
                std::span<const double>(on_b), on_c.subspan(first, rows * size),
                std::uint64_t{size}));
          }
          for (const auto& family : families) {
            const svp::Completion& completion = family->sync();
            EXPECT_EQ(completion.reason, svp::ExitReason::done) << completion.text;
          }
          result.assign(on_c.begin(), on_c.end());
        },
        care);
    return result;
  }
};

INSTANTIATE_TEST_SUITE_P(Carriages, ChipSitesTest,
                         ::testing::Values(Carriage::stream, Carriage::direct, Carriage::buffer,
                                           Carriage::remap, Carriage::best),
                         [](const auto& carriage) {
                           return std::string(
                               svp::carriage_names[static_cast<std::size_t>(carriage.param)]);
                         });

TEST_P(ChipSitesTest, AMultiplicationHasItsLocalResult) {
  const std::vector<double> a = numbers(size * size, 7);
  const std::vector<double> b = numbers(size * size, 5);
  EXPECT_EQ(product(a, b, GetParam()), local_product(a, b));
}

TEST_P(ChipSitesTest, ATreeSearchHasItsLocalResult) {
  constexpr std::uint64_t root = 2;
  constexpr Index share = 25;  // children of the root, of each site
  std::vector<std::uint64_t> expected(share * (sites - 1));
  svp::create({.limit = static_cast<Index>(expected.size())}, [&](Index i) {
    kernels::count_nodes(i, root, {expected});
  }).sync();
  std::vector<std::vector<std::uint64_t>> found(sites - 1,
                                                std::vector<std::uint64_t>(expected.size()));
  run([&](ChipSite& here) {
    std::vector<std::unique_ptr<FamilyOf<Search>>> families;
    for (std::uint32_t n = 0; n < sites - 1; ++n)
      families.push_back(std::make_unique<FamilyOf<Search>>(
          here, n + 1, Search(), svp::Range{.start = n * share, .limit = (n + 1) * share},
          GetParam(), root, std::span(found[n])));
    for (const auto& family : families) family->sync();
  });
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_EQ(found[i / share][i], expected[i]) << i;
}

TEST_F(ChipSitesTest, WithoutPublishAtCreateOperandsAreStale) {
  const std::vector<double> a = numbers(size * size, 7);
  const std::vector<double> b = numbers(size * size, 5);
  EXPECT_NE(product(a, b, Carriage::remap, {.publish = false}), local_product(a, b));
}

void add_one(svp::InOutArray<std::uint32_t> values) {
  for (std::uint32_t& value : values) ++value;
}
using AddOne = svp::Remote<&add_one>;

// The creator reads the array while the family has it, which leaves lines of it in its caches.
std::uint32_t sum_after_a_look(ChipSite& here) {
  constexpr std::size_t count = 512;
  std::byte* const at = here.memory().allocate(here.cpu(), count * sizeof(std::uint32_t));
  std::span<std::uint32_t> values(reinterpret_cast<std::uint32_t*>(at), count);
  std::fill(values.begin(), values.end(), 0u);
  here.memory().stored(here.cpu(), at, values.size_bytes());
  FamilyOf<AddOne> family(here, 1, AddOne(), svp::Range{}, Carriage::remap, values);
  here.memory().load(here.cpu(), at, values.size_bytes());
  family.sync();
  std::uint32_t sum = 0;
  for (const std::uint32_t value : values) sum += value;
  return sum;
}

TEST_F(ChipSitesTest, WithoutRefreshAtSyncOutputIsStale) {
  std::uint32_t whole = 0;
  std::uint32_t broken = 0;
  run([&](ChipSite& here) { whole = sum_after_a_look(here); });
  run([&](ChipSite& here) { broken = sum_after_a_look(here); }, {.refresh = false});
  EXPECT_EQ(whole, 512u);
  EXPECT_LT(broken, 512u);
}

// Of two families at one place the first ends first and is synced last.
TEST_F(ChipSitesTest, FamiliesAreSyncedInEitherOrder) {
  std::vector<std::uint32_t> one(10, 1);
  std::vector<std::uint32_t> other(5000, 1);
  run([&](ChipSite& here) {
    FamilyOf<AddOne> first(here, 1, AddOne(), svp::Range{}, Carriage::buffer, std::span(one));
    FamilyOf<AddOne> second(here, 1, AddOne(), svp::Range{}, Carriage::buffer, std::span(other));
    second.sync();
    first.sync();
  });
  EXPECT_EQ(one, std::vector<std::uint32_t>(10, 2));
  EXPECT_EQ(other, std::vector<std::uint32_t>(5000, 2));
}

TEST_F(ChipSitesTest, MemoryThatIsNotTheCreatorsIsRefused) {
  const Context context = test_context();
  scc::Chip chip(context.chip);
  ChipMemory memory;
  std::byte* const owned = memory.allocate(chip.cpu(simulator::CoreId(3)), 64);
  ChipReach reach(chip.cpu(simulator::CoreId(0)), memory);
  EXPECT_EQ(reach.map(2, reinterpret_cast<std::uint64_t>(owned), 64), nullptr);
  int local = 0;
  EXPECT_FALSE(reach.can_show(2, &local, sizeof local));
  EXPECT_FALSE(reach.can_show(2, owned, 65));
}

}  // namespace
}  // namespace tombolo::experiments
