// SPDX-License-Identifier: Apache-2.0
// Purpose: the partners of a butterfly barrier, round by round. barriers_test.cpp tests that it is
// a barrier.
// Thread safety: -
#include "sync/barriers/butterfly_barrier.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "backends/coherent/coherent.h"
#include "machine/testing/ensemble.h"
#include "machine/testing/forwarding.h"

namespace tombolo::sync {
namespace {

using machine::Home;

// Notes the homes that it stores to, and that it wakes.
class NotingCore : public machine::testing::Forwarding<coherent::Core> {
 public:
  using Base = machine::testing::Forwarding<coherent::Core>;
  using Base::Base;
  Word word(machine::SyncPlace place) {
    home_ = place.home;
    return Base::word(place);
  }
  void store(Word word, std::uint64_t v) {
    stored.push_back(home_);
    Base::store(word, v);
  }
  void notify(Home home) {
    woken.push_back(home);
    Base::notify(home);
  }
  std::vector<Home> stored;
  std::vector<Home> woken;

 private:
  Home home_ = 0;
};

// Of core `self` of `cores` in its first barrier: the others have told it already.
void expect_partners(Home self, Home cores, const std::vector<Home>& wanted) {
  machine::SyncLayout layout(NotingCore::reserved_sync_bytes(cores));
  const auto taken = ButterflyBarrier<NotingCore>::take(layout, cores);
  machine::testing::Host<NotingCore> host(machine::testing::EnsembleShape{
      .cores = cores, .sync_bytes = layout.bytes(), .data_bytes = 64});
  NotingCore core(host.attachment(self));
  for (machine::Offset round = 0; round < wanted.size(); ++round)
    core.store(core.word({self, taken.flags + round * 64}), 1);
  core.stored.clear();
  ButterflyBarrier<NotingCore> barrier(core, taken);
  ASSERT_TRUE(barrier.arrive_and_wait().ok());
  EXPECT_EQ(core.stored, wanted) << self << " of " << cores;
  EXPECT_EQ(core.woken, wanted);
  // Each flag lies in the line of its round.
  for (machine::Offset round = 0; round < wanted.size(); ++round)
    EXPECT_EQ(core.load(core.word({wanted[round], taken.flags + round * 64})), 1U) << round;
}

TEST(ButterflyBarrier, StaysAmongNeighboursInItsFirstRounds) {
  expect_partners(5, 8, {4, 7, 1});
  expect_partners(0, 8, {1, 2, 4});
  expect_partners(2, 4, {3, 0});
  expect_partners(1, 2, {0});
  expect_partners(0, 1, {});
}

TEST(ButterflyBarrier, OfOtherNumbersIsADisseminationBarrier) {
  expect_partners(5, 6, {0, 1, 3});
  expect_partners(0, 3, {1, 2});
}

}  // namespace
}  // namespace tombolo::sync
