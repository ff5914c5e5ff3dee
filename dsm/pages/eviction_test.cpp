// SPDX-License-Identifier: Apache-2.0
// Purpose: which pages stay, by programs of loads and stores in a cache without memory or faults;
// and pages that rest where faults are real.
// Thread safety: -
#include "dsm/pages/eviction.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "dsm/pages/fault_pages.h"
#include "host/memory/page.h"

namespace tombolo::dsm {
namespace {

constexpr std::uint32_t capacity = 64;

// Counts the pages that a cache of 64 brings, and the faults of pages that rest.
class Cache {
 public:
  Cache() {
    const Shape shape{.pages = 4096, .cached_pages = capacity, .read_ahead = 8};
    EXPECT_TRUE(frames_.create(shape).ok());
    eviction_ = std::make_unique<Eviction>(frames_, capacity, shape);
    EXPECT_TRUE(eviction_->create(shape).ok());
  }

  void load(Page page) {
    Frame* const frame = frames_.find(page);
    if (frame == nullptr) return bring(page, false);
    if (frame->state != FrameState::resting) return;
    ++faults;
    eviction_->wake(*frame, [this](Frame& each) { frames_.move(each, FrameState::returning); });
  }
  void store(Page page) {
    load_for_store(page);
    Frame& frame = *frames_.find(page);
    if (frame.state != FrameState::writable) frames_.move(frame, FrameState::writable);
  }
  // Each of them once.
  int loads(Page first, Page count) {
    const int before = brought;
    for (Page page = first; page < first + count; ++page) load(page);
    return brought - before;
  }
  int stores(Page first, Page count) {
    const int before = brought;
    for (Page page = first; page < first + count; ++page) store(page);
    return brought - before;
  }

  // Absent pages: room is made for all of them first.
  void load_run(Page first, std::uint32_t count) {
    while (cached_ + count > capacity) give_up(victim());
    for (Page page = first; page < first + count; ++page) bring(page, false);
  }

  // As notices do.
  void drop(Page page) {
    Frame& frame = *frames_.find(page);
    eviction_->drop(frame);
    frames_.release(frame);
  }
  Page victim(std::vector<Page> stay = {}) const { return eviction_->victim(stay)->page; }
  bool cached(Page page) { return frames_.find(page) != nullptr; }
  bool stays(Page page) {
    const Frame* const frame = frames_.find(page);
    return frame != nullptr &&
           (frame->state == FrameState::returning || frame->state == FrameState::resting);
  }
  std::uint32_t staying() const {
    return frames_.count(FrameState::returning) + frames_.count(FrameState::resting);
  }
  std::uint32_t count(FrameState state) const { return frames_.count(state); }

  int brought = 0;
  int faults = 0;

 private:
  void load_for_store(Page page) {
    if (frames_.find(page) == nullptr)
      bring(page, true);
    else
      load(page);
  }

  void bring(Page page, bool for_store) {
    ++brought;
    if (cached_ == capacity) give_up(victim());
    EXPECT_EQ(frames_.find(page), nullptr);
    Frame& frame = frames_.count(FrameState::unused) == 0 ? frames_.add()
                                                          : *frames_.oldest(FrameState::unused);
    frames_.assign(frame, page);
    frames_.move(frame, eviction_->arrive(frame, for_store));
    ++cached_;
  }
  void give_up(Page page) {
    Frame& frame = *frames_.find(page);
    Frame* const rests = eviction_->give_up(frame);
    frames_.release(frame);
    if (rests != nullptr) frames_.move(*rests, FrameState::resting);
    --cached_;
  }

