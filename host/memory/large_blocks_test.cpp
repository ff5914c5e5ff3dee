// SPDX-License-Identifier: Apache-2.0
// Purpose: where malloc takes large blocks from. Each case is a process of its own, since a process
// cannot ask its allocator for its settings, nor go back to those it started with.
#include "host/memory/large_blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "host/memory/mapping_query.h"

namespace tombolo::host {
namespace {

constexpr std::size_t mebibyte = std::size_t{1} << 20;

bool on_heap(std::uint64_t low, std::size_t bytes) {
  std::vector<Mapping> mappings;
  // A child's heap may be two mappings: its parent's, and its own addition.
  return read_mappings(AddressRange{low, low + bytes}, mappings).ok() && !mappings.empty() &&
         std::all_of(mappings.begin(), mappings.end(),
                     [](const Mapping& mapping) { return mapping.name == "[heap]"; });
}

bool malloc_takes_from_heap(std::size_t bytes) {
  void* const block = std::malloc(bytes);
  const bool from_heap = block != nullptr && on_heap(reinterpret_cast<std::uint64_t>(block), bytes);
  std::free(block);
  return from_heap;
}

bool memalign_takes_from_heap(std::size_t bytes) {
  void* block = nullptr;
  const bool from_heap = posix_memalign(&block, 4096, bytes) == 0 &&
                         on_heap(reinterpret_cast<std::uint64_t>(block), bytes);
  std::free(block);
  return from_heap;
}

// In a child: exits with 0 if `holds` does.
template <class Holds>
void expect_in_a_process(Holds&& holds) {
  EXPECT_EXIT(std::_Exit(holds() ? 0 : 1), testing::ExitedWithCode(0), "");
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool allocator_is_glibcs = false;
#else
constexpr bool allocator_is_glibcs = true;
#endif

class LargeBlocks : public testing::Test {
 protected:
  void SetUp() override {
    if (!allocator_is_glibcs) GTEST_SKIP() << "sanitizers bring an allocator of their own";
  }
};

TEST_F(LargeBlocks, AreMappingsAtFirst) {
  expect_in_a_process([] { return !malloc_takes_from_heap(mebibyte); });
}

TEST_F(LargeBlocks, LieOnTheHeapOnceAskedFor) {
  expect_in_a_process([] {
    return take_large_blocks_from_heap() && malloc_takes_from_heap(mebibyte) &&
           memalign_takes_from_heap(mebibyte) && memalign_takes_from_heap(mebibyte) &&
           malloc_takes_from_heap(most_on_heap_bytes - mebibyte);
  });
}

TEST_F(LargeBlocks, OfMoreThanTheLimitStayMappings) {
  expect_in_a_process(
      [] { return take_large_blocks_from_heap() && !malloc_takes_from_heap(most_on_heap_bytes); });
}

// The next block then needs no pages of the kernel.
TEST_F(LargeBlocks, LeaveTheirPagesToTheHeap) {
  expect_in_a_process([] {
    if (!take_large_blocks_from_heap()) return false;
    void* const block = std::malloc(8 * mebibyte);
    const auto low = reinterpret_cast<std::uint64_t>(block);
    std::free(block);
    std::vector<Mapping> mappings;
    return read_mappings(AddressRange{low, low + mebibyte}, mappings).ok() && !mappings.empty();
  });
}

TEST_F(LargeBlocks, AreLeftToTheUsersSettings) {
  for (const char* setting :
       {"MALLOC_MMAP_THRESHOLD_", "MALLOC_MMAP_MAX_", "MALLOC_TRIM_THRESHOLD_"})
    expect_in_a_process([setting] {
      setenv(setting, "131072", 1);
      return !take_large_blocks_from_heap() && !malloc_takes_from_heap(mebibyte);
    });
  expect_in_a_process([] {
    setenv("GLIBC_TUNABLES", "glibc.malloc.mmap_threshold=131072", 1);
    return !take_large_blocks_from_heap() && !malloc_takes_from_heap(mebibyte);
  });
  expect_in_a_process([] {
    setenv("GLIBC_TUNABLES", "glibc.pthread.rseq=0", 1);
    return take_large_blocks_from_heap() && malloc_takes_from_heap(mebibyte);
  });
}

}  // namespace
}  // namespace tombolo::host
