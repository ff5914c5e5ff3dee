// SPDX-License-Identifier: Apache-2.0
// Purpose: a page store by faults keeps the promises of page_store.h and its own, by each mechanism
// that the kernel has.
// Thread safety: -
#include "dsm/pages/fault_pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>
#include <set>
#include <utility>
#include <vector>

#include "base/random.h"
#include "dsm/protocol/page_diff.h"
#include "host/memory/address_space.h"
#include "host/memory/page.h"
#include "host/memory/testing/memory.h"

namespace tombolo::dsm {
namespace {

using host::FaultMechanism;
using host::testing::in_child;

const std::size_t host_page = host::page_bytes();
#if defined(__SANITIZE_ADDRESS__)
constexpr bool sanitized = true;  // its handlers are behind ours
#else
constexpr bool sanitized = false;
#endif

Shape shape_of(Page pages, std::uint32_t cached_pages) {
  return {.pages = pages, .page_bytes = host_page, .cached_pages = cached_pages};
}

PageBytes filled(std::size_t bytes, int value) { return PageBytes(bytes, std::byte(value)); }

// Installs pages that are filled with 1 + page % 100, and gives up pages that the store proposes.
class Filling : public MissHandler {
 public:
  Filling(FaultPages& pages, std::size_t page_bytes) : pages_(pages), page_bytes_(page_bytes) {}
  Status read_miss(Page page) override {
    if (fails) return Status::io("gone");
    if (idle) return {};
    reads.push_back(page);
    fetch(page);
    return {};
  }
  Status write_miss(Page page) override {
    writes.push_back(page);
    if (pages_.lookup(page) == nullptr) fetch(page);
    pages_.make_twin(page);
    pages_.allow_writes(page);
    return {};
  }
  bool may_access(const void* address) override { return address != forbidden; }

  std::vector<Page> reads;
  std::vector<Page> writes;
  const void* forbidden = nullptr;
  bool fails = false;
  bool idle = false;

 private:
  void fetch(Page page) {
    if (pages_.full()) pages_.invalidate(pages_.victim());
    pages_.install(page, filled(page_bytes_, 1 + static_cast<int>(page % 100)));
  }

  FaultPages& pages_;
  std::size_t page_bytes_;
};

class FaultPagesTest : public ::testing::TestWithParam<FaultMechanism> {
 protected:
  void SetUp() override {
    const Status status = host::available(GetParam());
    if (!status.ok()) GTEST_SKIP() << status.message();
  }
  void make(const Shape& shape, void* address = nullptr) {
    handler.reset();
    pages.reset();
    const Status made =
        FaultPages::create(shape, {.mechanism = GetParam(), .address = address}, pages);
    ASSERT_TRUE(made.ok()) << made.message();
    bytes = shape.page_bytes;
    handler = std::make_unique<Filling>(*pages, bytes);
    pages->on_miss(*handler);
  }
  volatile char& at(Page page, std::size_t offset = 0) {
    return *reinterpret_cast<char*>(pages->memory().data() + page * bytes + offset);
  }
  int load(Page page, std::size_t offset = 0) { return at(page, offset); }
  // Faults since the last call: of loads, and of stores.
  std::pair<std::vector<Page>, std::vector<Page>> misses() {
    return {std::exchange(handler->reads, {}), std::exchange(handler->writes, {})};
  }

