// SPDX-License-Identifier: Apache-2.0
// Purpose: Tombolo's protocol of remote families on simulated cores: a multiplication and a tree
// search, written once for both, have the results that the examples of examples/svp/ have in
// processes of this host, with each way for data to travel; publish at create and refresh at sync
// are needed, and those of the room of an array that copy cores copy; the sequence of 002 section
// 5.2.2.
#include "experiments/svp/chip/chip_sites.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <string>

#include "examples/svp/kernels.h"
#include "experiments/common/measure.h"
#include "experiments/common/testing.h"
#include "svp/api/include/tombolo/svp.hpp"

namespace tombolo::experiments {
namespace {

using svp::Transport;

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
  Transport transport;

  template <class Function, class... Args>
  auto create(unsigned place, const svp::Range& range, const Function& function, Args&&... args) {
    return std::make_unique<FamilyOf<Function>>(here, place + 1, function, range, transport,
                                                std::forward<Args>(args)...);
  }
  template <class Family>
  void sync(Family& family) {
    const svp::Completion& completion = family.sync();
    EXPECT_EQ(completion.reason, svp::ExitReason::done) << completion.text;
  }
};

struct Care {
  ChipReach::Care of_creator = {};
  ChipEngine::Care of_room = {};
  std::uint64_t room_bytes = ~std::uint64_t{0};
};

class ChipSitesTest : public ::testing::TestWithParam<Transport> {
 protected:
  void run(const std::function<void(ChipSite&)>& creator, const Care& care = {}) {
    const Context context = test_context();
    simulator::Options options = options_of(context);
    options.time_limit = simulator::Time::after_start(simulator::Duration::seconds(5));
    scc::Chip chip(context.chip, options);
    ChipSites all(chip, {.sites = sites,
                         .copy_cores = {simulator::CoreId(20), simulator::CoreId(47)},
                         .room_bytes = care.room_bytes,
                         .care = care.of_creator,
                         .engine_care = care.of_room});
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
  std::string digest_of_product(Transport transport, const Care& care = {}) {
    std::uint64_t digest = 0;
    run(
        [&](ChipSite& here) {
          const std::span<double> a = on_chip(here, elements(&kernels::left_element));
          const std::span<double> b = on_chip(here, elements(&kernels::right_element));
          const std::span<double> c = on_chip(here, std::vector<double>(size * size, -1.0));
          OnSites creator{here, transport};
          kernels::multiply(creator, sites - 1, size, a, b, c);
          digest = kernels::digest_of(c);
        },
        care);
    return fmt::format("digest {:016x}", digest);
  }
};

INSTANTIATE_TEST_SUITE_P(Carriages, ChipSitesTest,
                         ::testing::Values(Transport::stream, Transport::direct, Transport::buffer,
                                           Transport::remap, Transport::best, Transport::engine),
                         [](const auto& transport) {
                           return std::string(
                               svp::transport_names[static_cast<std::size_t>(transport.param)]);
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
  for (const Transport transport : {Transport::remap, Transport::direct, Transport::engine})
    EXPECT_NE(digest_of_product(transport, {.of_creator = {.publish = false}}),
              digest_of_product(transport));
}

void add_one(svp::InOutArray<std::uint32_t> values) {
  for (std::uint32_t& value : values) ++value;
}
using AddOne = svp::Remote<&add_one>;

// Twice as long as copy cores need.
constexpr std::size_t count = 2 * ChipEngine::least_bytes / sizeof(std::uint32_t);

std::span<std::uint32_t> array_of(ChipSite& here, std::uint32_t value, std::size_t n = count) {
  std::byte* const at = here.memory().allocate(here.cpu(), n * sizeof(std::uint32_t));
  const std::span<std::uint32_t> values(reinterpret_cast<std::uint32_t*>(at), n);
  std::fill(values.begin(), values.end(), value);
  here.memory().stored(here.cpu(), at, values.size_bytes());
  return values;
}
std::uint64_t sum_of(std::span<const std::uint32_t> values) {
  return std::accumulate(values.begin(), values.end(), std::uint64_t{0});
}

// The creator reads the array while the family has it, which leaves lines of it in its caches.
std::uint64_t sum_after_a_look(ChipSite& here, Transport transport) {
  const std::span<std::uint32_t> values = array_of(here, 0);
  FamilyOf<AddOne> family(here, 1, AddOne(), svp::Range{}, transport, values);
  here.memory().load(here.cpu(), values.data(), values.size_bytes());
  family.sync();
  return sum_of(values);
}

TEST_F(ChipSitesTest, WithoutRefreshAtSyncOutputIsStale) {
  for (const Transport transport : {Transport::remap, Transport::direct, Transport::engine}) {
    std::uint64_t whole = 0;
    std::uint64_t broken = 0;
    run([&](ChipSite& here) { whole = sum_after_a_look(here, transport); });
    run([&](ChipSite& here) { broken = sum_after_a_look(here, transport); },
        {.of_creator = {.refresh = false}});
    EXPECT_EQ(whole, count);
    EXPECT_LT(broken, count);
  }
}

// Stores of threads at the creator's core go to another core as the creator's own do.
TEST_F(ChipSitesTest, StoresAtTheCreatorsCoreAreInMemoryOfTheChip) {
  for (const Transport transport : {Transport::remap, Transport::direct, Transport::engine})
    run([&](ChipSite& here) {
      const std::span<std::uint32_t> values = array_of(here, 0);
      FamilyOf<AddOne>(here, 0, AddOne(), svp::Range{}, transport, values).sync();
      FamilyOf<AddOne>(here, 1, AddOne(), svp::Range{}, transport, values).sync();
      EXPECT_EQ(sum_of(values), 2 * count);
    });
}

// ---- Copy cores ---------------------------------------------------------------------------------

void sum_up(svp::InArray<std::uint32_t> values, svp::Out<std::uint64_t> sum) {
  *sum = sum_of(values);
}
using SumUp = svp::Remote<&sum_up>;

// Two families use one room, the second one for other values.
TEST_F(ChipSitesTest, WithoutRefreshOfTheRoomInputIsStale) {
  for (const bool refresh : {true, false})
    run(
        [&](ChipSite& here) {
          for (const std::uint32_t value : {1, 2}) {
            std::uint64_t sum = 0;
            FamilyOf<SumUp> family(here, 1, SumUp(), svp::Range{}, Transport::engine,
                                   array_of(here, value), sum);
            family.sync();
            if (refresh || value == 1) {
              EXPECT_EQ(sum, value * count);
            } else {
              EXPECT_LT(sum, value * count);
            }
          }
        },
        {.of_room = {.refresh = refresh}});
}

// The family's stores hit the lines that its input has left in the caches of its core.
TEST_F(ChipSitesTest, WithoutPublishOfTheRoomOutputIsStale) {
  for (const bool publish : {true, false})
    run(
        [&](ChipSite& here) {
          const std::span<std::uint32_t> values = array_of(here, 6);
          FamilyOf<AddOne> family(here, 1, AddOne(), svp::Range{}, Transport::engine, values);
          family.sync();
          if (publish) {
            EXPECT_EQ(sum_of(values), 7 * count);
          } else {
            EXPECT_LT(sum_of(values), 7 * count);
          }
        },
        {.of_room = {.publish = publish}});
}

std::string begun;  // NOLINT: of a test

void begins_with(svp::In<char> name, svp::InArray<std::uint32_t> values,
                 svp::In<std::uint32_t> value) {
  begun += *name;
  EXPECT_EQ(sum_of(values), values.size() * std::uint64_t{*value}) << *name;
}
using BeginsWith = svp::Remote<&begins_with>;

// A core goes on while copy cores copy for one of its families: other rooms are apart from that
// one, and messages from the words by which the core hears that a copy is done.
TEST_F(ChipSitesTest, ACopyKeepsBackNoOtherFamily) {
  begun.clear();
  run([&](ChipSite& here) {
    const std::span<std::uint32_t> many = array_of(here, 7, 32 * count);
    const std::vector<std::uint32_t> largest(count, ~0u);
    const std::span<std::uint32_t> ones = array_of(here, 1);
    const std::span<std::uint32_t> twos = array_of(here, 2);
    std::uint64_t sum = 0;
    std::uint64_t other_sum = 0;
    FamilyOf<BeginsWith> slow(here, 1, BeginsWith(), {}, Transport::engine, 'a', many, 7u);
    FamilyOf<BeginsWith> quick(here, 1, BeginsWith(), {}, Transport::buffer, 'b', largest, ~0u);
    FamilyOf<SumUp> adds(here, 1, SumUp(), {}, Transport::engine, ones, sum);
    FamilyOf<SumUp> adds_too(here, 1, SumUp(), {}, Transport::engine, twos, other_sum);
    quick.sync();
    slow.sync();
    adds.sync();
    adds_too.sync();
    EXPECT_EQ(sum, count);
    EXPECT_EQ(other_sum, 2 * count);
  });
  EXPECT_EQ(begun, "ba");
}

void finds_no_room_in_use() { EXPECT_EQ(ChipSite::here().engine().bytes_in_use(), 0u); }
using FindsNoRoomInUse = svp::Remote<&finds_no_room_in_use>;

bool has_added = false;  // NOLINT: of a test

void add_one_and_say_so(svp::InOutArray<std::uint32_t> values) {
  add_one(values);
  has_added = true;
}
using AddOneAndSaySo = svp::Remote<&add_one_and_say_so>;

// CEN1: killed while it fetches, a family leaves the array alone; while it gives its output back,
// all of that comes. The room is free in both cases, and not before.
TEST_F(ChipSitesTest, ACopyIsOverBeforeAKilledFamilyEnds) {
  for (const bool at_the_end : {false, true})
    run([&](ChipSite& here) {
      has_added = false;
      constexpr std::size_t many = 8 * count;
      const std::span<std::uint32_t> values = array_of(here, 1, many);
      FamilyOf<AddOneAndSaySo> family(here, 1, AddOneAndSaySo(), {}, Transport::engine, values);
      if (at_the_end) here.wait([] { return has_added; }, false);
      family.kill();
      const svp::Completion& completion = family.sync();
      EXPECT_EQ(completion.reason, at_the_end ? svp::ExitReason::done : svp::ExitReason::killed)
          << completion.text;
      EXPECT_EQ(has_added, at_the_end);
      EXPECT_EQ(sum_of(values), at_the_end ? 2 * many : many);
      FamilyOf<FindsNoRoomInUse>(here, 1, FindsNoRoomInUse(), {}, Transport::best).sync();
      FamilyOf<AddOne> next(here, 1, AddOne(), svp::Range{}, Transport::engine, values);
      next.sync();
      EXPECT_EQ(sum_of(values), at_the_end ? 3 * many : 2 * many);
    });
}

TEST_F(ChipSitesTest, WithoutARoomTheCoreCopiesItself) {
  run(
      [&](ChipSite& here) {
        const std::span<std::uint32_t> values = array_of(here, 6);
        FamilyOf<AddOne> family(here, 1, AddOne(), svp::Range{}, Transport::engine, values);
        const svp::Completion& completion = family.sync();
        EXPECT_EQ(completion.reason, svp::ExitReason::done) << completion.text;
        EXPECT_EQ(sum_of(values), 7 * count);
      },
      {.room_bytes = count});
}

TEST_F(ChipSitesTest, AnEngineTakesLargeArraysAsFarAsThereIsRoom) {
  const Context context = test_context();
  scc::Chip chip(context.chip);
  scc::Cpu& cpu = chip.cpu(simulator::CoreId(0));
  constexpr std::uint64_t all = ~std::uint64_t{0};
  const auto at_once = [](const auto&) { return true; };
  ChipEngine engine(cpu, {simulator::CoreId(1)}, all, {}, at_once);
  EXPECT_FALSE(engine.takes(4095));
  EXPECT_TRUE(engine.takes(4096));
  EXPECT_FALSE(ChipEngine(cpu, {}, all, {}, at_once).takes(4096));
  std::byte byte{};
  const CoreMemory other{simulator::CoreId(2), {}};
  EXPECT_EQ(engine.get(other, &byte, chip.public_bytes() + 1).code(), Code::no_memory);
  EXPECT_EQ(engine.put(other, &byte, chip.public_bytes() + 1).code(), Code::no_memory);
}

TEST(ChipSitesDeathTest, ACoreOfTheSitesCannotCopy) {
  const Context context = test_context();
  scc::Chip chip(context.chip);
  EXPECT_DEATH(ChipSites(chip, {.sites = 3, .copy_cores = {simulator::CoreId(2)}}),
               "core 2 is one of 3 sites, or none of the chip, and cannot copy");
}

// ---- Which arrays travel how --------------------------------------------------------------------

// Of two families at one place the first ends first and is synced last.
TEST_F(ChipSitesTest, FamiliesAreSyncedInEitherOrder) {
  std::vector<std::uint32_t> one(10, 1);
  std::vector<std::uint32_t> other(5000, 1);
  run([&](ChipSite& here) {
    FamilyOf<AddOne> first(here, 1, AddOne(), svp::Range{}, Transport::buffer, std::span(one));
    FamilyOf<AddOne> second(here, 1, AddOne(), svp::Range{}, Transport::buffer, std::span(other));
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
  const std::vector<double> values(ChipEngine::least_bytes, 1.5);
  for (const Transport transport : {Transport::direct, Transport::engine}) {
    std::vector<double> copies(values.size());
    run([&](ChipSite& here) {
      const std::span<double> from = on_chip(here, values);
      FamilyOf<Copy> family(here, 1, Copy(), svp::Range{}, transport, from, std::span(copies));
      EXPECT_EQ(family.sync().reason, svp::ExitReason::done);
    });
    EXPECT_EQ(copies, values);
  }
}

TEST_F(ChipSitesTest, MemoryThatIsNotTheCreatorsIsRefused) {
  const Context context = test_context();
  scc::Chip chip(context.chip);
  ChipMemory memory;
  std::byte* const owned = memory.allocate(chip.cpu(simulator::CoreId(3)), 64);
  scc::Cpu& cpu = chip.cpu(simulator::CoreId(0));
  ChipEngine engine(cpu, {simulator::CoreId(1)}, 4096, {}, [](const auto&) { return true; });
  ChipReach reach(cpu, memory, engine, {});
  EXPECT_EQ(reach.map(2, reinterpret_cast<std::uint64_t>(owned), 64), nullptr);
  int local = 0;
  EXPECT_FALSE(reach.can_show(2, &local, sizeof local));
  EXPECT_FALSE(reach.can_show(2, owned, 65));
  const auto address = reinterpret_cast<std::uint64_t>(owned);
  EXPECT_EQ(reach.get(2, address, &local, sizeof local).code(), Code::out_of_range);
  EXPECT_EQ(reach.put(2, address, &local, sizeof local).code(), Code::out_of_range);
  EXPECT_EQ(reach.engine_get(2, address, &local, sizeof local).code(), Code::out_of_range);
  EXPECT_EQ(reach.engine_put(2, address, &local, sizeof local).code(), Code::out_of_range);
}

}  // namespace
}  // namespace tombolo::experiments
