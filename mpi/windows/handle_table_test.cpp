// SPDX-License-Identifier: Apache-2.0
#include "mpi/windows/handle_table.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <random>
#include <thread>
#include <vector>

namespace tombolo::mpi {
namespace {

using Table = HandleTable<int, int>;

TEST(HandleTable, FindsWhatIsInAndNothingElse) {
  Table table;
  EXPECT_EQ(table.find(1), nullptr);
  std::array<int, 64> values{};
  std::map<int, int*> model;
  std::mt19937 random(7);
  for (int i = 0; i < 200'000; ++i) {
    const int handle = static_cast<int>(random() % 200) * 16;
    int* const value = &values[random() % values.size()];
    if (random() % 2 == 0) {
      table.insert(handle, value);
      model[handle] = value;
    } else if (const auto known = model.find(handle); known != model.end()) {
      table.erase(handle, known->second);
      model.erase(known);
    }
    const int asked = static_cast<int>(random() % 200) * 16;
    const auto known = model.find(asked);
    ASSERT_EQ(table.find(asked), known == model.end() ? nullptr : known->second) << i;
    ASSERT_EQ(table.size(), model.size());
  }
}

TEST(HandleTable, AHandleUsedAgainIsNotTakenOutByItsFormerOwner) {
  Table table;
  int former = 0;
  int latter = 0;
  table.insert(5, &former);
  table.insert(5, &latter);
  EXPECT_EQ(table.find(5), &latter);
  table.erase(5, &former);
  EXPECT_EQ(table.find(5), &latter);
  table.erase(5, &latter);
  EXPECT_EQ(table.find(5), nullptr);
  table.erase(5, &latter);
  EXPECT_EQ(table.size(), 0u);
}

TEST(HandleTable, TakesNoMoreMemoryHoweverManyComeAndGo) {
  constexpr std::size_t at_once = 100;
  Table table;
  int value = 0;
  std::array<int, at_once> handles{};
  std::mt19937 random(11);
  for (int i = 0; i < 1'000'000; ++i) {
    int& handle = handles[random() % at_once];
    if (handle != 0) table.erase(handle, &value);
    handle = static_cast<int>(random() | 1);
    table.insert(handle, &value);
  }
  EXPECT_LE(table.slots(), 16 * at_once);
}

// The slots of a new table, of which there are 16: handles that begin their search at `home`.
std::vector<int> handles_at(std::size_t home, std::size_t n) {
  std::vector<int> handles;
  for (int handle = 1; handles.size() < n; ++handle)
    if (((static_cast<std::uintptr_t>(handle) * 0x9e3779b97f4a7c15u >> 40) & 15) == home)
      handles.push_back(handle);
  return handles;
}

TEST(HandleTable, ASearchGoesOnFromTheLastSlotToTheFirst) {
  Table table;
  std::array<int, 6> values{};
  const std::vector<int> handles = handles_at(15, values.size());
  for (std::size_t i = 0; i < values.size(); ++i) table.insert(handles[i], &values[i]);
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(table.find(handles[i]), &values[i]);
  // From the middle: those behind must be found on.
  table.erase(handles[2], &values[2]);
  table.erase(handles[0], &values[0]);
  for (const std::size_t gone : {0u, 2u}) EXPECT_EQ(table.find(handles[gone]), nullptr);
  for (const std::size_t there : {1u, 3u, 4u, 5u})
    EXPECT_EQ(table.find(handles[there]), &values[there]);
  // A slot that was given up is taken again, the first one of the search.
  table.insert(handles[2], &values[0]);
  EXPECT_EQ(table.find(handles[2]), &values[0]);
  EXPECT_EQ(table.size(), 5u);
  EXPECT_EQ(table.slots(), 16u);
}

TEST(HandleTable, AHandleThatIsThereIsNotPutIntoAFreeSlotBeforeIt) {
  Table table;
  std::array<int, 4> values{};
  const std::vector<int> handles = handles_at(3, 3);
  for (std::size_t i = 0; i < 3; ++i) table.insert(handles[i], &values[i]);
  table.erase(handles[0], &values[0]);
  table.insert(handles[2], &values[3]);
  EXPECT_EQ(table.size(), 2u) << "it means another value, and is no second entry";
  EXPECT_EQ(table.find(handles[2]), &values[3]);
  table.erase(handles[2], &values[3]);
  EXPECT_EQ(table.find(handles[2]), nullptr) << "a second entry would come to light";
  EXPECT_EQ(table.find(handles[1]), &values[1]);
}

TEST(HandleTable, GrowsWhenHalfOfItIsInUse) {
  Table table;
  int value = 0;
  for (int handle = 1; handle <= 8; ++handle) table.insert(handle, &value);
  EXPECT_EQ(table.slots(), 16u);
  table.insert(9, &value);
  EXPECT_EQ(table.slots(), 16u + 32);
  for (int handle = 1; handle <= 9; ++handle) EXPECT_EQ(table.find(handle), &value);
  for (int handle = 10; handle <= 16; ++handle) table.insert(handle, &value);
  EXPECT_EQ(table.slots(), 16u + 32);
  table.insert(17, &value);
  EXPECT_EQ(table.slots(), 16u + 32 + 64);
  EXPECT_EQ(table.size(), 17u);
}

TEST(HandleTable, SlotsThatAreGivenUpCountUntilASearchNeedsThemNoMore) {
  Table table;
  int value = 0;
  const std::vector<int> handles = handles_at(7, 8);
  for (const int handle : handles) table.insert(handle, &value);
  // All but the last are only kept for it.
  for (std::size_t i = 0; i < 7; ++i) table.erase(handles[i], &value);
  EXPECT_EQ(table.find(handles[7]), &value);
  EXPECT_EQ(table.size(), 1u);
  // With it all eight are free: as many others fit without growing.
  table.erase(handles[7], &value);
  for (const int handle : handles_at(2, 8)) table.insert(handle, &value);
  EXPECT_EQ(table.slots(), 16u);
}

TEST(HandleTable, WithoutAnEntryErasesNothing) {
  Table table;
  int value = 0;
  int other = 0;
  const std::vector<int> handles = handles_at(5, 2);
  table.erase(handles[0], &value);
  table.insert(handles[0], &value);
  table.erase(handles[1], &value);
  table.erase(handles[0], &other);
  EXPECT_EQ(table.find(handles[0]), &value);
  EXPECT_EQ(table.size(), 1u);
}

TEST(HandleTable, HandlesMayBePointers) {
  HandleTable<void*, int> table;
  std::array<int, 40> values{};
  for (int& value : values) table.insert(&value, &value);
  for (int& value : values) EXPECT_EQ(table.find(&value), &value);
  EXPECT_EQ(table.find(nullptr), nullptr) << "no entry, though free slots hold this handle";
  EXPECT_EQ(table.find(&table), nullptr);
}

TEST(HandleTable, TheHandleOfFreeSlotsCanBeAnEntry) {
  Table table;
  int value = 0;
  EXPECT_EQ(table.find(0), nullptr);
  table.insert(0, &value);
  EXPECT_EQ(table.find(0), &value);
  table.erase(0, &value);
  EXPECT_EQ(table.find(0), nullptr);
}

TEST(HandleTable, ReadersFindTheirOwnWhileOthersComeAndGo) {
  Table table;
  std::array<int, 4> values{};
  for (int i = 0; i < 4; ++i) table.insert(1000 + i, &values[static_cast<std::size_t>(i)]);
  std::atomic<bool> done = false;
  std::atomic<int> wrong = 0;
  std::thread readers[2];
  for (auto& reader : readers)
    reader = std::thread([&] {
      while (!done)
        for (int i = 0; i < 4; ++i) {
          if (table.find(1000 + i) != &values[static_cast<std::size_t>(i)]) ++wrong;
          if (table.find(2000 + i) != nullptr) ++wrong;
        }
    });
  int other = 0;
  std::mt19937 random(13);
  for (int most = 1; most < 600; most += 7) {
    std::vector<int> in;
    for (int i = 0; i < most; ++i) {
      in.push_back(static_cast<int>(4000 + random() % 100'000 * 8));
      table.insert(in.back(), &other);
    }
    for (const int handle : in) table.erase(handle, &other);
  }
  done = true;
  for (auto& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace tombolo::mpi
