// SPDX-License-Identifier: Apache-2.0
// The two models of memory: the contract, which both keep, and the effects of banks.
#include "simulator/parts/memory_model.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "simulator/parts/banked_memory.h"
#include "simulator/parts/plain_memory.h"

namespace tombolo::simulator {
namespace {

constexpr Duration ns(std::int64_t n) { return Duration::nanoseconds(n); }
constexpr Time at_ns(std::int64_t n) { return Time::after_start(ns(n)); }

constexpr BankedMemory::Shape shape{.bytes = 4096,
                                    .banks = 4,
                                    .interleave = 0,
                                    .busy = ns(10),
                                    .bank_busy = ns(30),
                                    .write_to_read = ns(20),
                                    .read_to_write = ns(5)};

template <class Model>
Model made();
template <>
BankedMemory made() {
  return BankedMemory(shape);
}
template <>
PlainMemory made() {
  return PlainMemory(ns(10));
}

template <class Model>
class MemoryModels : public ::testing::Test {};
using Models = ::testing::Types<BankedMemory, PlainMemory>;
TYPED_TEST_SUITE(MemoryModels, Models);

TYPED_TEST(MemoryModels, Y1ServeNoRequestBeforeItArrivesAndCountTheWaits) {
  Random random(5);
  auto memory = made<TypeParam>();
  Time arrives;
  Duration waited;
  for (int i = 0; i < 2000; ++i) {
    arrives += ns(static_cast<std::int64_t>(random.below(25)));
    const Time served =
        memory.serve({random.below(4096), random.one_in(3), random.one_in(5)}, arrives);
    ASSERT_GE(served, arrives);
    waited += served - arrives;
  }
  EXPECT_EQ(memory.waited(), waited);
  EXPECT_GT(waited, ns(0));
  EXPECT_EQ(memory.controller().served(), 2000u);
}

TYPED_TEST(MemoryModels, AreFreeAtOnceWhenNothingElseComes) {
  auto memory = made<TypeParam>();
  for (int i = 1; i <= 20; ++i)  // not at 0: a bus needs time for its first turn
    EXPECT_EQ(memory.serve({0, i % 2 == 0, false}, at_ns(i * 1000)), at_ns(i * 1000));
  EXPECT_EQ(memory.waited(), ns(0));
}

TEST(PlainMemory, M1TakesTheSameTimeForAllRequests) {
  PlainMemory memory(ns(10));
  for (std::uint64_t i = 0; i < 6; ++i)
    EXPECT_EQ(memory.serve({i % 2 * 2048, i % 3 == 0, false}, at_ns(0)),
              at_ns(static_cast<std::int64_t>(i) * 10));
  EXPECT_TRUE(memory.banks().empty());
}

TEST(BankedMemory, M1ServesABankOneAfterTheOtherAndBanksSideBySide) {
  BankedMemory one(shape);
  BankedMemory two(shape);
  for (const int i : {0, 1, 2, 3}) {
    EXPECT_EQ(one.serve({8, false, false}, at_ns(0)), at_ns(i * 30));
    EXPECT_EQ(two.serve({static_cast<std::uint64_t>(i) * 1024, false, false}, at_ns(0)),
              at_ns(i * 10));
  }
  EXPECT_EQ(one.banks()[0].served(), 4u);
  EXPECT_EQ(one.banks()[0].waited(), ns(3 * 20));  // behind the 10 of the controller each
  EXPECT_EQ(two.banks()[3].waited(), ns(0));
}

TEST(BankedMemory, ARequestForABusyBankHoldsUpThoseBehindIt) {
  BankedMemory memory(shape);
  memory.serve({0, false, false}, at_ns(0));
  EXPECT_EQ(memory.serve({0, false, false}, at_ns(0)), at_ns(30));
  EXPECT_EQ(memory.serve({1024, false, false}, at_ns(0)), at_ns(40));
}

TEST(BankedMemory, TheBusTurnsButForBursts) {
  for (const bool burst : {false, true}) {
    BankedMemory memory(shape);
    memory.serve({0, true, false}, at_ns(100));
    EXPECT_EQ(memory.serve({1024, false, burst}, at_ns(100)), at_ns(burst ? 110 : 130));
  }
}

TEST(BankedMemory, BytesLieInEqualPartsOrInTurn) {
  BankedMemory parts(shape);
  EXPECT_EQ(parts.bank_of(1023), 0u);
  EXPECT_EQ(parts.bank_of(1024), 1u);
  EXPECT_EQ(parts.bank_of(4095), 3u);
  BankedMemory::Shape by_line = shape;
  by_line.interleave = 32;
  BankedMemory turns(by_line);
  EXPECT_EQ(turns.bank_of(31), 0u);
  EXPECT_EQ(turns.bank_of(32), 1u);
  EXPECT_EQ(turns.bank_of(128), 0u);
}

}  // namespace
}  // namespace tombolo::simulator
