// SPDX-License-Identifier: Apache-2.0
// Purpose: which pages stay in the image without a use, and which memory the image's file keeps: up
// to their bounds, and no more. The variables here are larger than the bounds; most are never
// touched.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <thread>
#include <utility>

#include "host/images/own_memory.h"
#include "host/images/testing/own_memories.h"
#include "host/memory/page.h"
#include "host/memory/testing/memory.h"
#include "host/memory/testing/system_calls.h"

namespace tombolo::host {
namespace {

using testing::Answering;
using testing::Call;
using testing::fresh;
using testing::is_private;
using testing::is_shared;
using testing::NeedsSharing;
using testing::pass;
using testing::Plain;

const std::uint64_t page = page_bytes();
constexpr std::uint64_t kept = OwnMemory::most_kept_bytes;
constexpr std::uint64_t spare = OwnMemory::most_spare_bytes;

alignas(65536) std::array<char, kept + (1 << 20)> the_variables;

// Variables, private and zero for each test.
class Variables {
 public:
  Variables() = default;
  ~Variables() {
    mmap(the_variables.data(), the_variables.size(), PROT_READ | PROT_WRITE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  }
  Variables(const Variables&) = delete;
  Variables& operator=(const Variables&) = delete;
  char* start() const { return the_variables.data(); }
};

// Some of the variables' pages, used once.
bool use_once(OwnMemory& own, char* start, std::uint64_t bytes) {
  auto use = own.enter(start, bytes);
  return own.share(use) == use.range();
}

class OwnMemoryKeptTest : public NeedsSharing {};

TEST_F(OwnMemoryKeptTest, AsManyBytesStayAsTheBoundSays) {
  const Variables all;
  char* const variables = all.start();
  OwnMemory& own = fresh();
  ASSERT_TRUE(use_once(own, variables, kept - page));
  EXPECT_TRUE(is_shared(variables));
  ASSERT_TRUE(use_once(own, variables + kept, 2 * page));
  EXPECT_TRUE(is_private(variables + kept)) << "a page too many";
  ASSERT_TRUE(use_once(own, variables + kept, page));
  EXPECT_TRUE(is_shared(variables + kept)) << "as many as may stay";
  ASSERT_TRUE(use_once(own, variables + kept + 2 * page, page));
  EXPECT_TRUE(is_private(variables + kept + 2 * page)) << "a page too many";
  EXPECT_TRUE(is_shared(variables));
  EXPECT_TRUE(own.take_error().ok());
}

TEST_F(OwnMemoryKeptTest, PagesThatAreUsedAgainDoNotCount) {
  const Variables all;
  char* const variables = all.start();
  OwnMemory& own = fresh();
  ASSERT_TRUE(use_once(own, variables, kept));
  auto again = own.enter(variables, kept);
  ASSERT_FALSE(own.share(again).empty());
  ASSERT_TRUE(use_once(own, variables + kept, page));
  EXPECT_TRUE(is_shared(variables + kept));
  again.end();
  EXPECT_TRUE(is_private(variables)) << "with the page they are too many";
}

TEST_F(OwnMemoryKeptTest, AUseThatSharesNothingLeavesThem) {
  const Variables all;
  char* const variables = all.start();
  OwnMemory& own = fresh();
  ASSERT_TRUE(use_once(own, variables, kept));
  own.enter(variables + page, kept / 2).end();
  EXPECT_TRUE(is_shared(variables));
  EXPECT_TRUE(is_shared(variables + page));
}

TEST_F(OwnMemoryKeptTest, AsManyRangesStayAsTheBoundSays) {
  const Variables all;
  char* const variables = all.start();
  OwnMemory& own = fresh();
  for (std::size_t i = 0; i <= OwnMemory::most_kept_ranges; ++i)
    ASSERT_TRUE(use_once(own, variables + 2 * i * page, page));
  EXPECT_TRUE(is_shared(variables));
  EXPECT_TRUE(is_shared(variables + 2 * (OwnMemory::most_kept_ranges - 1) * page));
  EXPECT_TRUE(is_private(variables + 2 * OwnMemory::most_kept_ranges * page)) << "a range too many";
}

// The calls that map memory, or copy it.
template <class F>
int moves_of(F&& f) {
  int moves = 0;
  const Answering answering([&](const Call& call) {
    switch (call.number) {
      case SYS_mmap:
      case SYS_mremap:
      case SYS_mprotect:
      case SYS_pread64:
      case SYS_pwrite64:
      case SYS_lseek:
      case SYS_fallocate:
        ++moves;
    }
    return pass(call);
  });
  f();
  return moves;
}

TEST_F(OwnMemoryKeptTest, PagesThatStayCostNothingWhenTheyAreUsedAgain) {
  const Variables all;
  char* const variables = all.start();
  OwnMemory& own = fresh();
  variables[page] = 7;
  const auto use = [&] { ASSERT_TRUE(use_once(own, variables + 8, 5 * page)); };
  EXPECT_GT(moves_of(use), 0);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(moves_of(use), 0);
  EXPECT_EQ(variables[page], 7);
}

TEST_F(OwnMemoryKeptTest, AForkCopiesNoneOfALargeUse) {
  constexpr std::uint64_t most = OwnMemory::most_copied_bytes;
  const Plain large(most / page + 1);
  OwnMemory& own = fresh();
  const auto copies_of = [&](std::uint64_t bytes) {
    auto use = own.enter(large.at(0), bytes);
    EXPECT_FALSE(own.share(use).empty());
    const int moves = moves_of([&] { own.before_fork(); });
    own.after_fork(false);
    return moves;
  };
  EXPECT_GT(copies_of(most), 0);
  EXPECT_EQ(copies_of(most + page), 0);
}

// Pages at the end of the heap. Allocations of the program's first thread may move that end; those
// of its other threads lie elsewhere.
class EndOfHeap {
 public:
  explicit EndOfHeap(std::uint64_t pages) {
    const auto end = reinterpret_cast<std::uint64_t>(sbrk(0));
    bytes_ = (page - end % page) % page + pages * page;
    if (sbrk(static_cast<std::intptr_t>(bytes_)) == reinterpret_cast<void*>(-1)) bytes_ = 0;
    start_ = reinterpret_cast<char*>(end + bytes_ - pages * page);
  }
  ~EndOfHeap() { give_back(); }
  EndOfHeap(const EndOfHeap&) = delete;
  EndOfHeap& operator=(const EndOfHeap&) = delete;
  char* start() const { return start_; }
  void give_back() { sbrk(-static_cast<std::intptr_t>(std::exchange(bytes_, 0))); }

