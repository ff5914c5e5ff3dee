// SPDX-License-Identifier: Apache-2.0
// Purpose: Tombolo's protocol of remote families on simulated cores: a multiplication and a tree
// search, written once for both, have the results that the examples of examples/svp/ have in
// processes of this host, with each way for data to travel; publish at create and refresh at sync
// are needed; the sequence of 002 section 5.2.2.
#include "experiments/svp/chip_sites.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <string>

#include "examples/svp/kernels.h"
#include "experiments/common/measure.h"
#include "experiments/common/testing.h"
#include "svp/svp.h"

namespace tombolo::experiments {
namespace {

using svp::Carriage;

constexpr std::uint32_t sites = 5;  // a creator and four others
constexpr std::uint64_t size = 24;
constexpr std::uint64_t children = 100;

std::vector<double> elements(double (*element)(std::size_t)) {
  std::vector<double> values;
  for (std::size_t i = 0; i < size * size; ++i) values.push_back(element(i));
  return values;
}

// The output of an example in processes of this host.
std::string said_by(const std::string& example) {
  std::FILE* const pipe = popen(example.c_str(), "r");
  std::array<char, 256> text{};
  const std::size_t bytes = pipe == nullptr ? 0 : std::fread(text.data(), 1, text.size(), pipe);
  EXPECT_TRUE(pipe != nullptr && pclose(pipe) == 0) << example;
  return {text.data(), bytes};
}

// A creator of kernels.h whose places are the other sites.
struct OnSites {
  ChipSite& here;
  Carriage carriage;

  template <class Function, class... Args>
  auto create(unsigned place, const svp::Range& range, const Function& function, Args&&... args) {
    return std::make_unique<FamilyOf<Function>>(here, place + 1, function, range, carriage,
                                                std::forward<Args>(args)...);
  }
  template <class Family>
  void sync(Family& family) {
    const svp::Completion& completion = family.sync();
    EXPECT_EQ(completion.reason, svp::ExitReason::done) << completion.text;
  }
};

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
  std::string digest_of_product(Carriage carriage, ChipReach::Care care = {}) {
    std::uint64_t digest = 0;
    run(
        [&](ChipSite& here) {
          const std::span<double> a = on_chip(here, elements(&kernels::left_element));
          const std::span<double> b = on_chip(here, elements(&kernels::right_element));
          const std::span<double> c = on_chip(here, std::vector<double>(size * size, -1.0));
          OnSites creator{here, carriage};
          kernels::multiply(creator, sites - 1, size, a, b, c);
          digest = kernels::digest_of(c);
        },
        care);
    return fmt::format("digest {:016x}", digest);
  }
};

INSTANTIATE_TEST_SUITE_P(Carriages, ChipSitesTest,
                         ::testing::Values(Carriage::stream, Carriage::direct, Carriage::buffer,
                                           Carriage::remap, Carriage::best),
                         [](const auto& carriage) {
                           return std::string(
                               svp::carriage_names[static_cast<std::size_t>(carriage.param)]);
                         });

TEST_P(ChipSitesTest, AMultiplicationHasTheResultOfTheExample) {
  const std::string said = said_by(fmt::format("'{}' {}", TOMBOLO_SVP_EXAMPLE_MATRIX, size));
  const std::string digest = digest_of_product(GetParam());
  EXPECT_NE(said.find(digest + ": right"), std::string::npos) << said << digest;
}

TEST_P(ChipSitesTest, ATreeSearchHasTheResultOfTheExample) {
  const std::string said = said_by(fmt::format("'{}' {}", TOMBOLO_SVP_EXAMPLE_TREE, children));
  std::uint64_t nodes = 0;
  run([&](ChipSite& here) {
    OnSites creator{here, GetParam()};
    nodes = kernels::search(creator, sites - 1, children);
  });
  EXPECT_NE(said.find(fmt::format(" {} nodes: right", nodes)), std::string::npos) << said << nodes;
}

TEST_F(ChipSitesTest, WithoutPublishAtCreateOperandsAreStale) {
  for (const Carriage carriage : {Carriage::remap, Carriage::direct})
    EXPECT_NE(digest_of_product(carriage, {.publish = false}), digest_of_product(carriage));
}

void add_one(svp::InOutArray<std::uint32_t> values) {
  for (std::uint32_t& value : values) ++value;
}
using AddOne = svp::Remote<&add_one>;

// The creator reads the array while the family has it, which leaves lines of it in its caches.
std::uint32_t sum_after_a_look(ChipSite& here, Carriage carriage) {
  constexpr std::size_t count = 512;
  std::byte* const at = here.memory().allocate(here.cpu(), count * sizeof(std::uint32_t));
  std::span<std::uint32_t> values(reinterpret_cast<std::uint32_t*>(at), count);
  std::fill(values.begin(), values.end(), 0u);
  here.memory().stored(here.cpu(), at, values.size_bytes());
  FamilyOf<AddOne> family(here, 1, AddOne(), svp::Range{}, carriage, values);
  here.memory().load(here.cpu(), at, values.size_bytes());
  family.sync();
  std::uint32_t sum = 0;
  for (const std::uint32_t value : values) sum += value;
  return sum;
}

TEST_F(ChipSitesTest, WithoutRefreshAtSyncOutputIsStale) {
  for (const Carriage carriage : {Carriage::remap, Carriage::direct}) {
    std::uint32_t whole = 0;
    std::uint32_t broken = 0;
    run([&](ChipSite& here) { whole = sum_after_a_look(here, carriage); });
    run([&](ChipSite& here) { broken = sum_after_a_look(here, carriage); }, {.refresh = false});
    EXPECT_EQ(whole, 512u);
    EXPECT_LT(broken, 512u);
  }
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

void copy(svp::InArray<double> from, svp::OutArray<double> to) {
  std::copy(from.begin(), from.end(), to.begin());
}
using Copy = svp::Remote<&copy>;

// One array is memory of the chip, and the other one is not.
TEST_F(ChipSitesTest, DirectGoesInMessagesWhereAnArrayIsElsewhere) {
  const std::vector<double> values{1, 2, 3};
  std::vector<double> copies(3);
  run([&](ChipSite& here) {
    const std::span<double> from = on_chip(here, values);
    FamilyOf<Copy> family(here, 1, Copy(), svp::Range{}, Carriage::direct, from, std::span(copies));
    EXPECT_EQ(family.sync().reason, svp::ExitReason::done);
  });
  EXPECT_EQ(copies, values);
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
  const auto address = reinterpret_cast<std::uint64_t>(owned);
  EXPECT_EQ(reach.get(2, address, &local, sizeof local).code(), Code::out_of_range);
  EXPECT_EQ(reach.put(2, address, &local, sizeof local).code(), Code::out_of_range);
}

}  // namespace
}  // namespace tombolo::experiments
