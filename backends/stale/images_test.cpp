// SPDX-License-Identifier: Apache-2.0
// Where the images of regions lie (IM1).
#include "backends/stale/images.h"

#include <gtest/gtest.h>

#include <array>
#include <initializer_list>
#include <new>

namespace tombolo::stale {
namespace {

constexpr std::uintptr_t base = 0x100000;
constexpr std::uintptr_t page = 4096;

// Never looked at: images are made from addresses alone.
machine::DataRegion region(std::uintptr_t address, std::uint64_t bytes) {
  return {.memory = reinterpret_cast<std::byte*>(address), .bytes = bytes};
}

Attachment attached(std::initializer_list<machine::DataRegion> regions) {
  Attachment at;
  at.cores = static_cast<machine::Home>(regions.size());
  at.data = regions;
  return at;
}

TEST(Images, FollowEachOtherAsRegionsDo) {
  // Not in the order of addresses, and one without bytes.
  const Images images(attached(
      {region(base + 100, 60), region(base, 100), region(base + 160, 0), region(base + 160, 7)}));
  EXPECT_EQ(images.of(0), images.of(1) + 100);
  EXPECT_EQ(images.of(2), images.of(1) + 160);
  EXPECT_EQ(images.of(3), images.of(1) + 160);
}

TEST(Images, LieApartWhereRegionsDo) {
  // With one image for all of it there would have to be 64 TiB.
  constexpr std::uintptr_t far = std::uintptr_t{1} << 46;
  const Images images(attached({region(base + 64, 100), region(far + 128, page), region(0, 0),
                                region(far + 5 * page, page)}));
  EXPECT_EQ(images.of(2), nullptr);
  const auto gap = static_cast<std::uintptr_t>(images.of(1) - images.of(0));
  EXPECT_GE(gap, 100u);
  EXPECT_LT(gap, 4 * page);
  EXPECT_EQ(gap % page, 64u) << "as far from a page's start as in memory";
  const auto next = static_cast<std::uintptr_t>(images.of(3) - images.of(1));
  EXPECT_GE(next, page);
  EXPECT_LT(next, 4 * page);
  // All of it is there.
  images.of(0)[0] = images.of(1)[page - 1] = images.of(3)[page - 1] = std::byte{1};
  EXPECT_EQ(images.of(3)[0], std::byte{0});
}

TEST(Images, TheProgramsMemoryIsItsOwn) {
  std::array<std::byte, 100> program{};
  Attachment at = attached({region(base, 100), region(base + 100, 100), region(base + 200, 100)});
  at.self = 1;
  at.own_view = program.data();
  const Images images(at);
  EXPECT_EQ(images.of(1), program.data());
  EXPECT_EQ(images.of(2), images.of(0) + 200);
}

// The thread sanitizer looks up its own memory for such a range before the kernel refuses it.
#if !defined(__SANITIZE_THREAD__)
TEST(Images, TooLargeOnesAreNoMemory) {
  EXPECT_THROW(Images(attached({region(base, std::uint64_t{1} << 60)})), std::bad_alloc);
}
#endif

}  // namespace
}  // namespace tombolo::stale
