// SPDX-License-Identifier: Apache-2.0
// Purpose: notices of readers come to the keeper of a page, and a keeper's stores are in memory
// before it looks for them (DNR1).
// Thread safety: -
#include "dsm/protocol/reader_notices.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "backends/stale/stale.h"
#include "machine/testing/ensemble.h"
#include "machine/testing/forwarding.h"

namespace tombolo::dsm {
namespace {

// Notes its loads and fences.
class Noting : public machine::testing::Forwarding<stale::Core> {
 public:
  using Base = machine::testing::Forwarding<stale::Core>;
  using Base::Base;
  std::uint64_t load(Word word) {
    calls += 'l';
    return Base::load(word);
  }
  void fence() {
    calls += 'f';
    Base::fence();
  }
  std::string calls;
};

class ReaderNoticesTest : public ::testing::Test {
 protected:
  static constexpr Shape shape{.threads = 2, .pages = 8, .notices = 4};

  // Calls body(core, notices, directory) on two cores.
  template <class Body>
  void run(Body&& body) {
    machine::SyncLayout layout(Noting::reserved_sync_bytes(shape.threads));
    const auto ring = ReaderNotices<Noting>::take(layout, shape);
    const auto words = PageDirectory<Noting>::take(layout, shape);
    machine::testing::Host<Noting> host(machine::testing::EnsembleShape{
        .cores = shape.threads, .sync_bytes = layout.bytes(), .data_bytes = 64});
    Noting keeper(host.attachment(0));
    Noting reader(host.attachment(1));
    ReaderNotices<Noting> of_keeper(keeper, ring, shape);
    ReaderNotices<Noting> of_reader(reader, ring, shape);
    PageDirectory<Noting> directory(keeper, words, shape);
    body(keeper, of_keeper, of_reader, directory);
  }
  static std::vector<Page> read(ReaderNotices<Noting>& notices, bool& lost) {
    std::vector<Page> pages;
    EXPECT_TRUE(notices.read([&](Page page) { pages.push_back(page); }, lost).ok());
    return pages;
  }
};

TEST_F(ReaderNoticesTest, ComeToTheirKeeperOnceAndInOrder) {
  run([](Noting&, auto& of_keeper, auto& of_reader, auto&) {
    bool lost = false;
    EXPECT_EQ(read(of_keeper, lost), std::vector<Page>{});
    EXPECT_TRUE(of_reader.give(0, 5).ok());
    EXPECT_TRUE(of_reader.give(0, 3).ok());
    EXPECT_TRUE(of_reader.give(1, 7).ok());
    EXPECT_EQ(read(of_keeper, lost), (std::vector<Page>{5, 3}));
    EXPECT_EQ(read(of_keeper, lost), std::vector<Page>{});
    EXPECT_EQ(read(of_reader, lost), std::vector<Page>{7}) << "to another keeper";
    EXPECT_FALSE(lost);
  });
}

TEST_F(ReaderNoticesTest, SayThatSomeAreLost) {
  run([](Noting&, auto& of_keeper, auto& of_reader, auto&) {
    bool lost = false;
    for (Page page = 0; page < 5; ++page) EXPECT_TRUE(of_reader.give(0, page).ok());
    EXPECT_EQ(read(of_keeper, lost), std::vector<Page>{});
    EXPECT_TRUE(lost);
    EXPECT_TRUE(of_reader.give(0, 6).ok());
    EXPECT_EQ(read(of_keeper, lost), std::vector<Page>{6});
    EXPECT_FALSE(lost);
  });
}

TEST_F(ReaderNoticesTest, AreLookedForAfterAFence) {
  run([](Noting& keeper, auto& of_keeper, auto&, auto&) {
    bool lost = false;
    keeper.calls.clear();
    read(of_keeper, lost);
    EXPECT_EQ(keeper.calls, "fl");
  });
}

TEST_F(ReaderNoticesTest, TheMarkOfAPageIsLookedAtAfterAFence) {
  run([](Noting& keeper, auto& of_keeper, auto&, auto& directory) {
    directory.set_keeper(2, {.thread = 0, .slot = 2});
    keeper.calls.clear();
    EXPECT_FALSE(of_keeper.has_reader(directory, 2));
    EXPECT_EQ(keeper.calls, "fl");
    directory.set_keeper(2, {.thread = 0, .slot = 2, .shared = true});
    EXPECT_TRUE(of_keeper.has_reader(directory, 2));
  });
}

}  // namespace
}  // namespace tombolo::dsm