 private:
  char* start_;
  std::uint64_t bytes_;
};

template <class F>
void in_thread(F&& f) {
  std::thread(f).join();
}

bool map_anew(char* start, std::uint64_t bytes) {
  const bool mapped = mmap(start, bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == start;
  madvise(start, bytes, MADV_NOHUGEPAGE);  // so that it is a mapping of its own
  return mapped;
}

TEST_F(OwnMemoryKeptTest, AMappingInThePlaceOfPagesThatStayedMovesBack) {
  in_thread([] {
    EndOfHeap heap(2);
    OwnMemory& own = fresh();
    EXPECT_TRUE(use_once(own, heap.start(), 2 * page));
    EXPECT_TRUE(is_shared(heap.start()));
    heap.give_back();
    EXPECT_TRUE(map_anew(heap.start(), 2 * page));
    EXPECT_TRUE(use_once(own, heap.start(), 2 * page));
    EXPECT_TRUE(is_private(heap.start()));
    munmap(heap.start(), 2 * page);
  });
}

TEST_F(OwnMemoryKeptTest, PagesThatMayStayDoNotKeepTheirNeighbours) {
  in_thread([] {
    const EndOfHeap heap(2);
    char* const plain = heap.start() + 2 * page;
    EXPECT_TRUE(map_anew(plain, 2 * page));
    OwnMemory& own = fresh();
    EXPECT_TRUE(use_once(own, heap.start(), 4 * page));
    EXPECT_TRUE(is_private(plain));
    munmap(plain, 2 * page);
  });
}

// --- The memory of the file ---------------------------------------------------------------------

std::uint64_t bytes_of_file(OwnMemory& own) {
  struct stat shape = {};
  EXPECT_EQ(fstat(own.image().descriptor, &shape), 0);
  return static_cast<std::uint64_t>(shape.st_blocks) * 512;
}

TEST_F(OwnMemoryKeptTest, TheFileKeepsAsMuchMemoryAsTheBoundSays) {
  const Plain large(spare / page);
  const Plain small(2);
  std::memset(large.at(0), 1, large.bytes());
  std::memset(small.at(0), 2, small.bytes());
  OwnMemory& own = fresh();
  ASSERT_TRUE(use_once(own, large.at(0), spare));
  EXPECT_EQ(bytes_of_file(own), spare);
  ASSERT_TRUE(use_once(own, small.at(0), page));
  EXPECT_EQ(bytes_of_file(own), spare) << "a page too many";
  auto use = own.enter(large.at(0), spare);
  ASSERT_FALSE(own.share(use).empty());
  ASSERT_TRUE(use_once(own, small.at(0), page));
  EXPECT_EQ(bytes_of_file(own), spare + page) << "pages in use do not count";
  use.end();
  EXPECT_EQ(bytes_of_file(own), page) << "with that page they are too many";
  EXPECT_EQ(*large.at(spare - 1), 1);
  EXPECT_EQ(*small.at(0), 2);
}

}  // namespace
}  // namespace tombolo::host
