// SPDX-License-Identifier: Apache-2.0
// Purpose: page arithmetic, the parser of /proc/self/maps, and which memory is found replaceable.
#include "host/memory/address_space.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cstring>

namespace tombolo::host {
namespace {

constexpr std::uint64_t page = 4096;

TEST(WholePages, LieInsideTheRange) {
  EXPECT_EQ(whole_pages({0x1000, 0x3000}, page), (AddressRange{0x1000, 0x3000}));
  EXPECT_EQ(whole_pages({0x1001, 0x3fff}, page), (AddressRange{0x2000, 0x3000}));
  EXPECT_EQ(whole_pages({0x0fff, 0x3001}, page), (AddressRange{0x1000, 0x3000}));
}

TEST(WholePages, MayBeNone) {
  EXPECT_TRUE(whole_pages({0x1001, 0x2fff}, page).empty()) << "two parts of pages";
  EXPECT_TRUE(whole_pages({0x1008, 0x1010}, page).empty()) << "inside one page";
  EXPECT_TRUE(whole_pages({0x1000, 0x1fff}, page).empty());
  EXPECT_TRUE(whole_pages({0x1000, 0x1000}, page).empty());
  EXPECT_TRUE(whole_pages({~std::uint64_t{0} - 8, ~std::uint64_t{0}}, page).empty());
}

TEST(Ranges, OverlapOnlyWithBytesInCommon) {
  const AddressRange range{0x1000, 0x2000};
  EXPECT_TRUE(range.overlaps({0x1fff, 0x3000}));
  EXPECT_TRUE(range.overlaps({0x0000, 0x9000}));
  EXPECT_FALSE(range.overlaps({0x2000, 0x3000}));
  EXPECT_FALSE(range.overlaps({0x1800, 0x1800}));
}

constexpr std::string_view maps =
    "00010000-00012000 rw-p 00000000 00:00 0 \n"
    "00012000-00015000 rw-p 00000000 00:00 0                                  [heap]\n"
    "00016000-00018000 rw-p 00000000 00:00 0                                  [anon:glibc: "
    "malloc]\n"
    "00018000-00019000 rw-p 00003000 fe:00 10142973                           /tmp/a program\n"
    "00019000-0001f000 rw-s 00002000 00:01 1027                               /memfd:x (deleted)\n"
    "00020000-00030000 rwxp 00000000 00:00 0 \n"
    "00030000-00040000 r--p 00000000 00:00 0 \n"
    "00040000-00050000 rw-p 00000000 00:0f 77                                 /anon_hugepage "
    "(deleted)\n"
    "not a line of the kernel\n"
    "7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0                          [stack]\n";

TEST(Mappings, AreParsed) {
  const auto mappings = parse_mappings(maps);
  ASSERT_EQ(mappings.size(), 9u);
  EXPECT_EQ(mappings[0].range, (AddressRange{0x10000, 0x12000}));
  EXPECT_EQ(mappings[0].access, "rw-p");
  EXPECT_EQ(mappings[0].name, "");
  EXPECT_EQ(mappings[1].name, "[heap]");
  EXPECT_EQ(mappings[3].name, "/tmp/a program");
  EXPECT_EQ(mappings[3].offset, 0x3000u);
  EXPECT_EQ(mappings[3].inode, 10142973u);
  EXPECT_EQ(mappings[3].device, makedev(0xfe, 0));
  EXPECT_EQ(mappings[4].device, makedev(0, 1));
  EXPECT_EQ(mappings[8].range.high, 0x7ffc00021000u);
}

TEST(Mappings, ArePlainMemoryIfPrivateAnonymousAndNoStack) {
  const bool plain[] = {true, true, true, false, false, false, false, false, false};
  const auto mappings = parse_mappings(maps);
  for (std::size_t i = 0; i < mappings.size(); ++i)
    EXPECT_EQ(is_plain_memory(mappings[i]), plain[i]) << mappings[i].name << " " << i;
}

TEST(Mappings, OfThisProcessAreFound) {
  std::vector<Mapping> mappings;
  ASSERT_TRUE(read_mappings(mappings).ok());
  const auto here = reinterpret_cast<std::uint64_t>(&mappings);
  bool found = false;
  for (const Mapping& mapping : mappings)
    if (mapping.range.low <= here && here < mapping.range.high) found = mapping.name == "[stack]";
  EXPECT_TRUE(found);
}

TEST(RegisteredMemory, IsSuspectedWhereDevicesAreMappedOrPagesPinned) {
  constexpr std::string_view free = "VmPeak:\t 12 kB\nVmLck:\t       0 kB\nVmPin:\t       0 kB\n";
  const auto mappings = parse_mappings(maps);
  EXPECT_FALSE(memory_may_be_registered(mappings, free));
  EXPECT_TRUE(memory_may_be_registered(mappings, "VmLck:\t       4 kB\nVmPin:\t       0 kB\n"));
  EXPECT_TRUE(memory_may_be_registered(mappings, "VmLck:\t       0 kB\nVmPin:\t       64 kB\n"));
  EXPECT_TRUE(memory_may_be_registered(
      parse_mappings("7f0000000000-7f0000001000 rw-s 0000 00:05 9 /dev/infiniband/uverbs0\n"),
      free));
  EXPECT_FALSE(memory_may_be_registered(
      parse_mappings("7f0000000000-7f0000001000 rw-s 0000 00:05 9 /dev/shm/segment\n"), free));
}

TEST(Pages, AreAbsentReadOrPresent) {
  const auto bytes = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  void* memory = mmap(nullptr, 3 * bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  madvise(memory, 3 * bytes, MADV_NOHUGEPAGE);
  auto* at = static_cast<volatile char*>(memory);
  (void)at[bytes];
  at[2 * bytes] = 1;
  const auto low = reinterpret_cast<std::uint64_t>(memory);
  std::vector<Page> pages;
  const Status status = read_pages({low, low + 3 * bytes}, bytes, pages);
  if (!status.ok()) GTEST_SKIP() << status.message();
  EXPECT_EQ(pages, (std::vector{Page::absent, Page::read, Page::present}));
  munmap(memory, 3 * bytes);
}

}  // namespace
}  // namespace tombolo::host
