// SPDX-License-Identifier: Apache-2.0
// Purpose: memory of the image that the program moves elsewhere by mremap(), as realloc() does, or
// lets grow: it keeps its contents, whatever comes to its old place.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

#include "host/images/own_memory.h"
#include "host/images/testing/own_memories.h"
#include "host/memory/page.h"
#include "host/memory/testing/memory.h"

namespace tombolo::host {
namespace {

using testing::fresh;
using testing::is_private;
using testing::is_shared;
using testing::NeedsSharing;
using testing::Plain;

const std::uint64_t page = page_bytes();

class MovedMappingTest : public NeedsSharing {
 protected:
  void move_elsewhere() {
    ASSERT_EQ(mremap(plain_.page(1), page, page, MREMAP_MAYMOVE | MREMAP_FIXED, other_.at(0)),
              other_.at(0));
    ASSERT_EQ(mmap(plain_.page(1), page, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
              plain_.page(1));
    madvise(plain_.page(1), page, MADV_NOHUGEPAGE);
  }
  Plain plain_{3};
  Plain other_{1};
};

TEST_F(MovedMappingTest, KeepsItsContentsWhenItsOldPlaceIsUsedAgain) {
  std::memset(plain_.at(0), 1, plain_.bytes());
  OwnMemory& own = fresh();
  auto use = own.enter(plain_.at(0), plain_.bytes());
  ASSERT_FALSE(own.share(use).empty());
  move_elsewhere();
  std::memset(plain_.page(1), 2, page);
  use.end();
  auto again = own.enter(plain_.at(0), plain_.bytes());
  EXPECT_TRUE(own.share(again).empty()) << "the file's bytes are those of the moved page";
  EXPECT_EQ(*other_.at(0), 1);
  EXPECT_EQ(*plain_.page(1), 2);
  *plain_.page(1) = 3;
  EXPECT_EQ(*other_.at(0), 1);
  again.end();
  EXPECT_EQ(*plain_.page(1), 3);
  munmap(other_.at(0), page);
  auto last = own.enter(plain_.at(0), plain_.bytes());
  EXPECT_EQ(own.share(last), last.range()) << "the moved page is gone";
  EXPECT_EQ(*plain_.page(1), 3);
}

TEST_F(MovedMappingTest, OtherFilesAtTheSamePlaceDoNotCount) {
  const int file = memfd_create("moved_mapping_test", MFD_CLOEXEC);
  ASSERT_GE(file, 0);
  ASSERT_EQ(ftruncate(file, static_cast<off_t>(plain_.range().high)), 0);
  ASSERT_NE(mmap(other_.at(0), page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file,
                 static_cast<off_t>(plain_.range().low)),
            MAP_FAILED);
  close(file);
  OwnMemory& own = fresh();
  auto use = own.enter(plain_.at(0), plain_.bytes());
  EXPECT_EQ(own.share(use), use.range());
}

}  // namespace
}  // namespace tombolo::host
