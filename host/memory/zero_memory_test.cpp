// SPDX-License-Identifier: Apache-2.0
// Purpose: memory of zeros, small and large, that is not occupied before it is touched.
#include "host/memory/zero_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "host/memory/address_space.h"
#include "host/memory/page.h"

namespace tombolo::host {
namespace {

constexpr std::size_t mapped_from = std::size_t{1} << 18;

bool is_mapped(const void* address) {
  std::vector<Mapping> mappings;
  EXPECT_TRUE(read_mappings(mappings).ok());
  const auto at = reinterpret_cast<std::uint64_t>(address);
  for (const Mapping& mapping : mappings)
    if (mapping.range.low <= at && at < mapping.range.high) return true;
  return false;
}

TEST(ZeroMemory, OfAnySizeReadsAsZerosAndCanBeWritten) {
  for (const std::size_t bytes : {std::size_t{1}, mapped_from - 1, mapped_from, mapped_from + 1}) {
    // The second one may get the addresses that the first one gave back.
    for (int turn = 0; turn < 2; ++turn) {
      const ZeroMemory memory(bytes);
      ASSERT_TRUE(memory);
      auto* const at = memory.as<unsigned char>();
      for (std::size_t i = 0; i < bytes; ++i) ASSERT_EQ(at[i], 0) << bytes << " " << i;
      std::fill_n(at, bytes, static_cast<unsigned char>(0xa5));
    }
  }
}

TEST(ZeroMemory, OfNoBytesIsThere) {
  EXPECT_TRUE(ZeroMemory(0)) << "no bytes are no failure";
  EXPECT_FALSE(ZeroMemory()) << "none was asked for";
  EXPECT_EQ(ZeroMemory().as<char>(), nullptr);
}

TEST(ZeroMemory, IsNotOccupiedWhereItIsNotTouched) {
  constexpr std::size_t terabyte = std::size_t{1} << 40;
  const ZeroMemory memory(terabyte);
  if (!memory) GTEST_SKIP() << "this host has not so many addresses, or counts them";
  auto* const last = memory.as<char>() + terabyte - 1;
  *last = 1;
  const auto end = reinterpret_cast<std::uint64_t>(last) + 1;
  std::vector<Page> pages;
  const Status told = read_pages({end - 4 * page_bytes(), end}, page_bytes(), pages);
  if (!told.ok()) GTEST_SKIP() << told.message();
  EXPECT_EQ(pages.back(), Page::present);
}

// The thread sanitizer looks up its own memory for such a range before the kernel refuses it.
#if !defined(__SANITIZE_THREAD__)
TEST(ZeroMemory, BeyondAllAddressesIsFalse) { EXPECT_FALSE(ZeroMemory(std::size_t{1} << 60)); }
#endif

TEST(ZeroMemory, MovesWithItsContentsAndGoesOnce) {
  for (const std::size_t bytes : {std::size_t{64}, mapped_from}) {
    ZeroMemory first(bytes);
    first.as<char>()[bytes - 1] = 7;
    auto* const at = first.as<char>();
    ZeroMemory second(std::move(first));
    EXPECT_EQ(second.as<char>(), at);
    EXPECT_FALSE(first);  // NOLINT(bugprone-use-after-move): the moved-from state is tested
    ZeroMemory third;
    third = std::move(second);
    EXPECT_EQ(third.as<char>()[bytes - 1], 7);
  }
}

TEST(ZeroMemory, IsUnmappedAtItsEnd) {
  constexpr std::size_t large = std::size_t{1} << 30;  // allocators reuse smaller pieces
  char* at = nullptr;
  {
    const ZeroMemory memory(large);
    ASSERT_TRUE(memory);
    at = memory.as<char>();
    EXPECT_TRUE(is_mapped(at + large / 2));
  }
  EXPECT_FALSE(is_mapped(at + large / 2));
}

// Each end of its own size: one of each kind is exchanged for one of the other.
TEST(ZeroMemory, KindsMayBeExchanged) {
  for (int i = 0; i < 100; ++i) {
    ZeroMemory small(32);
    ZeroMemory large(mapped_from);
    std::swap(small, large);
    EXPECT_EQ(small.as<char>()[mapped_from - 1], 0);
    EXPECT_EQ(large.as<char>()[31], 0);
  }
}

}  // namespace
}  // namespace tombolo::host