  FrameTable frames_;
  std::unique_ptr<Eviction> eviction_;
  std::uint32_t cached_ = 0;
};

// ---- Pages that come again ----------------------------------------------------------------------

TEST(Eviction, NoPageReturnsWhereAllFit) {
  Cache cache;
  for (int round = 0; round < 4; ++round) cache.loads(0, capacity);
  EXPECT_EQ(cache.brought, 64);
  EXPECT_EQ(cache.staying() + cache.faults, 0u);
}

TEST(Eviction, ALoopOverMoreThanTheCacheFindsHalfOfItThere) {
  Cache cache;
  for (int round = 0; round < 3; ++round) cache.loads(0, 96);
  for (int round = 0; round < 10; ++round) {
    EXPECT_EQ(cache.loads(0, 96), 64) << round;
    EXPECT_EQ(cache.staying(), 32u);
  }
}

// 1, 2, 4 and three times 8 pages, and the rest.
TEST(Eviction, PagesThatRestAreOpenedTogether) {
  Cache cache;
  for (int round = 0; round < 5; ++round) cache.loads(0, 96);
  cache.faults = 0;
  cache.loads(0, 96);
  EXPECT_EQ(cache.faults, 7);
}

TEST(Eviction, OnePageRestsForEachThatIsGivenUp) {
  Cache cache;
  cache.loads(0, 96);
  cache.loads(0, 32);
  EXPECT_EQ(cache.staying(), 32u);
  const std::uint32_t resting = cache.count(FrameState::resting);
  cache.loads(200, 5);
  EXPECT_EQ(cache.count(FrameState::resting), std::min(resting + 5, 32u));
  const int faults = cache.faults;
  cache.loads(200, 5);
  EXPECT_EQ(cache.faults, faults);
}

// Those that were opened together are to be used first.
TEST(Eviction, PagesThatWereOpenedStayOpenWhileAnEighthOfTheCacheIsGivenUp) {
  Cache cache;
  for (int round = 0; round < 4; ++round) cache.loads(0, 96);
  cache.loads(1000, 45);
  EXPECT_EQ(cache.count(FrameState::resting), 32u);
  Page rests = 0;
  while (!cache.cached(rests)) ++rests;
  cache.load(rests);
  EXPECT_EQ(cache.count(FrameState::returning), 1u);
  cache.loads(2000, 7);
  EXPECT_EQ(cache.count(FrameState::returning), 1u);
  cache.load(2007);
  EXPECT_EQ(cache.count(FrameState::returning), 0u);
}

TEST(Eviction, APageThatWasAwayForFourTimesTheCacheIsNew) {
  constexpr Page four_times = Page{4} * capacity;
  Cache near;
  near.loads(3000, capacity);
  for (int round = 0; round < 3; ++round) near.loads(0, four_times);
  EXPECT_EQ(near.staying(), 32u);
  Cache far;
  far.loads(3000, capacity);
  for (int round = 0; round < 6; ++round) EXPECT_EQ(far.loads(0, four_times + 1), 257);
  EXPECT_EQ(far.staying(), 0u);
}

TEST(Eviction, PagesThatNoticesDropDoNotReturn) {
  Cache cache;
  cache.loads(0, 96);
  cache.load(0);
  EXPECT_EQ(cache.staying(), 1u);
  cache.drop(0);
  cache.drop(95);
  cache.loads(0, 1);
  cache.load(95);
  EXPECT_EQ(cache.staying(), 0u);
}

// ---- Programs that go on to other memory --------------------------------------------------------

// Memory that fits into the other half comes once.
TEST(Eviction, NewMemoryHasHalfOfTheCacheAtOnce) {
  Cache cache;
  for (int round = 0; round < 4; ++round) cache.loads(0, 96);
  EXPECT_EQ(cache.loads(1000, 32), 32);
  EXPECT_EQ(cache.loads(1000, 32), 0);
}

// More than that comes twice, until the old pages have not been used for as long.
TEST(Eviction, NewMemoryHasAllOfTheCacheSoon) {
  Cache cache;
  for (int round = 0; round < 4; ++round) cache.loads(0, 96);
  cache.loads(1000, 60);
  cache.loads(1000, 60);
  EXPECT_LE(cache.loads(1000, 60), 32);
  EXPECT_EQ(cache.loads(1000, 60), 0);
}

TEST(Eviction, PagesThatAreUsedKeepTheirPlaces) {
  Cache cache;
  for (int round = 0; round < 4; ++round) cache.loads(0, 96);
  // 32 pages are used all the time, beside a stream that comes around again.
  std::vector<Page> used;
  for (Page page = 0; page < 96; ++page)
    if (cache.cached(page) && used.size() < 20) used.push_back(page);
  for (int step = 0; step < 600; ++step) {
    cache.load(1000 + static_cast<Page>(step) % 200);
    cache.load(used[static_cast<std::size_t>(step) % used.size()]);
  }
  const int before = cache.brought;
  for (const Page page : used) cache.load(page);
  EXPECT_EQ(cache.brought, before);
}

// Page 0 alone was not used for as long as those that come were away.
TEST(Eviction, PagesThatComeTogetherTakeAPlaceEach) {
  Cache cache;
  for (int round = 0; round < 4; ++round) cache.loads(0, 96);
  ASSERT_TRUE(cache.stays(0) && cache.stays(31));
  cache.loads(1, 31);
  cache.load_run(44, 5);
  EXPECT_EQ(cache.staying(), 33u);
  cache.load(49);
  EXPECT_EQ(cache.staying(), 32u);
  EXPECT_FALSE(cache.cached(0));
}

// ---- Stores -------------------------------------------------------------------------------------

TEST(Eviction, PagesForStoresDoNotReturn) {
  Cache cache;
  for (int round = 0; round < 4; ++round) EXPECT_EQ(cache.stores(0, 96), 96);
  EXPECT_EQ(cache.staying(), 0u);
}

// Those that are stored to, and would be there if none returned, get their places back.
TEST(Eviction, PagesThatReturnGiveWayToThoseThatAreStoredTo) {
  Cache cache;
  for (int round = 0; round < 4; ++round) cache.loads(0, 96);
  int brought = 0;
  for (int round = 0; round < 4; ++round) brought = cache.stores(1000, 44);
  EXPECT_EQ(brought, 0);
  EXPECT_LE(cache.staying(), 20u);
  // 32 pages that are given up give one place back: all, after some rounds.
  for (int round = 0; round < 30; ++round) cache.loads(0, 96);
  EXPECT_EQ(cache.staying(), 32u);
}

TEST(Eviction, APageThatIsStoredToAfterALongTimeTakesNoPlace) {
  Cache cache;
  cache.stores(0, 65);
  for (int round = 0; round < 2; ++round) cache.loads(200, 96);
  EXPECT_EQ(cache.staying(), 32u);
  cache.store(0);
  cache.loads(1000, 8);
  EXPECT_EQ(cache.staying(), 32u);
}

// ---- Order (DGU2) -------------------------------------------------------------------------------

TEST(Eviction, CleanPagesGoFirstIfAQuarterIsClean) {
  Cache cache;
  cache.stores(0, 48);
  cache.loads(100, 15);
  EXPECT_EQ(cache.victim(), 0u);
  EXPECT_EQ(cache.victim({0, 1}), 2u);
  cache.load(115);
  EXPECT_EQ(cache.victim(), 100u);
}

// Those that return count among the clean ones, but a sixteenth is for others.
TEST(Eviction, ASixteenthIsForCleanPagesThatDoNotReturn) {
  Cache cache;
  for (int round = 0; round < 4; ++round) cache.loads(0, 96);
  EXPECT_EQ(cache.staying(), 32u);
  cache.stores(1000, 28);
  EXPECT_EQ(cache.count(FrameState::readable), 4u);
  EXPECT_LT(cache.victim(), 96u);
  cache.store(1028);
  EXPECT_EQ(cache.count(FrameState::readable), 3u);
  EXPECT_EQ(cache.victim(), 1000u);
}

// ---- By faults ----------------------------------------------------------------------------------

// Pages that are filled with 1 + page.
class Filling : public MissHandler {
 public:
  explicit Filling(FaultPages& pages) : pages_(pages) {}
  Status read_miss(Page page) override {
    ++reads;
    if (pages_.full()) pages_.invalidate(pages_.victim());
    const auto contents = static_cast<std::byte>(1 + page);
    pages_.install(page, std::vector<std::byte>(host::page_bytes(), contents));
    return {};
  }
  Status write_miss(Page page) override {
    ++writes;
    if (pages_.lookup(page) == nullptr) TOMBOLO_TRY(read_miss(page));
    pages_.allow_writes(page);
    return {};
  }

