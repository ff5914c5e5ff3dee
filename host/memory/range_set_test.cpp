// SPDX-License-Identifier: Apache-2.0
// Purpose: a set of ranges beside one flag per address.
#include "host/memory/range_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bitset>
#include <cstdint>
#include <vector>

#include "base/random.h"

namespace tombolo::host {
namespace {

constexpr std::uint64_t addresses = 200;
using Flags = std::bitset<addresses>;

// The runs of `value` inside `within`.
std::vector<AddressRange> runs(const Flags& flags, const AddressRange& within, bool value) {
  std::vector<AddressRange> found;
  for (std::uint64_t at = within.low; at < within.high; ++at) {
    if (flags[at] != value) continue;
    if (!found.empty() && found.back().high == at)
      found.back().high = at + 1;
    else
      found.push_back({at, at + 1});
  }
  return found;
}

void put(Flags& flags, const AddressRange& range, bool value) {
  for (std::uint64_t at = range.low; at < range.high; ++at) flags[at] = value;
}

AddressRange some_range(Random& random, std::uint64_t longest) {
  const std::uint64_t low = random.below(addresses);
  return {low, std::min(addresses, low + random.below(longest + 1))};
}

TEST(RangeSetTest, HoldsWhatFlagsHold) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    RangeSet set;
    Flags flags;
    for (int step = 0; step < 300; ++step) {
      const AddressRange range = some_range(random, seed % 2 == 0 ? 8 : 60);
      const bool value = random.below(2) == 0;
      value ? set.add(range) : set.remove(range);
      put(flags, range, value);
      const AddressRange all{0, addresses};
      ASSERT_EQ(set.all(), runs(flags, all, true)) << "step " << step;
      ASSERT_EQ(set.size(), set.all().size()) << "step " << step;
      ASSERT_EQ(set.bytes(), flags.count()) << "step " << step;
      const AddressRange within = some_range(random, addresses);
      ASSERT_EQ(set.parts(within), runs(flags, within, true)) << "step " << step;
      ASSERT_EQ(set.gaps(within), runs(flags, within, false)) << "step " << step;
      ASSERT_EQ(set.overlaps(within), !set.parts(within).empty()) << "step " << step;
    }
  }
}

TEST(RangeSetTest, JoinsRangesThatTouch) {
  RangeSet set;
  set.add({10, 20});
  set.add({30, 40});
  EXPECT_EQ(set.size(), 2u);
  set.add({20, 30});
  EXPECT_EQ(set.all(), (std::vector<AddressRange>{{10, 40}}));
}

TEST(RangeSetTest, IgnoresEmptyRanges) {
  RangeSet set;
  set.add({10, 20});
  set.add({30, 30});
  set.remove({15, 15});
  EXPECT_EQ(set.all(), (std::vector<AddressRange>{{10, 20}}));
  EXPECT_FALSE(set.overlaps({15, 15}));
  EXPECT_TRUE(set.gaps({5, 5}).empty());
}

TEST(RangeSetTest, ReachesTheLastAddresses) {
  constexpr std::uint64_t last = ~std::uint64_t{0};
  RangeSet set;
  set.add({last - 10, last});
  EXPECT_EQ(set.parts({0, last}), (std::vector<AddressRange>{{last - 10, last}}));
  EXPECT_EQ(set.gaps({0, last}), (std::vector<AddressRange>{{0, last - 10}}));
  set.clear();
  EXPECT_EQ(set.bytes(), 0u);
}

}  // namespace
}  // namespace tombolo::host
