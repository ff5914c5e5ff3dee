// SPDX-License-Identifier: Apache-2.0
// Purpose: which pages are in the image for which uses, and which stay there.
#include "host/images/own_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "base/random.h"
#include "host/images/testing/own_memories.h"
#include "host/memory/page.h"
#include "host/memory/testing/memory.h"

namespace tombolo::host {
namespace {

using testing::fresh;
using testing::HeapBlock;
using testing::is_private;
using testing::is_shared;
using testing::mapping_of;
using testing::NeedsSharing;
using testing::Plain;
using testing::status_of;

const std::uint64_t page = page_bytes();

// The stack may be in the image.
template <class F>
int in_child(F&& body) {
  const pid_t process = forked_aside(::fork);
  if (process == 0) _exit(body());
  return status_of(process);
}

class OwnMemoryTest : public NeedsSharing {};

alignas(64) char variables[3 * 4096] = {1};

TEST_F(OwnMemoryTest, MovesBackWithItsUse) {
  Plain plain(4);
  *plain.at(0) = 1;
  OwnMemory& own = fresh();
  auto use = own.enter(plain.at(0), 4 * page);
  EXPECT_EQ(own.share(use), plain.range());
  EXPECT_TRUE(is_shared(plain.at(0)));
  EXPECT_GE(own.image().descriptor, 0);
  *plain.page(2) = 3;
  use.end();
  EXPECT_TRUE(is_private(plain.at(0)));
  EXPECT_EQ(*plain.at(0), 1);
  EXPECT_EQ(*plain.page(2), 3);
  EXPECT_TRUE(own.take_error().ok());
}

TEST_F(OwnMemoryTest, SharesTheWholePagesOfOddAddresses) {
  Plain plain(4);
  OwnMemory& own = fresh();
  auto use = own.enter(plain.at(page + 8), page);
  EXPECT_EQ(own.share(use), use.range());
  EXPECT_TRUE(is_private(plain.page(0)));
  EXPECT_TRUE(is_shared(plain.page(1)));
  EXPECT_TRUE(is_shared(plain.page(2)));
  EXPECT_TRUE(is_private(plain.page(3)));
}

TEST_F(OwnMemoryTest, SharesTheInnerPagesWhereTheOuterMayNotBe) {
  Plain plain(3);
  mprotect(plain.page(0), page, PROT_READ);
  OwnMemory& own = fresh();
  auto use = own.enter(plain.at(8), 3 * page - 8);
  EXPECT_EQ(own.share(use), plain.pages(1, 2));
  use.end();
  EXPECT_TRUE(is_private(plain.page(1)));
}

TEST_F(OwnMemoryTest, TwoUsesShareAPage) {
  Plain plain(1);
  OwnMemory& own = fresh();
  auto first = own.enter(plain.at(16), 100);
  EXPECT_EQ(own.share(first), first.range());
  auto second = own.enter(plain.at(500), 100);
  EXPECT_EQ(own.share(second), second.range()) << "the page is there already";
  first.end();
  EXPECT_TRUE(is_shared(plain.at(0))) << "the second use may bring writes at any time";
  second.end();
  EXPECT_TRUE(is_private(plain.at(0)));
}

TEST_F(OwnMemoryTest, DoesNotMoveInWhatAnotherUseOverlaps) {
  Plain plain(4);
  OwnMemory& own = fresh();
  auto first = own.enter(plain.at(0), 2 * page);
  auto second = own.enter(plain.page(1), 3 * page);
  EXPECT_TRUE(own.share(second).empty()) << "peers may be writing to the overlap";
  EXPECT_TRUE(is_private(plain.page(3)));
  first.end();
  EXPECT_EQ(own.share(second), plain.pages(1, 3));
}

TEST_F(OwnMemoryTest, UsesEndInAnyOrder) {
  constexpr std::uint64_t pages = 8;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Random random(seed);
    Plain plain(pages);
    for (std::uint64_t i = 0; i < pages; ++i) *plain.page(i) = static_cast<char>(i + 1);
    OwnMemory& own = fresh();
    std::vector<std::pair<OwnMemory::Use, bool>> uses;
    for (int step = 0; step < 40; ++step) {
      if (uses.size() > 4 || (!uses.empty() && random.below(2) == 0)) {
        uses.erase(uses.begin() + static_cast<std::ptrdiff_t>(random.below(uses.size())));
      } else {
        const std::uint64_t low = random.below(plain.bytes() - 1);
        const std::uint64_t bytes = 1 + random.below(plain.bytes() - low);
        auto use = own.enter(plain.at(low), bytes);
        const bool shared = own.share(use) == use.range();
        uses.emplace_back(std::move(use), shared);
      }
      for (std::uint64_t i = 0; i < pages; ++i) {
        const AddressRange here = plain.pages(i, 1);
        bool used = false;
        bool shared = false;
        for (const auto& [use, in_image] : uses) {
          used = used || use.range().overlaps(here);
          shared = shared || (in_image && use.range().overlaps(here));
        }
        const bool is = is_shared(plain.page(i));
        ASSERT_TRUE(is || !shared) << "step " << step << " page " << i;
        ASSERT_TRUE(!is || used) << "step " << step << " page " << i;
        ASSERT_EQ(*plain.page(i), static_cast<char>(i + 1));
      }
    }
  }
}

TEST_F(OwnMemoryTest, OfNoBytesIsNothing) {
  OwnMemory& own = fresh();
  const auto use = own.enter(nullptr, 0);
  EXPECT_TRUE(own.share(use).empty());
}

// A region over all memory is no array of the program.
TEST_F(OwnMemoryTest, OfTheWholeAddressSpaceIsNothing) {
  Plain plain(1);
  OwnMemory& own = fresh();
  const auto use = own.enter(nullptr, ~std::uint64_t{0} >> 1);
  EXPECT_TRUE(own.share(use).empty());
  EXPECT_TRUE(is_private(plain.at(0)));
}

TEST_F(OwnMemoryTest, KeepsVariablesInTheImage) {
  OwnMemory& own = own_memory();  // forks must see pages that stay
  auto use = own.enter(variables, sizeof variables);
  ASSERT_EQ(own.share(use), use.range());
  use.end();
  EXPECT_TRUE(is_shared(variables));
  auto again = own.enter(variables + 8, 100);
  EXPECT_EQ(own.share(again), again.range());
  EXPECT_EQ(variables[0], 1);
}

// Memory that the program unmapped during a use, and mapped anew after it: zeros.
TEST_F(OwnMemoryTest, NewMemoryInThePlaceOfUnmappedIsNew) {
  Plain plain(2);
  *plain.page(0) = 5;
  OwnMemory& own = fresh();
  auto use = own.enter(plain.at(0), 2 * page);
  ASSERT_FALSE(own.share(use).empty());
  ASSERT_NE(mmap(plain.at(0), 2 * page, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
            MAP_FAILED);
  use.end();
  auto again = own.enter(plain.at(0), 2 * page);
  ASSERT_FALSE(own.share(again).empty());
  EXPECT_EQ(*plain.page(0), 0);
}

TEST_F(OwnMemoryTest, GivesNewMemoryAndTakesItBack) {
  OwnMemory& own = fresh();
  auto* const memory = static_cast<char*>(own.allocate(page + 1));
  ASSERT_NE(memory, nullptr);
  EXPECT_TRUE(is_shared(memory));
  {
    auto use = own.enter(memory, page + 1);
    EXPECT_EQ(own.share(use), use.range());
  }
  EXPECT_TRUE(is_shared(memory)) << "until it is freed";
  EXPECT_FALSE(own.free(memory + page));
  EXPECT_TRUE(own.free(memory));
  EXPECT_FALSE(own.free(memory));
  EXPECT_FALSE(mapping_of(memory));
}

}  // namespace
}  // namespace tombolo::host