  std::unique_ptr<FaultPages> pages;
  std::unique_ptr<Filling> handler;
  std::size_t bytes = 0;
};
using Misses = std::pair<std::vector<Page>, std::vector<Page>>;

// ---- Accesses -----------------------------------------------------------------------------------

TEST_P(FaultPagesTest, TheFirstLoadAndTheFirstStoreOfAPageMiss) {
  make(shape_of(8, 4));
  EXPECT_EQ(at(3), 4);
  EXPECT_EQ(misses(), Misses({3}, {}));
  EXPECT_EQ(at(3, 17), 4);
  EXPECT_EQ(misses(), Misses({}, {}));
  at(3, 5) = 9;
  EXPECT_EQ(misses(), Misses({}, {3}));
  at(3, 6) = 9;
  EXPECT_EQ(at(3, 5), 9);
  EXPECT_EQ(misses(), Misses({}, {}));
}

TEST_P(FaultPagesTest, AStoreToAnAbsentPageIsOneMiss) {
  make(shape_of(8, 4));
  at(7, bytes - 1) = 1;
  EXPECT_EQ(misses(), Misses({}, {7}));
  EXPECT_EQ(at(7, 0), 8);
  EXPECT_EQ(misses(), Misses({}, {}));
}

TEST_P(FaultPagesTest, AnAccessOverTwoPagesMissesBoth) {
  make(shape_of(8, 4));
  std::uint64_t value = 0;
  std::memcpy(&value, const_cast<char*>(&at(1, bytes - 4)), sizeof value);
  EXPECT_EQ(value, 0x03030303'02020202u);
  EXPECT_EQ(misses(), Misses({1, 2}, {}));
}

TEST_P(FaultPagesTest, APageMayBeMadeOfSeveralOfTheHost) {
  make({.pages = 4, .page_bytes = 4 * host_page, .cached_pages = 4});
  EXPECT_EQ(at(2, 4 * host_page - 1), 3);
  EXPECT_EQ(at(2, 0), 3);
  EXPECT_EQ(misses(), Misses({2}, {}));
  at(2, host_page) = 5;
  at(2, 3 * host_page) = 6;
  EXPECT_EQ(misses(), Misses({}, {2}));
  pages->forbid_writes(2);
  at(2, 0) = 7;
  EXPECT_EQ(misses(), Misses({}, {2}));
  pages->invalidate(2);
  EXPECT_EQ(at(2, 2 * host_page), 3);
  EXPECT_EQ(misses(), Misses({2}, {}));
}

TEST_P(FaultPagesTest, WhatIsForbiddenOrDroppedMissesAgain) {
  make(shape_of(8, 4));
  at(2) = 50;
  pages->forbid_writes(2);
  EXPECT_EQ(at(2), 50);
  misses();
  at(2) = 51;
  EXPECT_EQ(misses(), Misses({}, {2}));
  pages->invalidate(2);
  EXPECT_EQ(at(2), 3);
  EXPECT_EQ(misses(), Misses({2}, {}));
  at(2, 1) = 52;
  pages->invalidate(2);
  at(2, 2) = 53;
  EXPECT_EQ(misses(), Misses({}, {2, 2}));
  EXPECT_EQ(at(2, 1), 3);
}

// Everything at random, against a model.
TEST_P(FaultPagesTest, TheViewFollowsTheStatesWhateverHappens) {
  constexpr Page number = 12;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    Random random = Random::stream(seed, 1);
    make(shape_of(number, static_cast<std::uint32_t>(4 + random.below(6))));
    std::set<Page> readable;
    std::set<Page> writable;
    const auto forget = [&](Page page) { readable.erase(page), writable.erase(page); };
    for (int step = 0; step < 400; ++step) {
      {
        // Some steps change several pages together.
        std::unique_ptr<FaultPages::RuntimeCall> call;
        const std::uint64_t changes = random.below(6);
        if (random.one_in(2)) call = std::make_unique<FaultPages::RuntimeCall>(*pages);
        for (std::uint64_t i = 0; i < changes; ++i) {
          const Page page = random.below(number);
          const std::uint64_t what = random.below(4);
          if (pages->lookup(page) == nullptr) {
            if (pages->full()) continue;
            pages->install(page, filled(bytes, 1 + static_cast<int>(page)));
            readable.insert(page);
          } else if (what == 0) {
            pages->invalidate(page);
            forget(page);
          } else if (what == 1) {
            pages->allow_writes(page);
            writable.insert(page);
          } else {
            pages->forbid_writes(page);
            writable.erase(page);
          }
        }
      }
      ASSERT_EQ(pages->cached(), std::vector<Page>(readable.begin(), readable.end()));
      ASSERT_EQ(pages->written(), std::vector<Page>(writable.begin(), writable.end()));
      const Page page = random.below(number);
      const bool store = random.one_in(2);
      const bool allowed = store ? writable.contains(page) : readable.contains(page);
      const bool evicts = !readable.contains(page) && pages->full();
      const Page victim = evicts ? pages->victim() : 0;
      misses();
      if (store)
        at(page, 8) = 1;
      else
        load(page, 8);
      const auto [reads, writes] = misses();
      ASSERT_EQ(reads.size() + writes.size(), allowed ? 0u : 1u) << "page " << page;
      ASSERT_EQ(writes.empty(), allowed || !store);
      if (evicts) forget(victim);
      readable.insert(page);
      if (store) writable.insert(page);
    }
  }
}

// ---- Frames, twins, slots -----------------------------------------------------------------------

TEST_P(FaultPagesTest, FramesAreThePagesAsTheProgramSeesThem) {
  make(shape_of(4, 4));
  at(1, 7) = 70;
  EXPECT_EQ(pages->frame(1).size(), bytes);
  EXPECT_EQ(pages->frame(1)[7], std::byte{70});
  pages->frame(1)[8] = std::byte{80};
  EXPECT_EQ(at(1, 8), 80);
  // While the program may only read it, too.
  pages->forbid_writes(1);
  pages->frame(1)[9] = std::byte{90};
  EXPECT_EQ(at(1, 9), 90);
}

TEST_P(FaultPagesTest, TwinsAreCopiesOfThatMoment) {
  make(shape_of(4, 4));
  at(1, 7) = 70;
  at(3, 7) = 71;
  EXPECT_EQ(pages->twin(1)[7], std::byte{2});
  EXPECT_EQ(pages->twin(3)[7], std::byte{4});
  pages->make_twin(1);
  at(1, 7) = 72;
  EXPECT_EQ(pages->twin(1)[7], std::byte{70});
  EXPECT_EQ(pages->twin(1).size(), bytes);
  EXPECT_EQ(pages->twin(3)[7], std::byte{4});
}

TEST_P(FaultPagesTest, NotesStayWithThePageAndBeginEmpty) {
  make(shape_of(4, 4));
  load(1);
  pages->lookup(1)->version = 7;
  pages->lookup(1)->kept = true;
  at(1) = 1;
  EXPECT_EQ(pages->lookup(1)->version, 7u);
  pages->invalidate(1);
  EXPECT_EQ(pages->lookup(1), nullptr);
  load(1);
  EXPECT_EQ(pages->lookup(1)->version, 0u);
  EXPECT_FALSE(pages->lookup(1)->kept);
}

TEST_P(FaultPagesTest, SlotsOfCachedPagesDifferAndStay) {
  constexpr std::uint32_t most = 5;
  make(shape_of(20, most));
  Random random = Random::stream(3, 1);
  std::vector<std::uint32_t> slots(20, most);
  for (int step = 0; step < 300; ++step) {
    load(random.below(20));
    std::set<std::uint32_t> used;
    for (const Page page : pages->cached()) {
      const std::uint32_t slot = pages->slot(page);
      ASSERT_LT(slot, most);
      ASSERT_TRUE(used.insert(slot).second);
      ASSERT_TRUE(slots[page] == most || slots[page] == slot) << "page " << page;
      slots[page] = slot;
    }
    for (Page page = 0; page < 20; ++page)
      if (pages->lookup(page) == nullptr) slots[page] = most;
  }
}

std::size_t resident_pages(const FaultPages& pages) {
  const std::span<std::byte> view = pages.memory();
  std::vector<unsigned char> residency(view.size() / host_page);
  EXPECT_EQ(mincore(view.data(), view.size(), residency.data()), 0);
  return static_cast<std::size_t>(
      std::ranges::count_if(residency, [](unsigned char page) { return (page & 1) != 0; }));
}

// ---- Neighbours ---------------------------------------------------------------------------------

// Of pages first, first + 1, ...: each filled with its number and `more`.
PageBytes numbered(Page first, Page count, std::size_t page_bytes, int more) {
  PageBytes contents;
  for (Page page = first; page < first + count; ++page)
    contents.insert(contents.end(), page_bytes, std::byte(static_cast<int>(page) + more));
  return contents;
}

TEST_P(FaultPagesTest, NeighboursAreInstalledTogether) {
  for (const bool for_stores : {false, true}) {
    make(shape_of(12, 8));
    load(4);
    pages->lookup(4)->version = 5;
    pages->invalidate(4);
    misses();
    // Page 4 has memory still.
    pages->install_run(2, numbered(2, 5, bytes, 40), for_stores);
    EXPECT_EQ(pages->cached(), std::vector<Page>({2, 3, 4, 5, 6}));
    EXPECT_TRUE(pages->written().empty());
    EXPECT_EQ(pages->room(), 3u);
    for (Page page = 2; page < 7; ++page) {
      EXPECT_EQ(at(page, bytes - 1), static_cast<int>(page) + 40);
      EXPECT_EQ(pages->frame(page)[0], std::byte(page + 40));
      EXPECT_EQ(pages->lookup(page)->version, 0u);
    }
    EXPECT_EQ(misses(), Misses({}, {})) << "they are open";
    at(3) = 1;
    EXPECT_EQ(misses(), Misses({}, {3})) << "they are readable";
    EXPECT_EQ(at(7), 8) << "no other is";
  }
}

TEST_P(FaultPagesTest, NeighboursForStoresAreOpenedOnce) {
  make(shape_of(12, 8));
  {
    const FaultPages::RuntimeCall call(*pages);
    pages->install_run(2, numbered(2, 4, bytes, 40), true);
    for (const Page page : {2, 3, 5}) {
      pages->make_twin(page);
      pages->allow_writes(page);
    }
  }
  for (const Page page : {2, 3, 5}) {
    at(page, 7) = 99;
    EXPECT_EQ(pages->twin(page)[7], std::byte(page + 40));
  }
  EXPECT_EQ(misses(), Misses({}, {}));
  // The protocol did not allow stores to this one.
  at(4) = 1;
  EXPECT_EQ(misses(), Misses({}, {4}));
}

TEST_P(FaultPagesTest, NeighboursTakeTheMemoryOfPagesThatHaveGone) {
  make(shape_of(40, 10));
  for (Page page = 0; page < 10; ++page) load(page);
  for (Page page = 0; page < 10; ++page) pages->invalidate(page);
  pages->install_run(5, numbered(5, 10, bytes, 40), false);
  for (Page page = 5; page < 15; ++page) EXPECT_EQ(at(page), static_cast<int>(page) + 40);
  EXPECT_EQ(pages->room(), 0u);
  EXPECT_LE(resident_pages(*pages), 10u);
}

// ---- Capacity -----------------------------------------------------------------------------------

TEST_P(FaultPagesTest, CleanPagesGiveWayFirstThenTheOldest) {
  make(shape_of(9, 4));
  const PageBytes contents = filled(bytes, 1);
  pages->install(5, contents);
  pages->allow_writes(5);
  pages->install(2, contents);
  pages->install(7, contents);
  EXPECT_FALSE(pages->full());
  pages->install(0, contents);
  EXPECT_TRUE(pages->full());
  EXPECT_EQ(pages->victim(), 2u);
  pages->allow_writes(2);
  EXPECT_EQ(pages->victim(), 7u);
  pages->forbid_writes(5);
  EXPECT_EQ(pages->victim(), 7u);
  pages->allow_writes(7);
  pages->allow_writes(0);
  EXPECT_EQ(pages->victim(), 5u);
  pages->allow_writes(5);
  EXPECT_EQ(pages->victim(), 2u);
  // A page that is forbidden or allowed once more does not become younger.
  pages->forbid_writes(0);
  pages->forbid_writes(7);
  pages->forbid_writes(0);
  pages->allow_writes(2);
  EXPECT_EQ(pages->victim(), 0u);
  pages->invalidate(0);
  EXPECT_FALSE(pages->full());
  EXPECT_EQ(pages->victim(), 7u);
}

// So that a thread that has written all of its cache can read a stream.
TEST_P(FaultPagesTest, AQuarterOfTheCacheIsForCleanPages) {
  make(shape_of(60, 32));  // 30 fit
  for (Page page = 0; page < 30; ++page) at(page) = 1;
  for (Page page = 40; page < 50; ++page) load(page);
  EXPECT_EQ(pages->written().size(), 23u);
  EXPECT_EQ(pages->written().front(), 7u);
  for (Page page = 43; page < 50; ++page) EXPECT_NE(pages->lookup(page), nullptr) << page;
}

TEST_P(FaultPagesTest, PagesOfTheLastThreeMissesStay) {
  make(shape_of(12, 5));
  at(0) = 1;
  at(1) = 1;
  load(2);
  load(3);
  load(4);
  // All clean ones are of the last misses.
  EXPECT_EQ(pages->victim(), 0u);
  // A miss of a page that is cached, and one that is among the last already.
  at(1) = 2;
  EXPECT_EQ(pages->victim(), 0u);
  pages->forbid_writes(1);
  at(1) = 3;
  EXPECT_EQ(pages->victim(), 2u);
  at(3) = 1;
  load(5);
  EXPECT_EQ(pages->cached(), std::vector<Page>({0, 1, 3, 4, 5}));
  EXPECT_EQ(pages->victim(), 4u);
}

// Without that, the two clean pages of a load would push each other out for ever.
TEST_P(FaultPagesTest, AnAccessOverTwoPagesEndsInACacheOfWrittenPages) {
  make(shape_of(20, 4));
  const auto load_over = [&](Page page) {
    std::uint64_t value = 0;
    std::memcpy(&value, const_cast<char*>(&at(page, bytes - 4)), sizeof value);
    return value;
  };
  for (Page page = 0; page < 4; ++page) at(page) = 1;
  EXPECT_EQ(load_over(9), 0x0b0b0b0b'0a0a0a0au);
  for (Page page = 0; page < 4; ++page) at(page) = 1;
#if defined(__x86_64__)
  const char* from = const_cast<char*>(&at(9, bytes - 4));
  char* to = const_cast<char*>(&at(15, bytes - 4));
  asm volatile("movsq" : "+S"(from), "+D"(to) : : "memory");
  EXPECT_EQ(load_over(15), 0x0b0b0b0b'0a0a0a0au);
#endif
}

TEST_P(FaultPagesTest, FourCachedPagesAreEnough) {
  make(shape_of(9, 4));
  for (int round = 0; round < 3; ++round)
    for (Page page = 0; page < 9; ++page) {
      at(page, 1) = 60;
      EXPECT_EQ(at(page, 0), 1 + static_cast<int>(page));
    }
  EXPECT_EQ(pages->cached(), std::vector<Page>({5, 6, 7, 8}));
}

TEST_P(FaultPagesTest, MoreMayBeCachedThanThereIs) {
  make(shape_of(2, 9));
  at(0) = 1;
  at(1) = 1;
  EXPECT_FALSE(pages->full());
  EXPECT_EQ(pages->written(), std::vector<Page>({0, 1}));
}

TEST_P(FaultPagesTest, NoMorePagesHaveMemoryThanMayBeCached) {
  make(shape_of(100, 10));
  for (Page page = 0; page < 100; ++page) at(page) = 1;
  EXPECT_EQ(resident_pages(*pages), 10u);
  // Dropped pages keep theirs, until others need it.
  for (const Page page : pages->cached()) pages->invalidate(page);
  EXPECT_EQ(resident_pages(*pages), 10u);
  for (Page page = 0; page < 15; ++page) load(page);
  EXPECT_EQ(resident_pages(*pages), 10u);
}

// A cache that is large enough gives several back at once, and is full by as many earlier.
TEST_P(FaultPagesTest, TheMemoryOfSeveralPagesIsGivenBackAtOnce) {
  make(shape_of(600, 64));
  Random random = Random::stream(5, 1);
  std::size_t least = 64;
  std::set<std::uint32_t> slots;
  for (int step = 0; step < 400; ++step) {
    const Page page = step < 200 ? static_cast<Page>(step) : random.below(600);
    if (step % 3 == 0)
      at(page) = 1;
    else
      load(page, bytes - 1);
    ASSERT_EQ(at(page, 1), 1 + static_cast<int>(page % 100)) << page;
    slots.insert(pages->slot(page));
    const std::size_t resident = resident_pages(*pages);
    ASSERT_LE(resident, 64u);
    if (step >= 64) least = std::min(least, resident);
    ASSERT_LE(pages->cached().size(), 60u);
  }
  EXPECT_EQ(least, 61u);
  EXPECT_EQ(slots.size(), 64u);
  EXPECT_LT(*slots.rbegin(), 64u);
}

// The end of a large memory, of which little is touched.
TEST_P(FaultPagesTest, TheMemoryMayBeMuchLargerThanTheHost) {
  const Page number = (std::uint64_t{1} << 42) / host_page;
  make(shape_of(number, 100'000));
  at(number - 1, bytes - 1) = 3;
  at(0) = 3;
  EXPECT_EQ(at(number / 2), 1 + static_cast<int>(number / 2 % 100));
  EXPECT_EQ(pages->cached(), std::vector<Page>({0, number / 2, number - 1}));
}

// ---- The kernel as the program's hand -----------------------------------------------------------

class Pipe {
 public:
  Pipe() { EXPECT_EQ(pipe(ends_), 0); }
  ~Pipe() { close(ends_[0]), close(ends_[1]); }
  bool can_read(const volatile char& from, std::size_t bytes) {
    return write(ends_[1], const_cast<const char*>(&from), bytes) == static_cast<ssize_t>(bytes) &&
           drain(bytes);
  }
  bool can_write(volatile char& to) {
    const char value = 33;
    EXPECT_EQ(write(ends_[1], &value, 1), 1);
    return read(ends_[0], const_cast<char*>(&to), 1) == 1 || !drain(1);
  }

 private:
  bool drain(std::size_t bytes) {
    std::vector<char> sink(bytes);
    return read(ends_[0], sink.data(), bytes) == static_cast<ssize_t>(bytes);
  }
  int ends_[2] = {-1, -1};
};

TEST_P(FaultPagesTest, SystemCallsReachWhatIsTouched) {
  make(shape_of(8, 4));
  Pipe pipe;
  EXPECT_FALSE(pipe.can_read(at(2), 1));
  EXPECT_EQ(errno, EFAULT);
  std::size_t touched = 0;
  ASSERT_TRUE(pages->touch(const_cast<char*>(&at(2, 5)), 2 * bytes, false, touched).ok());
  EXPECT_EQ(touched, 2 * bytes);
  EXPECT_EQ(misses(), Misses({2, 3, 4}, {}));
  EXPECT_TRUE(pipe.can_read(at(2, 5), 2 * bytes));
  EXPECT_FALSE(pipe.can_write(at(2)));
  ASSERT_TRUE(pages->touch(const_cast<char*>(&at(2)), 1, true, touched).ok());
  EXPECT_EQ(touched, 1u);
  EXPECT_TRUE(pipe.can_write(at(2)));
  EXPECT_EQ(at(2), 33);
  EXPECT_EQ(misses(), Misses({}, {2}));
}

TEST_P(FaultPagesTest, TouchSaysHowMuchFits) {
  make(shape_of(12, 4));
  Pipe pipe;
  std::size_t touched = 0;
  const auto touch = [&](Page page, std::size_t offset, std::size_t n, bool write) {
    EXPECT_TRUE(pages->touch(const_cast<char*>(&at(page, offset)), n, write, touched).ok());
    return touched;
  };
  EXPECT_EQ(touch(1, 100, 6 * bytes, false), 4 * bytes - 100);
  EXPECT_TRUE(pipe.can_read(at(1, 100), touched));
  // Some are there, which would give way to the others.
  EXPECT_EQ(touch(3, 0, 4 * bytes, false), 4 * bytes);
  EXPECT_TRUE(pipe.can_read(at(3), touched));
  EXPECT_EQ(touch(2, 0, 4 * bytes, true), 4 * bytes);
  EXPECT_EQ(pages->written(), std::vector<Page>({2, 3, 4, 5}));
  // Written pages stay where clean ones come and go.
  EXPECT_GE(touch(8, bytes - 1, 4 * bytes, false), 1u);
  EXPECT_TRUE(pipe.can_read(at(8, bytes - 1), touched));
  EXPECT_EQ(touch(0, 0, 0, true), 0u);
}

TEST_P(FaultPagesTest, TouchPassesOverWhatIsNotInTheView) {
  make(shape_of(4, 4));
  std::size_t touched = 0;
  char own[8];
  ASSERT_TRUE(pages->touch(own, sizeof own, true, touched).ok());
  EXPECT_EQ(touched, sizeof own);
  const std::byte* const low = pages->memory().data();
  ASSERT_TRUE(pages->touch(low - 10, 20, false, touched).ok());
  EXPECT_EQ(touched, 20u);
  ASSERT_TRUE(pages->touch(low + 4 * bytes - 10, 20, false, touched).ok());
  EXPECT_EQ(touched, 20u);
  EXPECT_EQ(misses(), Misses({0, 3}, {}));
  handler->forbidden = low + 2 * bytes;
  ASSERT_TRUE(pages->touch(low + bytes + 1, 2 * bytes, false, touched).ok());
  EXPECT_EQ(touched, bytes - 1);
  ASSERT_TRUE(pages->touch(low + 2 * bytes + 1, 1, false, touched).ok());
  EXPECT_EQ(touched, 0u);
}

// ---- The kernel takes pages out of the page table -----------------------------------------------

TEST_P(FaultPagesTest, PagesThatTheKernelHasClosedComeBackWithoutAMiss) {
  make(shape_of(8, 4));
  at(1) = 40;
  EXPECT_EQ(at(2), 3);
  misses();
  std::byte* const view = pages->memory().data();
  ASSERT_EQ(GetParam() == FaultMechanism::userfault ? madvise(view, 8 * bytes, MADV_DONTNEED)
                                                    : mprotect(view, 8 * bytes, PROT_NONE),
            0);
  EXPECT_EQ(at(1), 40);
  EXPECT_EQ(at(2), 3);
  at(1) = 41;
  EXPECT_EQ(misses(), Misses({}, {}));
  at(2) = 42;
  EXPECT_EQ(misses(), Misses({}, {2}));
  EXPECT_EQ(at(1), 41);
}

// ---- Several stores, processes ------------------------------------------------------------------

TEST_P(FaultPagesTest, StoresOfOneProcessDoNotDisturbEachOther) {
  make(shape_of(8, 4));
  const auto first = std::move(pages);
  const auto first_handler = std::move(handler);
  make(shape_of(8, 4));
  at(3) = 9;
  auto* const other = reinterpret_cast<volatile char*>(first->memory().data() + 3 * bytes);
  EXPECT_EQ(*other, 4);
  EXPECT_EQ(first_handler->reads, std::vector<Page>({3}));
  EXPECT_EQ(misses(), Misses({}, {3}));
}

TEST_P(FaultPagesTest, AnAddressMayBeChosenAndUsedAgain) {
  make(shape_of(8, 4));
  void* const address = pages->memory().data();
  std::unique_ptr<FaultPages> second;
  const Status taken =
      FaultPages::create(shape_of(8, 4), {.mechanism = GetParam(), .address = address}, second);
  EXPECT_EQ(taken.code(), Code::bad_configuration);
  EXPECT_EQ(second, nullptr);
  at(1) = 9;
  make(shape_of(8, 4), address);
  EXPECT_EQ(pages->memory().data(), address);
  EXPECT_EQ(at(1), 2);
}

TEST_P(FaultPagesTest, AReservationMayBeReplaced) {
  void* const reserved =
      mmap(nullptr, 8 * host_page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(reserved, MAP_FAILED);
  ASSERT_TRUE(FaultPages::create(shape_of(8, 4),
                                 {.mechanism = GetParam(), .address = reserved, .replace = true},
                                 pages)
                  .ok());
  EXPECT_EQ(pages->memory().data(), reserved);
}

TEST_P(FaultPagesTest, AChildMakesItsOwnAtTheSameAddress) {
  make(shape_of(8, 4));
  void* const address = pages->memory().data();
  at(1) = 99;
  EXPECT_EQ(in_child([&] {
              const auto inherited = std::move(pages);
              const auto its_handler = std::move(handler);
              make(shape_of(8, 4), address);
              if (HasFailure() || at(1) != 2) return 1;
              at(1) = 7;
              return at(1) == 7 && misses() == Misses({1}, {1}) ? 0 : 2;
            }),
            0);
  // Neither the child's store nor its end has changed the parent's.
  EXPECT_EQ(at(1), 99);
  EXPECT_EQ(at(2), 3);
  EXPECT_EQ(misses(), Misses({2}, {1}));
}

TEST_P(FaultPagesTest, AChildWithoutAStoreOfItsOwnHasNoMemoryThere) {
  make(shape_of(8, 4));
  at(1) = 99;
  const int ended = in_child([&] { return static_cast<int>(at(1)); });
  if (!sanitized) {
    EXPECT_EQ(ended, 200 + SIGSEGV);
  }
  EXPECT_NE(ended, 99);
  EXPECT_EQ(in_child([&] {
              pages.reset();
              return 0;
            }),
            0);
  EXPECT_EQ(at(1), 99);
}

// ---- Bad input ----------------------------------------------------------------------------------

TEST_P(FaultPagesTest, SizesThatCannotBeAreRefused) {
  const auto code_of = [&](const Shape& shape) {
    std::unique_ptr<FaultPages> none;
    const Status status = FaultPages::create(shape, {.mechanism = GetParam()}, none);
    EXPECT_EQ(none, nullptr);
    return status.code();
  };
  EXPECT_EQ(code_of({.pages = 4, .page_bytes = 0}), Code::bad_configuration);
  EXPECT_EQ(code_of({.pages = 4, .page_bytes = host_page / 2}), Code::bad_configuration);
  EXPECT_EQ(code_of({.pages = 4, .page_bytes = host_page + 8}), Code::bad_configuration);
  EXPECT_EQ(code_of(shape_of(0, 4)), Code::bad_configuration);
  for (const std::uint32_t cached : {0, 1, 3})
    EXPECT_EQ(code_of(shape_of(4, cached)), Code::bad_configuration);
  EXPECT_EQ(code_of(shape_of(Page{1} << 60, 4)), Code::bad_configuration);
  // The cache is larger than any memory.
  EXPECT_EQ(code_of(shape_of(Page{1} << 32, 1u << 31)), Code::no_memory);
}

int code_under(int resource, rlim_t limit, FaultMechanism mechanism) {
  return in_child([&] {
    const rlimit now{limit, limit};
    if (setrlimit(resource, &now) != 0) return 100;
    std::unique_ptr<FaultPages> none;
    return static_cast<int>(
        FaultPages::create(shape_of(1 << 20, 4), {.mechanism = mechanism}, none).code());
  });
}

TEST_P(FaultPagesTest, LimitsOfTheProcessAreErrors) {
  EXPECT_EQ(code_under(RLIMIT_FSIZE, rlim_t{1} << 20, GetParam()),
            static_cast<int>(Code::no_memory));
  if (!sanitized) {
    EXPECT_EQ(code_under(RLIMIT_AS, rlim_t{3} << 30, GetParam()),
              static_cast<int>(Code::no_memory));
  }
}

// A forked child has no view: these begin anew.
TEST_P(FaultPagesTest, MisuseIsStopped) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  make(shape_of(6, 4));
  for (Page page = 0; page < 3; ++page) load(page);
  EXPECT_DEATH(pages->install(0, filled(bytes, 1)), "no room for page 0");
  EXPECT_DEATH(pages->install(3, filled(bytes - 1, 1)), "bytes for page 3");
  EXPECT_DEATH(pages->install_run(3, {}, true), "0 bytes for page 3");
  EXPECT_DEATH(pages->invalidate(3), "page 3 is not cached");
  EXPECT_DEATH(pages->allow_writes(5), "page 5 is not cached");
  EXPECT_DEATH((void)pages->frame(3), "page 3 is not cached");
  EXPECT_DEATH((void)pages->lookup(6), "page 6 is past the 6 pages");
}

TEST_P(FaultPagesTest, MisuseOfAFullStoreIsStopped) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  make(shape_of(6, 4));
  for (Page page = 0; page < 4; ++page) load(page);
  EXPECT_DEATH(pages->install(4, filled(bytes, 1)), "no room for page 4");
  pages->invalidate(0);
  EXPECT_DEATH(pages->install_run(4, filled(2 * bytes, 1), false), "no room for page 5");
  for (Page page = 1; page < 4; ++page) pages->invalidate(page);
  EXPECT_DEATH((void)pages->victim(), "no page is cached");
}

TEST_P(FaultPagesTest, TheRuntimeMayNotAccessTheView) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  make(shape_of(4, 4));
  EXPECT_DEATH(
      {
        const FaultPages::RuntimeCall call(*pages);
        load(1);
      },
      "page 1 is accessed as by the program inside of a call of the runtime");
}

TEST_P(FaultPagesTest, AnAddressThatIsRefusedIsASegmentationFault) {
  if (sanitized) GTEST_SKIP();
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  make(shape_of(4, 4));
  handler->forbidden = pages->memory().data() + 2 * bytes + 5;
  EXPECT_EQ(load(2, 4), 3);
  pages->invalidate(2);
  EXPECT_EXIT(load(2, 5), ::testing::KilledBySignal(SIGSEGV), "which it may not .SIGSEGV.");
}

TEST_P(FaultPagesTest, AMissThatFailsEndsTheProgram) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  make(shape_of(4, 4));
  handler->fails = true;
  EXPECT_EXIT(load(2), ::testing::ExitedWithCode(1),
              "tombolo: virtual shared memory: page 2 cannot be had: gone");
}

TEST_P(FaultPagesTest, AMissThatDoesNotHelpEndsTheProgram) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  make(shape_of(4, 4));
  handler->idle = true;
  EXPECT_DEATH(load(2), "after a miss of page 2 it is not as the program needs it");
}

INSTANTIATE_TEST_SUITE_P(Mechanisms, FaultPagesTest,
                         ::testing::Values(FaultMechanism::userfault, FaultMechanism::protection),
                         [](const auto& of) { return std::string(host::name_of(of.param)); });

}  // namespace
}  // namespace tombolo::dsm
