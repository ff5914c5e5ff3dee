// SPDX-License-Identifier: Apache-2.0
// Purpose: tests the list of conversations that something was told of: each once, in order, and
// none that was dropped.
// Thread safety: -
#include "svp/remote/change_list.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <thread>

namespace tombolo::svp {
namespace {

struct Entry {
  ChangeLink<Entry> told;
  std::atomic<std::uint32_t> changes{0};
  std::uint32_t seen = 0;
};

TEST(ChangeList, GivesEachEntryOnceInOrder) {
  ChangeList<Entry> list;
  std::array<Entry, 3> entries;
  EXPECT_FALSE(list.any());
  EXPECT_EQ(list.take(), nullptr);
  for (const int i : {1, 0, 1, 2, 0}) list.tell(entries[static_cast<std::size_t>(i)]);
  EXPECT_TRUE(list.any());
  EXPECT_EQ(list.take(), &entries[1]);
  list.tell(entries[1]);
  EXPECT_EQ(list.take(), &entries[0]);
  EXPECT_EQ(list.take(), &entries[2]);
  EXPECT_EQ(list.take(), &entries[1]);
  EXPECT_FALSE(list.any());
  EXPECT_EQ(list.take(), nullptr);
}

TEST(ChangeList, DropsAnyEntry) {
  for (std::size_t dropped = 0; dropped < 3; ++dropped) {
    ChangeList<Entry> list;
    std::array<Entry, 3> entries;
    for (Entry& entry : entries) list.tell(entry);
    list.drop(entries[dropped]);
    list.drop(entries[dropped]);
    list.tell(entries[dropped]);
    for (std::size_t i = 0; i < 3; ++i) {
      if (i == dropped) continue;
      EXPECT_EQ(list.take(), &entries[i]);
    }
    EXPECT_EQ(list.take(), &entries[dropped]);
    list.tell(entries[0]);
    list.drop(entries[0]);
    EXPECT_FALSE(list.any());
    list.tell(entries[1]);
    EXPECT_EQ(list.take(), &entries[1]);
  }
}

// A change before tell() is seen by the taker that gets the entry afterwards.
TEST(ChangeList, MissesNoChange) {
  constexpr std::uint32_t changes = 20000;
  ChangeList<Entry> list;
  std::array<Entry, 2> entries;
  std::array<std::thread, 2> tellers;
  for (std::size_t i = 0; i < 2; ++i)
    tellers[i] = std::thread([&, i] {
      for (std::uint32_t n = 1; n <= changes; ++n) {
        entries[i].changes.store(n);
        list.tell(entries[i]);
      }
    });
  while (entries[0].seen != changes || entries[1].seen != changes)
    if (Entry* const entry = list.take()) entry->seen = entry->changes.load();
  for (std::thread& teller : tellers) teller.join();
}

}  // namespace
}  // namespace tombolo::svp
