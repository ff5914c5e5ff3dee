// SPDX-License-Identifier: Apache-2.0
// Purpose: the order of the steps by which a page is brought: its version, its keeper, its bytes
// (DPF1), and a kept page's under its mutex (DPF2). Schedules that tell them apart are rare.
// Thread safety: -
#include "dsm/protocol/page_fetch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "dsm/testing/exposed_pages.h"
#include "dsm/testing/noting_core.h"
#include "dsm/transport/core_transport.h"
#include "machine/testing/ensemble.h"

namespace tombolo::dsm {
namespace {

using testing::Steps;
using Core = testing::NotingCore;
using Pages = testing::ExposedPages;
using testing::PrivatePages;

// Does other threads' work right behind a get.
class Transfer : public CoreTransport<Core> {
 public:
  using CoreTransport<Core>::CoreTransport;
  std::function<void()> behind_get;
  Status get(Page page, std::span<std::byte> out) {
    Status got = CoreTransport<Core>::get(page, out);
    if (behind_get) std::exchange(behind_get, nullptr)();
    return got;
  }
};

class PageFetchTest : public ::testing::Test {
 protected:
  static constexpr Shape shape{.threads = 2, .pages = 4, .page_bytes = 128, .cached_pages = 4};

  machine::SyncLayout layout{Core::reserved_sync_bytes(shape.threads)};
  Transfer::Layout of_transport = Transfer::take(layout, shape);
  PageDirectory<Core>::Layout words = PageDirectory<Core>::take(layout, shape);
  ReaderNotices<Core>::Layout ring = ReaderNotices<Core>::take(layout, shape);
  machine::testing::Host<Core> host{
      machine::testing::EnsembleShape{.cores = shape.threads,
                                      .sync_bytes = layout.bytes(),
                                      .data_bytes = Transfer::data_bytes(shape)}};
  Core core{host.attachment(1)};
  Transfer transport{core, of_transport, shape};
  Pages pages{shape};
  PageDirectory<Core> directory{core, words, shape};
  ReaderNotices<Core> readers{core, ring, shape};
  PageFetch<Transfer, Pages> fetcher{transport, pages, directory, readers, false};

