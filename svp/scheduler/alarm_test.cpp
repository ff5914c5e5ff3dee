// SPDX-License-Identifier: Apache-2.0
// Purpose: tests the alarm on every machine: each core hears it once; it is active until retired.
// Thread safety: -
#include "svp/scheduler/alarm.h"

#include <gtest/gtest.h>

#include "backends/machines.h"
#include "machine/testing/ensemble.h"

namespace tombolo::svp {
namespace {

template <class C>
class Alarms : public ::testing::Test {};
TYPED_TEST_SUITE(Alarms, AllMachines::apply<::testing::Types>, MachineNames);

TYPED_TEST(Alarms, AreHeardOnceAndActiveUntilRetired) {
  using C = TypeParam;
  machine::SyncLayout layout(C::reserved_sync_bytes(1));
  const machine::Offset attention = layout.take_lines(1);
  const auto at = Alarm<C>::take(layout, attention);
  machine::testing::Ensemble<C> ensemble({.cores = 1, .sync_bytes = layout.bytes()});
  ensemble.run([&](C& core) {
    Alarm<C> alarm(core, at);
    EXPECT_FALSE(alarm.active());
    EXPECT_FALSE(alarm.heard());
    alarm.raise();
    alarm.raise();
    EXPECT_EQ(core.load(core.word({0, attention})), 1u);
    EXPECT_TRUE(alarm.pending());
    EXPECT_TRUE(alarm.heard());
    EXPECT_FALSE(alarm.heard());
    EXPECT_FALSE(alarm.pending());
    alarm.retire();
    EXPECT_TRUE(alarm.active());
    alarm.retire();
    EXPECT_FALSE(alarm.active());
  });
}

}  // namespace
}  // namespace tombolo::svp
