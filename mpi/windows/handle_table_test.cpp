// SPDX-License-Identifier: Apache-2.0
#include "mpi/windows/handle_table.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <random>
#include <thread>

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