  int reads = 0;
  int writes = 0;

 private:
  FaultPages& pages_;
};

// 30 pages fit, 15 of which return.
class EvictionByFaults : public ::testing::TestWithParam<host::FaultMechanism> {
 protected:
  void SetUp() override {
    const Shape shape{
        .pages = 100, .page_bytes = host::page_bytes(), .cached_pages = 32, .read_ahead = 8};
    const Status made = FaultPages::create(shape, {.mechanism = GetParam()}, pages);
    if (!made.ok()) GTEST_SKIP() << made.message();
    handler = std::make_unique<Filling>(*pages);
    pages->on_miss(*handler);
  }
  volatile unsigned char& at(Page page) {
    return reinterpret_cast<unsigned char&>(pages->memory()[page * host::page_bytes()]);
  }
  // The misses.
  int loads(Page first, Page count) {
    const int before = handler->reads;
    for (Page page = first; page < first + count; ++page) EXPECT_EQ(at(page), 1 + page);
    return handler->reads - before;
  }

  std::unique_ptr<FaultPages> pages;
  std::unique_ptr<Filling> handler;
};

TEST_P(EvictionByFaults, PagesThatRestAreLoadedWithoutAMiss) {
  for (int round = 0; round < 3; ++round) loads(0, 48);
  for (int round = 0; round < 3; ++round) EXPECT_EQ(loads(0, 48), 33);
  EXPECT_EQ(pages->cached().size(), 30u);
}

TEST_P(EvictionByFaults, AStoreToAPageThatRestsIsOneMiss) {
  for (int round = 0; round < 3; ++round) loads(0, 48);
  loads(60, 15);  // all that return rest
  const std::vector<Page> cached = pages->cached();
  const int reads = handler->reads;
  for (const Page page : cached) {
    at(page) = 7;
    EXPECT_EQ(at(page), 7);
  }
  EXPECT_EQ(handler->reads, reads);
  EXPECT_EQ(handler->writes, 30);
  EXPECT_EQ(pages->written(), cached);
}

TEST_P(EvictionByFaults, PagesThatReturnGiveWayToThoseThatAreStoredTo) {
  for (int round = 0; round < 3; ++round) loads(0, 48);
  int before = 0;
  for (int round = 0; round < 6; ++round) {
    before = handler->reads;
    for (Page page = 60; page < 80; ++page) at(page) = 1;
  }
  EXPECT_EQ(handler->reads, before);
}

TEST_P(EvictionByFaults, SystemCallsReachPagesThatRest) {
  for (int round = 0; round < 3; ++round) loads(0, 48);
  loads(60, 15);
  const int reads = handler->reads;
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  for (const Page page : pages->cached()) {
    std::size_t touched = 0;
    const void* const address = const_cast<const unsigned char*>(&at(page));
    EXPECT_TRUE(pages->touch(address, 10, false, touched).ok());
    EXPECT_EQ(touched, 10u);
    EXPECT_EQ(write(ends[1], address, 1), 1) << page;
  }
  EXPECT_EQ(handler->reads, reads);
  for (const int end : ends) close(end);
}

TEST_P(EvictionByFaults, PagesThatAreInvalidatedForAnotherReasonDoNotReturn) {
  loads(0, 40);
  loads(0, 5);
  for (const Page page : pages->cached()) pages->invalidate(page);
  loads(0, 5);
  loads(60, 25);
  EXPECT_EQ(pages->victim(), 0u);
}

TEST_P(EvictionByFaults, APageThatWasProposedAndStaysIsNotGivenUp) {
  loads(0, 40);
  for (const Page page : pages->cached()) pages->invalidate(page);
  loads(10, 10);
  loads(60, 20);
  EXPECT_EQ(pages->victim(), 10u);
  pages->invalidate(11);
  pages->invalidate(10);
  loads(10, 2);
  for (Page page = 12; page < 20; ++page) pages->invalidate(page);
  for (Page page = 60; page < 80; ++page) pages->invalidate(page);
  loads(20, 28);
  EXPECT_EQ(pages->victim(), 10u);
}

INSTANTIATE_TEST_SUITE_P(Mechanisms, EvictionByFaults,
                         ::testing::Values(host::FaultMechanism::userfault,
                                           host::FaultMechanism::protection),
                         [](const auto& of) { return std::string(name_of(of.param)); });

}  // namespace
}  // namespace tombolo::dsm