  void SetUp() override {
    core.watch_page(words.words);
    core.watch_ring(ring.count, ring.notices + shape.notices * sizeof(std::uint64_t));
  }
  Steps steps() { return core.take_steps(); }
};

TEST_F(PageFetchTest, LoadsTheVersionThenTheKeeperThenTheBytes) {
  PrivatePages copied(shape);
  PageFetch<Transfer, PrivatePages> of_copies(transport, copied, directory, readers, false);
  ASSERT_TRUE(of_copies.fetch(0).ok());
  EXPECT_EQ(steps(), Steps({"load version", "load keeper", "read"}));
  EXPECT_FALSE(copied.lookup(0)->kept);
}

// DPF4. A keeper that has gone before the second look has raised the version by then.
TEST_F(PageFetchTest, InPlaceLooksForAKeeperAndTheVersionAgain) {
  ASSERT_TRUE(fetcher.fetch(0).ok());
  EXPECT_EQ(steps(), Steps({"load version", "load keeper", "read", "load keeper", "load version"}));
  EXPECT_FALSE(pages.lookup(0)->kept);
}

TEST_F(PageFetchTest, GetsAPageAgainThatAThreadHasBegunToKeep) {
  const PageBytes exposed(shape.page_bytes, std::byte{0x55});
  Core keeper(host.attachment(0));
  Transfer of_keeper(keeper, of_transport, shape);
  ASSERT_TRUE(of_keeper.expose(2, exposed).ok());
  transport.behind_get = [&] { directory.set_keeper(0, {.thread = 0, .slot = 2}); };
  ASSERT_TRUE(fetcher.fetch(0).ok());
  EXPECT_EQ(pages.frame(0)[7], std::byte{0x55});
  EXPECT_TRUE(directory.keeper(0)->shared);
}

// A thread kept it, another has sent a difference in the place of the page, and the first has given
// it back.
TEST_F(PageFetchTest, GetsAPageAgainThatHasBeenKeptMeanwhile) {
  const PageBytes whole(shape.page_bytes, std::byte{0x55});
  transport.behind_get = [&] {
    ASSERT_TRUE(transport.put(0, whole).ok());
    directory.raise_version(0);
  };
  ASSERT_TRUE(fetcher.fetch(0).ok());
  EXPECT_EQ(pages.frame(0)[7], std::byte{0x55});
  EXPECT_EQ(pages.lookup(0)->version, 1U);
}

// The mark of the reader is there before its notice, and that before the bytes are got.
TEST_F(PageFetchTest, GetsAKeptPageUnderItsMutexAfterTheMark) {
  directory.set_keeper(0, {.thread = 0, .slot = 2});
  steps();
  ASSERT_TRUE(fetcher.fetch(0).ok());
  const Steps taken = steps();
  const auto at = [&](const char* step) { return std::ranges::find(taken, step) - taken.begin(); };
  const auto after = [&](const char* step) {
    return std::find(taken.begin() + at("change mutex"), taken.end(), step) - taken.begin();
  };
  const auto n = static_cast<std::ptrdiff_t>(taken.size());
  EXPECT_LT(at("change mutex"), after("load keeper"));
  EXPECT_LT(after("load keeper"), after("store keeper"));
  EXPECT_LT(after("store keeper"), after("store notice"));
  EXPECT_LT(after("store notice"), after("load version"));
  EXPECT_LT(after("load version"), after("read"));
  EXPECT_LT(after("read"), n);
  EXPECT_TRUE(directory.keeper(0)->shared);
  EXPECT_EQ(directory.keeper(0)->slot, 2U);
}

// DPF5. A patch by the change of the next version would take the later one back.
TEST_F(PageFetchTest, WherePagesArePatchedGetsAPageAgainThatHasChangedMeanwhile) {
  PrivatePages copied(shape);
  PageFetch<Transfer, PrivatePages> of_copies(transport, copied, directory, readers, true);
  transport.behind_get = [&] {
    ASSERT_TRUE(transport.put(0, PageBytes(shape.page_bytes, std::byte{0x55})).ok());
    directory.raise_version(0);
  };
  ASSERT_TRUE(of_copies.fetch(0).ok());
  EXPECT_EQ(copied.frame(0)[7], std::byte{0x55});
  EXPECT_EQ(copied.lookup(0)->version, 1U);
}

// DPF6. Another thread changes the page behind each get but those under the page's mutex.
TEST_F(PageFetchTest, GetsAPageThatChangesAgainAndAgainUnderItsMutex) {
  constexpr int many = 100;
  PrivatePages copied(shape);
  PageFetch<Transfer, PrivatePages> of_copies(transport, copied, directory, readers, true);
  int changes = 0;
  std::function<void()> change = [&] {
    const Steps taken = steps();
    if (std::ranges::find(taken, "change mutex") != taken.end() || changes == many) return;
    ASSERT_TRUE(
        transport.put(0, PageBytes(shape.page_bytes, static_cast<std::byte>(++changes))).ok());
    directory.raise_version(0);
    transport.behind_get = change;
  };
  transport.behind_get = change;
  ASSERT_TRUE(of_copies.fetch(0).ok());
  EXPECT_GT(changes, 1) << "the mutex is for pages that change again";
  EXPECT_LT(changes, many) << "there is no end";
  EXPECT_EQ(copied.lookup(0)->version, static_cast<std::uint64_t>(changes));
  EXPECT_EQ(copied.frame(0)[7], static_cast<std::byte>(changes));
  ASSERT_TRUE(directory.lock(0).ok()) << "it is free";
}

// It is as old as its note says, however it was brought.
TEST_F(PageFetchTest, NotesTheVersion) {
  directory.raise_version(0);
  directory.raise_version(0);
  ASSERT_TRUE(fetcher.fetch(0).ok());
  EXPECT_EQ(pages.lookup(0)->version, 2U);
  pages.invalidate(0);
  ASSERT_TRUE(fetcher.fetch_run_to_keep(0, 1).ok());
  EXPECT_EQ(pages.lookup(0)->version, 2U);
  pages.invalidate(0);
  directory.set_keeper(0, {.thread = 0, .slot = 2});
  ASSERT_TRUE(fetcher.fetch(0).ok());
  EXPECT_EQ(pages.lookup(0)->version, 2U);
}

// Others may have copies, and may be sending differences: it is shared, and got under the mutex.
TEST_F(PageFetchTest, KeepsAPageThatNoThreadKeeps) {
  ASSERT_TRUE(fetcher.fetch_run_to_keep(0, 1).ok());
  EXPECT_EQ(steps(), Steps({"change mutex", "load keeper", "load version", "read", "store keeper",
                            "store mutex"}));
  EXPECT_TRUE(pages.lookup(0)->kept);
  EXPECT_TRUE(pages.lookup(0)->shared);
  EXPECT_EQ(directory.keeper(0)->thread, 1U);
}

// Pages 0 and 1 have two homes, and their words one place there.
TEST_F(PageFetchTest, KeepsNeighboursUnderAllTheirMutexes) {
  ASSERT_TRUE(fetcher.fetch_run_to_keep(0, 2).ok());
  EXPECT_EQ(steps(), Steps({"change mutex", "load keeper", "change mutex", "load keeper",
                            "load version", "read", "load version", "read", "store keeper",
                            "store mutex", "store keeper", "store mutex"}));
  for (const Page page : {0, 1}) {
    EXPECT_TRUE(pages.lookup(page)->kept && pages.lookup(page)->shared);
    EXPECT_EQ(directory.keeper(page)->slot, pages.slot(page));
  }
}

// The one in the middle has another keeper.
TEST_F(PageFetchTest, KeepsTheNeighboursThatNoThreadKeeps) {
  for (Page page = 0; page < 4; ++page)
    while (directory.version(page) < page + 5) directory.raise_version(page);
  directory.set_keeper(1, {.thread = 0, .slot = 1});
  ASSERT_TRUE(fetcher.fetch_run_to_keep(0, 4).ok());
  for (Page page = 0; page < 4; ++page) {
    EXPECT_EQ(pages.lookup(page)->kept, page != 1);
    EXPECT_EQ(pages.lookup(page)->version, page + 5);
    EXPECT_EQ(directory.keeper(page)->thread, page == 1 ? 0U : 1U);
    ASSERT_TRUE(directory.lock(page).ok()) << "it is free";
  }
}

TEST_F(PageFetchTest, BringsNeighboursWithTheirVersions) {
  for (Page page = 0; page < 4; ++page)
    while (directory.version(page) < 2 * page + 1) directory.raise_version(page);
  Core writer(host.attachment(0));
  Transfer of_writer(writer, of_transport, shape);
  for (Page page = 0; page < 4; ++page)
    ASSERT_TRUE(of_writer.put(page, PageBytes(shape.page_bytes, std::byte(page + 30))).ok());
  ASSERT_TRUE(fetcher.fetch(0).ok());
  ASSERT_TRUE(fetcher.fetch_run(1, 3, false).ok());
  for (Page page = 0; page < 4; ++page) {
    EXPECT_EQ(pages.lookup(page)->version, 2 * page + 1);
    EXPECT_EQ(pages.frame(page)[shape.page_bytes - 1], std::byte(page + 30));
    EXPECT_FALSE(pages.lookup(page)->kept);
  }
}

TEST_F(PageFetchTest, LeavesAKeptPageToItsKeeper) {
  directory.set_keeper(0, {.thread = 0, .slot = 1});
  ASSERT_TRUE(fetcher.fetch_run_to_keep(0, 1).ok());
  EXPECT_FALSE(pages.lookup(0)->kept);
  EXPECT_EQ(directory.keeper(0)->thread, 0U);
  ASSERT_TRUE(directory.lock(0).ok()) << "it is free";
}

// ---- The parts of a kept page -------------------------------------------------------------------

TEST_F(PageFetchTest, AddsTheDifferencesThatTheHomeOfAKeptPageHas) {
  const PageBytes exposed(shape.page_bytes, std::byte{0x55});
  const PageBytes differences(shape.page_bytes, std::byte{0x0f});
  Core keeper(host.attachment(0));
  Transfer of_keeper(keeper, of_transport, shape);
  ASSERT_TRUE(of_keeper.expose(2, exposed).ok());
  ASSERT_TRUE(of_keeper.put(0, differences).ok());
  for (const bool mixed : {false, true}) {
    directory.set_keeper(0, {.thread = 0, .slot = 2, .mixed = mixed});
    ASSERT_TRUE(fetcher.fetch(0).ok());
    EXPECT_EQ(pages.frame(0)[7], mixed ? std::byte{0x5a} : std::byte{0x55});
    pages.invalidate(0);
  }
}

}  // namespace
}  // namespace tombolo::dsm
