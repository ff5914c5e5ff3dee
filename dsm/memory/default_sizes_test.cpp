// SPDX-License-Identifier: Apache-2.0
#include "dsm/memory/default_sizes.h"

#include <gtest/gtest.h>

namespace tombolo::dsm {
namespace {

constexpr std::uint64_t mib = std::uint64_t{1} << 20;

TEST(UsualSizes, OfAHeapAreAnEighthOfTheRoom) {
  EXPECT_EQ(default_heap_bytes(16000 * mib, 2, 100 * mib), 2000 * mib);
  EXPECT_EQ(default_heap_bytes(16000 * mib, 16, 100 * mib), 2000 * mib)
      << "the pages of so many do not lie in place";
}

TEST(UsualSizes, OfAHeapAreLessWherePagesLieInPlaceThen) {
  // Of -n 4: 1600 MiB for each process and two more.
  EXPECT_EQ(default_heap_bytes(16000 * mib, 8, 100 * mib), 1500 * mib);
  for (const Thread processes : {2U, 6U, 8U, 12U}) {
    const std::uint64_t heap = default_heap_bytes(16000 * mib, processes, 100 * mib);
    EXPECT_LT((heap + 100 * mib) * (processes + 1), 16000 * mib) << processes;
  }
}

TEST(UsualSizes, OfAHeapAreNeverLessThanHalfOfThat) {
  EXPECT_EQ(default_heap_bytes(14000 * mib, 12, 125 * mib), 875 * mib) << "just half";
  EXPECT_EQ(default_heap_bytes(14000 * mib, 12, 126 * mib), 1750 * mib);
}

TEST(UsualSizes, OfCachesAreAQuarterOfTheRoomTogether) {
  EXPECT_EQ(default_cache_bytes(6400 * mib, 4, mib), 100 * mib);
  EXPECT_EQ(default_cache_bytes(6400 * mib, 16, mib), 100 * mib);
  EXPECT_EQ(default_cache_bytes(6400 * mib, 20, mib), 80 * mib);
  EXPECT_EQ(default_cache_bytes(64000 * mib, 16, mib), 256 * mib);
  EXPECT_EQ(default_cache_bytes(64 * mib, 2000, mib), mib);
}

}  // namespace
}  // namespace tombolo::dsm
