// SPDX-License-Identifier: Apache-2.0
// Purpose: the parts of a page with a keeper, and the order in which a change becomes known (DPS1
// to DPS3): the mark of the readers, the bytes, the version. Schedules that tell them apart are
// rare.
// Thread safety: -
#include "dsm/protocol/page_send.h"

#include <gtest/gtest.h>

#include "dsm/testing/exposed_pages.h"
#include "dsm/testing/noting_core.h"
#include "dsm/transport/core_transport.h"
#include "machine/testing/ensemble.h"

namespace tombolo::dsm {
namespace {

using testing::follows;
using testing::Steps;
using Core = testing::NotingCore;
using Transfer = CoreTransport<Core>;
using testing::ExposedPages;
using testing::PrivatePages;

// A thread, number 1, with pages in place or not.
template <class Pages>
class Sender {
 public:
  static constexpr Shape shape{.threads = 2, .pages = 4, .page_bytes = 128, .cached_pages = 4};

  Sender() { core.watch_page(words.words); }

  machine::SyncLayout layout{Core::reserved_sync_bytes(shape.threads)};
  Transfer::Layout of_transport = Transfer::take(layout, shape);
  PageDirectory<Core>::Layout words = PageDirectory<Core>::take(layout, shape);
  machine::testing::Host<Core> host{
      machine::testing::EnsembleShape{.cores = shape.threads,
                                      .sync_bytes = layout.bytes(),
                                      .data_bytes = Transfer::data_bytes(shape)}};
  Core core{host.attachment(1)};
  Transfer transport{core, of_transport, shape};
  Pages pages{shape};
  PageDirectory<Core> directory{core, words, shape};
  PageSend<Transfer, Pages> sender{transport, pages, directory};

