// SPDX-License-Identifier: Apache-2.0
// Purpose: parts of mapped memory that a program has not unmapped stay its own.
#include "pthreads/program/mappings.h"

#include <gtest/gtest.h>

#include <vector>

#include "dsm/allocator/class_heap.h"
#include "dsm/testing/mapped_threads.h"
#include "host/memory/page.h"

namespace tombolo::dsm {
namespace {

using host::AddressRange;

std::vector<AddressRange> discarded;
void discard(const AddressRange& range) { discarded.push_back(range); }

struct Maps {
  testing::MappedThreads all{{.threads = 1,
                              .locks = ClassHeap::locks + Mappings::locks,
                              .words = ClassHeap::words + Mappings::words}};
  ClassHeap heap{all[0], all.memory(), 0, 0};
  Mappings mappings{all[0], heap, ClassHeap::words, ClassHeap::locks};
  std::uint64_t page = host::page_bytes();

  Maps() { discarded.clear(); }
  AddressRange map(std::uint64_t pages) {
    const auto low = reinterpret_cast<std::uint64_t>(mappings.map(pages * page));
    return {low, low + pages * page};
  }
  AddressRange pages(const AddressRange& of, std::uint64_t from, std::uint64_t to) const {
    return {of.low + from * page, of.low + to * page};
  }
  void unmap(const AddressRange& range) { mappings.unmap(range, &discard); }
};

TEST(Mappings, AWholeMappingIsUsedAgain) {
  Maps maps;
  const AddressRange first = maps.map(5);
  const AddressRange second = maps.map(5);
  EXPECT_TRUE(maps.mappings.holds(first) && maps.mappings.holds(second));
  EXPECT_FALSE(first.overlaps(second));
  maps.unmap(first);
  EXPECT_FALSE(maps.mappings.holds(first));
  EXPECT_TRUE(maps.mappings.holds(second));
  EXPECT_EQ(maps.map(5), first);
  EXPECT_TRUE(discarded.empty());
}

// MPP1
TEST(Mappings, TheRestOfATrimmedMappingStays) {
  Maps maps;
  const AddressRange all = maps.map(8);
  const AddressRange head = maps.pages(all, 0, 5);
  const AddressRange tail = maps.pages(all, 7, 8);
  const AddressRange rest = maps.pages(all, 5, 7);
  maps.unmap(head);
  maps.unmap(tail);
  EXPECT_EQ(discarded, (std::vector{head, tail}));
  EXPECT_TRUE(maps.mappings.holds(rest));
  EXPECT_FALSE(maps.mappings.holds({rest.low - maps.page, rest.high}));
  EXPECT_FALSE(maps.mappings.holds({rest.low, rest.high + maps.page}));
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(maps.map(8).overlaps(all));
  maps.unmap(rest);
  EXPECT_EQ(maps.map(8), all);
}

TEST(Mappings, AHoleLeavesTwoPieces) {
  Maps maps;
  const AddressRange all = maps.map(6);
  maps.unmap(maps.pages(all, 2, 4));
  EXPECT_EQ(discarded, std::vector{maps.pages(all, 2, 4)});
  EXPECT_TRUE(maps.mappings.holds(maps.pages(all, 0, 2)));
  EXPECT_TRUE(maps.mappings.holds(maps.pages(all, 4, 6)));
  EXPECT_FALSE(maps.mappings.holds(maps.pages(all, 1, 3)));
  EXPECT_FALSE(maps.mappings.holds(maps.pages(all, 3, 5)));
  maps.unmap(maps.pages(all, 4, 6));
  EXPECT_FALSE(maps.map(6).overlaps(all)) << "two of its pages are mapped";
  maps.unmap(maps.pages(all, 0, 2));
  EXPECT_EQ(maps.map(6), all);
}

TEST(Mappings, OneCallUnmapsPiecesOfOneBlockAndOfSeveral) {
  Maps maps;
  const AddressRange first = maps.map(6);
  const AddressRange second = maps.map(6);
  const AddressRange third = maps.map(6);
  ASSERT_TRUE(first.high <= second.low && second.high <= third.low);
  maps.unmap(maps.pages(second, 2, 3));
  maps.unmap({first.low + maps.page, third.high - maps.page});
  EXPECT_TRUE(maps.mappings.holds(maps.pages(first, 0, 1)));
  EXPECT_TRUE(maps.mappings.holds(maps.pages(third, 5, 6)));
  EXPECT_FALSE(maps.mappings.holds(maps.pages(first, 1, 2)));
  EXPECT_FALSE(maps.mappings.holds(maps.pages(third, 4, 5)));
  EXPECT_EQ(maps.map(6), second) << "its block went back once";
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(maps.map(6).overlaps({first.low, third.high}));
}

TEST(Mappings, HoldAcrossTheBordersOfPieces) {
  Maps maps;
  const AddressRange all = maps.map(4);
  maps.unmap(maps.pages(all, 1, 2));
  EXPECT_TRUE(maps.mappings.holds(maps.pages(all, 2, 4)));
  EXPECT_FALSE(maps.mappings.holds(all));
  EXPECT_FALSE(maps.mappings.holds({all.high, all.high + 1}));
}

TEST(Mappings, WithoutMemoryThereIsNone) {
  Maps maps;
  const AddressRange all = maps.map(100);
  EXPECT_EQ(maps.mappings.map(200 * maps.page), nullptr);
  EXPECT_TRUE(maps.mappings.holds(all));
}

}  // namespace
}  // namespace tombolo::dsm
