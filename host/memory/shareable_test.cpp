// SPDX-License-Identifier: Apache-2.0
// Purpose: which pages may move to the image: each kind of memory, with other variables and
// without.
#include "host/memory/shareable.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "host/memory/page.h"
#include "host/memory/testing/memory.h"

namespace tombolo::host {
namespace {

using testing::Plain;

const std::uint64_t page = page_bytes();
std::array<char, 5000> in_bss;
std::array<char, 5000> in_data = {1};

AddressRange pages_around(const void* start, std::uint64_t bytes) {
  const auto low = reinterpret_cast<std::uint64_t>(start);
  return {low / page * page, (low + bytes + page - 1) / page * page};
}

struct Answer {
  bool may;
  std::vector<PrivatePages> found;
};
Answer ask(const AddressRange& pages, bool edges, const void* stack = nullptr) {
  Answer answer;
  answer.may = find_private_pages(MemoryImage(), pages, edges,
                                  reinterpret_cast<std::uint64_t>(stack), answer.found);
  return answer;
}

TEST(ShareableTest, VariablesMayAndMayStay) {
  for (const auto* variables : {&in_bss, &in_data}) {
    const Answer answer = ask(pages_around(variables->data(), variables->size()), true);
    ASSERT_TRUE(answer.may);
    for (const PrivatePages& part : answer.found) EXPECT_TRUE(part.may_stay);
  }
}

TEST(ShareableTest, TheHeapMayAndMayStay) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer has its own heap";
#endif
  void* const piece = std::malloc(3000);
  std::memset(piece, 1, 3000);
  const Answer answer = ask(pages_around(piece, 3000), true);
  ASSERT_TRUE(answer.may);
  ASSERT_EQ(answer.found.size(), 1u);
  EXPECT_TRUE(answer.found[0].may_stay);
  EXPECT_FALSE(answer.found[0].of_file);
  std::free(piece);
}

TEST(ShareableTest, MappedMemoryMayButNotStay) {
  const Plain plain(3);
  const Answer answer = ask(plain.range(), false);
  ASSERT_TRUE(answer.may);
  ASSERT_EQ(answer.found.size(), 1u);
  EXPECT_EQ(answer.found[0].range, plain.range());
  EXPECT_FALSE(answer.found[0].may_stay);
}

// With a page below it that cannot be accessed.
TEST(ShareableTest, MemoryLikeAnotherThreadsStackMayWithoutEdgesOnly) {
  const Plain plain(4);
  ASSERT_EQ(mprotect(plain.page(0), page, PROT_NONE), 0);
  const AddressRange pages = plain.pages(1, 2);
  EXPECT_TRUE(ask(pages, false).may);
  EXPECT_FALSE(ask(pages, true).may);
  EXPECT_TRUE(ask(pages, true, plain.page(2)).may) << "the caller's own stack";
}

TEST(ShareableTest, TheCallersStackMayWhereTheCallerIsOnAnother) {
  std::array<char, 100> array{};
  const AddressRange pages = pages_around(array.data(), array.size());
  EXPECT_TRUE(ask(pages, true, array.data()).may);
  EXPECT_FALSE(ask(pages, true).may);
}

TEST(ShareableTest, AnotherThreadsStackMayNot) {
  std::atomic<const char*> there{nullptr};
  std::atomic<bool> done{false};
  std::thread other([&] {
    const char array[64] = {};
    there = array;
    while (!done) std::this_thread::yield();
  });
  while (there == nullptr) std::this_thread::yield();
  const char here = 0;
  EXPECT_FALSE(ask(pages_around(there, 64), true, &here).may);
  done = true;
  other.join();
}

TEST(ShareableTest, AThreadsOwnDataMayNotWithEdges) {
  const void* const data = __builtin_thread_pointer();
  const char here = 0;
  EXPECT_FALSE(ask(pages_around(data, 8), true, &here).may);
}

TEST(ShareableTest, AHoleOrOtherMemoryInBetweenKeepsAll) {
  const Plain plain(4);
  const AddressRange all = plain.range();
  ASSERT_EQ(mprotect(plain.page(1), page, PROT_READ), 0);
  EXPECT_FALSE(ask(all, false).may) << "to be read only";
  ASSERT_EQ(mprotect(plain.page(1), page, PROT_READ | PROT_WRITE), 0);
  EXPECT_TRUE(ask(all, false).may);
  ASSERT_NE(mmap(plain.page(2), page, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
            MAP_FAILED);
  EXPECT_FALSE(ask(all, false).may) << "shared memory of the program";
  munmap(plain.page(2), page);
  EXPECT_FALSE(ask(all, false).may) << "a hole";
  EXPECT_FALSE(ask({page, ~std::uint64_t{0} / page * page}, false).may) << "all addresses";
}

TEST(ShareableTest, PagesOfTheImageNeedNotMove) {
  const Plain plain(3);
  MemoryImage image;
  if (!image.open().ok()) GTEST_SKIP() << "no image here";
  if (!image.move_in(plain.pages(1, 1), MemoryImage::Hold::no, false).ok())
    GTEST_SKIP() << "nothing can be moved here";
  std::vector<PrivatePages> found;
  ASSERT_TRUE(find_private_pages(image, plain.range(), false, 0, found));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].range, plain.pages(0, 1));
  EXPECT_EQ(found[1].range, plain.pages(2, 1));
  EXPECT_FALSE(find_private_pages(MemoryImage(), plain.range(), false, 0, found)) << "another's";
}

}  // namespace
}  // namespace tombolo::host
