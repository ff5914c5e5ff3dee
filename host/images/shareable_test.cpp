// SPDX-License-Identifier: Apache-2.0
// Purpose: which pages may move to the image: each kind of memory, with other variables and
// without.
#include "host/images/shareable.h"

#include <gtest/gtest.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

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

TEST(ShareableTest, AMissingLastPageKeepsAll) {
  const Plain plain(4);
  munmap(plain.page(3), page);
  EXPECT_TRUE(ask(plain.pages(0, 3), false).may);
  EXPECT_FALSE(ask(plain.range(), false).may);
}

TEST(ShareableTest, PagesOfTheImageThatAreReadOnlyMayNot) {
  const Plain plain(2);
  MemoryImage image;
  if (!image.open().ok()) GTEST_SKIP() << "no image here";
  if (!image.move_in(plain.range(), MemoryImage::Hold::no, false).ok())
    GTEST_SKIP() << "nothing can be moved here";
  std::vector<PrivatePages> found = {{plain.range()}};
  ASSERT_TRUE(find_private_pages(image, plain.range(), false, 0, found));
  EXPECT_TRUE(found.empty());
  ASSERT_EQ(mprotect(plain.page(1), page, PROT_READ), 0);
  EXPECT_FALSE(find_private_pages(image, plain.range(), false, 0, found));
}

// Its stores are of the file's copy of this process; others map the file itself.
TEST(ShareableTest, APrivateMappingOfAFileMayNot) {
  const int file = memfd_create("shareable_test", MFD_CLOEXEC);
  ASSERT_GE(file, 0);
  ASSERT_EQ(ftruncate(file, static_cast<off_t>(2 * page)), 0);
  const Plain plain(4);
  ASSERT_NE(mmap(plain.page(1), 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, file, 0),
            MAP_FAILED);
  close(file);
  EXPECT_FALSE(ask(plain.pages(1, 2), false).may);
}

// glibc changes it in a forked child before handlers of the program run.
TEST(ShareableTest, TheStartOfAnArenaMayNotWithEdges) {
  constexpr std::uint64_t arena = std::uint64_t{64} << 20;
  const Plain plain(2 * arena / page);
  const auto low = reinterpret_cast<std::uint64_t>(plain.at(0));
  const std::uint64_t start = (low + arena - 1) / arena * arena;
  // Like an arena, it has memory below that cannot be accessed, and it is no stack all the same.
  ASSERT_EQ(mprotect(plain.at(0), start - low, PROT_NONE), 0);
  const AddressRange first{start, start + page};
  const AddressRange second{start + page, start + 2 * page};
  EXPECT_FALSE(ask(first, true).may);
  EXPECT_TRUE(ask(first, false).may);
  EXPECT_TRUE(ask(second, true).may);
}

TEST(ShareableTest, AStackIsTheCallersUpToItsLastByte) {
  const Plain plain(4);
  ASSERT_EQ(mprotect(plain.page(0), page, PROT_NONE), 0);
  ASSERT_EQ(mprotect(plain.page(3), page, PROT_NONE), 0);
  const AddressRange pages = plain.pages(1, 1);
  EXPECT_TRUE(ask(pages, true, plain.page(1)).may);
  EXPECT_TRUE(ask(pages, true, plain.page(3) - 1).may);
  EXPECT_FALSE(ask(pages, true, plain.page(3)).may);
}

// The first page that a program may write to may hold constants, too, and the last one no more than
// the first byte of a variable.
alignas(65536) std::array<char, 65536 + 1> odd_end = {1};

TEST(ShareableTest, PartsOfVariablesMayStay) {
  for (const char* byte : {&odd_end.front(), &odd_end.back(), &in_bss.front(), &in_bss.back()}) {
    const Answer answer = ask(pages_around(byte, 1), true);
    ASSERT_TRUE(answer.may);
    for (const PrivatePages& part : answer.found) EXPECT_TRUE(part.may_stay);
  }
}

// As tables that the loader has filled.
TEST(ShareableTest, VariablesThatAreReadOnlyMayNot) {
  const AddressRange first = pages_around(&odd_end.front(), 1);
  ASSERT_TRUE(ask(first, true).may);
  ASSERT_EQ(mprotect(odd_end.data(), page, PROT_READ), 0);
  EXPECT_FALSE(ask(first, true).may);
  ASSERT_EQ(mprotect(odd_end.data(), page, PROT_READ | PROT_WRITE), 0);
}

struct Segment {
  AddressRange pages;
  bool writable;
};

// Of all files that are loaded.
std::vector<Segment> segments() {
  std::vector<Segment> all;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* to) {
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& segment = info->dlpi_phdr[i];
          if (segment.p_type != PT_LOAD) continue;
          const auto* start = reinterpret_cast<const void*>(info->dlpi_addr + segment.p_vaddr);
          static_cast<std::vector<Segment>*>(to)->push_back(
              {pages_around(start, segment.p_memsz), (segment.p_flags & PF_W) != 0});
        }
        return 0;
      },
      &all);
  return all;
}

alignas(65536) const char constants[65536] = {1};

// A program may well write to its constants or its code for a moment.
TEST(ShareableTest, PagesWithoutVariablesThatCanBeWrittenToMayNot) {
  auto* const start = const_cast<char*>(constants);
  ASSERT_EQ(mprotect(start, page, PROT_READ | PROT_WRITE), 0);
  EXPECT_FALSE(ask(pages_around(start, 1), true).may);
  ASSERT_EQ(mprotect(start, page, PROT_READ), 0);
}

// The first and the last page of each. Those that may be moved may all stay.
TEST(ShareableTest, AllPagesWithVariablesMayStayAndNoOthers) {
  int may = 0;
  for (const Segment& segment : segments()) {
    for (const std::uint64_t low : {segment.pages.low, segment.pages.high - page}) {
      const Answer answer = ask({low, low + page}, false);
      EXPECT_TRUE(segment.writable || !answer.may);
      if (!answer.may) continue;  // it is read only once the program is loaded
      ++may;
      for (const PrivatePages& part : answer.found) EXPECT_TRUE(part.may_stay);
    }
  }
  EXPECT_GT(may, 2);
}

}  // namespace
}  // namespace tombolo::host