  static PageBytes filled(unsigned char with) {
    return PageBytes(shape.page_bytes, static_cast<std::byte>(with));
  }
  PageNote& cache(unsigned char with) { return pages.install(0, filled(with)); }
  void set_home(unsigned char with) { ASSERT_TRUE(transport.put(0, filled(with)).ok()); }
  int home() {
    PageBytes bytes(shape.page_bytes);
    EXPECT_TRUE(transport.get(0, bytes).ok());
    return std::to_integer<int>(bytes[5]);
  }
  int exposed(std::uint32_t slot) {
    PageBytes bytes(shape.page_bytes);
    EXPECT_TRUE(transport.get_exposed(1, slot, bytes).ok());
    return std::to_integer<int>(bytes[5]);
  }
  // A difference of such bytes; its version.
  std::uint64_t expect_sent(unsigned char with) {
    std::uint64_t version = 0;
    EXPECT_TRUE(sender.send(0, filled(with), version).ok());
    return version;
  }
  // The page's mutex is free.
  void expect_free() {
    EXPECT_TRUE(directory.lock(0).ok());
    directory.unlock(0);
  }
};

// ---- Differences --------------------------------------------------------------------------------

TEST(PageSend, ADifferenceGoesIntoThePageAtItsHome) {
  Sender<PrivatePages> one;
  one.set_home(0x70);
  one.cache(1);
  one.expect_sent(0x0f);
  EXPECT_EQ(one.home(), 0x7f);
  EXPECT_FALSE(one.directory.keeper(0));
  one.expect_free();
}

// The home of a kept page means nothing before the first one.
TEST(PageSend, TheFirstDifferenceBesideAKeeperReplacesItsHome) {
  Sender<PrivatePages> one;
  one.set_home(0x70);
  one.directory.set_keeper(0, {.thread = 0, .slot = 3, .shared = true});
  one.cache(1);
  one.expect_sent(0x0f);
  EXPECT_EQ(one.home(), 0x0f);
  const auto keeper = one.directory.keeper(0);
  EXPECT_TRUE(keeper->mixed && keeper->shared);
  EXPECT_EQ(keeper->thread, 0U);
  EXPECT_EQ(keeper->slot, 3U);
  one.expect_sent(0x30);
  EXPECT_EQ(one.home(), 0x3f) << "the second joins it";
  one.expect_free();
}

// A thread that begins to keep the page meanwhile would lack it, or take its copy for one that has
// it.
TEST(PageSend, ADifferenceAndItsVersionAreSentUnderTheMutex) {
  Sender<PrivatePages> one;
  one.directory.set_keeper(0, {.thread = 0, .slot = 3});
  one.cache(1);
  one.core.take_steps();
  one.expect_sent(0x0f);
  EXPECT_EQ(one.core.take_steps(), Steps({"change mutex", "load keeper", "write", "store keeper",
                                          "add version", "store mutex"}));
}

TEST(PageSend, AVersionIsTheCachedPagesOnlyAfterTheOneBefore) {
  Sender<PrivatePages> one;
  PageNote& note = one.cache(1);
  EXPECT_EQ(one.expect_sent(0x0f), 1U);
  EXPECT_EQ(note.version, 1U);
  one.directory.raise_version(0);  // by another thread
  EXPECT_EQ(one.expect_sent(0x0f), 3U);
  EXPECT_EQ(note.version, 1U) << "it lacks the change of the other";
}

// ---- Keepers ------------------------------------------------------------------------------------

template <class Pages>
void expect_to_keep(bool shared) {
  Sender<Pages> one;
  PageNote& note = one.cache(1);
  EXPECT_FALSE(one.sender.keeps(0));
  one.sender.keep(0);
  EXPECT_TRUE(one.sender.keeps(0));
  EXPECT_TRUE(note.kept);
  EXPECT_EQ(note.shared, shared);
  const auto keeper = one.directory.keeper(0);
  EXPECT_EQ(keeper->thread, 1U);
  EXPECT_EQ(keeper->slot, one.pages.slot(0));
  EXPECT_FALSE(keeper->shared || keeper->mixed);
  one.directory.set_keeper(0, {.thread = 0});
  EXPECT_FALSE(one.sender.keeps(0));
}
TEST(PageSend, AKeeperIsNamedWithItsSlot) { expect_to_keep<PrivatePages>(true); }
// In place none has a copy that the keeper would not hear of.
TEST(PageSend, InPlaceAPageThatBeginsToBeKeptIsNotShared) { expect_to_keep<ExposedPages>(false); }

TEST(PageSend, AKeptPageIsThereBeforeItsVersion) {
  Sender<PrivatePages> one;
  one.cache(0x11);
  one.sender.keep(0);
  for (const bool to_all : {true, false}) {
    one.core.take_steps();
    std::uint64_t version = 0;
    ASSERT_TRUE(
        (to_all ? one.sender.announce(0, version) : one.sender.announce_to_some(0, version)).ok());
    EXPECT_EQ(version, one.directory.version(0));
    EXPECT_EQ(one.pages.lookup(0)->version, version);
    const Steps steps = one.core.take_steps();
    EXPECT_TRUE(follows(steps, "change mutex", "write"));
    EXPECT_TRUE(follows(steps, "write", "add version"));
    EXPECT_TRUE(follows(steps, "add version", "store mutex"));
    EXPECT_EQ(one.exposed(one.pages.slot(0)), 0x11);
    one.expect_free();
  }
}

// A reader that comes after the version has changed sets the mark anew (DPS3).
TEST(PageSend, NoticeToAllClearsTheMarkOfReadersBeforeTheVersion) {
  Sender<ExposedPages> one;
  PageNote& note = one.cache(0x11);
  one.sender.keep(0);
  const auto mark = [&] {
    auto keeper = *one.directory.keeper(0);
    keeper.shared = note.shared = keeper.mixed = true;
    one.directory.set_keeper(0, keeper);
    one.core.take_steps();
  };
  std::uint64_t version = 0;
  mark();
  ASSERT_TRUE(one.sender.announce(0, version).ok());
  const Steps steps = one.core.take_steps();
  EXPECT_TRUE(follows(steps, "change mutex", "load keeper"));
  EXPECT_TRUE(follows(steps, "load keeper", "store keeper"));
  EXPECT_TRUE(follows(steps, "store keeper", "add version"));
  EXPECT_TRUE(follows(steps, "add version", "store mutex"));
  EXPECT_FALSE(note.shared || one.directory.keeper(0)->shared);
  EXPECT_TRUE(one.directory.keeper(0)->mixed);
  mark();
  ASSERT_TRUE(one.sender.announce_to_some(0, version).ok());
  EXPECT_TRUE(note.shared && one.directory.keeper(0)->shared) << "copies stay";
  one.expect_free();
}

TEST(PageSend, AKeptPageGoesHomeWhole) {
  Sender<PrivatePages> one;
  one.set_home(0x70);
  PageNote& note = one.cache(0x11);
  one.sender.keep(0);
  one.core.take_steps();
  ASSERT_TRUE(one.sender.give_back(0).ok());
  // It is home before another thread finds no keeper (DPF2).
  EXPECT_EQ(one.core.take_steps(),
            Steps({"change mutex", "load keeper", "write", "store keeper", "store mutex"}));
  EXPECT_EQ(one.home(), 0x11);
  EXPECT_FALSE(note.kept);
  EXPECT_FALSE(one.directory.keeper(0));
  one.expect_free();
}

TEST(PageSend, AChangedPageThatGoesHomeHasAVersionBeforeItsMutexIsFree) {
  Sender<PrivatePages> one;
  one.cache(0x11);
  one.sender.keep(0);
  one.core.take_steps();
  ASSERT_TRUE(one.sender.give_back_changed(0).ok());
  EXPECT_EQ(one.core.take_steps(), Steps({"change mutex", "load keeper", "write", "store keeper",
                                          "add version", "store mutex"}));
  EXPECT_EQ(one.directory.version(0), 1U);
}

// ---- Outside of barriers (DPS4) -----------------------------------------------------------------

bool tried_to_keep(Sender<ExposedPages>& one) {
  bool kept = false;
  EXPECT_TRUE(one.sender.try_keep(0, kept).ok());
  one.expect_free();
  return kept;
}

TEST(PageSend, APageThatLacksNoChangeIsKeptUnderItsMutex) {
  Sender<ExposedPages> one;
  PageNote& note = one.cache(0x11);
  bool kept = false;
  ASSERT_TRUE(one.sender.try_keep(0, kept).ok());
  EXPECT_EQ(one.core.take_steps(), Steps({"change mutex", "load keeper", "load version",
                                          "store keeper", "add version", "store mutex"}));
  EXPECT_TRUE(kept && note.kept);
  EXPECT_FALSE(note.shared);
  EXPECT_TRUE(one.sender.keeps(0));
  EXPECT_EQ(one.directory.version(0), 1U) << "older copies are too old";
  EXPECT_EQ(note.version, 1U);
}

TEST(PageSend, APageThatLacksAChangeIsNotKept) {
  Sender<ExposedPages> one;
  PageNote& note = one.cache(0x11);
  one.directory.raise_version(0);
  EXPECT_FALSE(tried_to_keep(one));
  EXPECT_FALSE(note.kept || one.directory.keeper(0));
  EXPECT_EQ(one.directory.version(0), 1U);
}

TEST(PageSend, APageThatAnotherThreadKeepsIsLeftToIt) {
  Sender<ExposedPages> one;
  PageNote& note = one.cache(0x11);
  one.directory.set_keeper(0, {.thread = 0, .slot = 3, .mixed = true});
  EXPECT_FALSE(tried_to_keep(one));
  EXPECT_FALSE(note.kept);
  EXPECT_EQ(one.directory.keeper(0)->thread, 0U);
  EXPECT_TRUE(one.directory.keeper(0)->mixed);
  EXPECT_EQ(one.directory.version(0), 0U);
}

// A thread may begin to keep the page meanwhile.
TEST(PageSend, AClearedPageIsMarkedUnderItsMutex) {
  Sender<ExposedPages> one;
  ASSERT_TRUE(one.sender.mark_cleared(0).ok());
  EXPECT_EQ(one.core.take_steps(),
            Steps({"change mutex", "load keeper", "store keeper", "store mutex"}));
  EXPECT_FALSE(one.directory.keeper(0)) << "it is no keeper";
  EXPECT_FALSE(one.sender.cleared_by_another(0)) << "this thread has cleared it";
  // The mark is in memory before another core looks.
  one.core.fence();
  Core other{one.host.attachment(0)};
  PageDirectory<Core> of_other(other, one.words, one.shape);
  EXPECT_TRUE(of_other.cleared_by_another(0));
}

TEST(PageSend, AKeptPageIsNotMarkedAsCleared) {
  Sender<ExposedPages> one;
  one.directory.set_keeper(0, {.thread = 0, .slot = 3});
  ASSERT_TRUE(one.sender.mark_cleared(0).ok());
  one.expect_free();
  ASSERT_TRUE(one.directory.keeper(0));
  EXPECT_EQ(one.directory.keeper(0)->thread, 0U);
  EXPECT_FALSE(one.sender.cleared_by_another(0));
}

// Each part is in the other's place without its twin.
TEST(PageSend, AKeptPageJoinsTheDifferencesAtItsHome) {
  Sender<PrivatePages> one;
  one.set_home(0x70);
  one.cache(0x11);
  one.sender.keep(0);
  auto keeper = *one.directory.keeper(0);
  keeper.mixed = true;
  one.directory.set_keeper(0, keeper);
  ASSERT_TRUE(one.sender.give_back(0).ok());
  EXPECT_EQ(one.home(), 0x61);
  EXPECT_FALSE(one.directory.keeper(0));
  one.expect_free();
}

}  // namespace
}  // namespace tombolo::dsm
