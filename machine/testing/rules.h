// SPDX-License-Identifier: Apache-2.0
// Purpose: parts of the tests of the machine contract that are the same on every machine, however
// its cores are run: short forms for words in data, bytes to recognise, and the parts of tests that
// one core carries out.
// Thread safety: as the core that is handed in; CountingHook: any.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "machine/contract.h"

namespace tombolo::machine::testing {

inline void expect_ok(const Status& status) { EXPECT_TRUE(status.ok()) << status.message(); }

template <class C>
void put_word(C& core, DataPlace place, std::uint64_t v) {
  expect_ok(core.write(place, &v, sizeof v));
}
template <class C>
std::uint64_t get_word(C& core, DataPlace place) {
  std::uint64_t v = 0;
  expect_ok(core.read(place, &v, sizeof v));
  return v;
}
template <class C>
void put_word_through(C& core, DataPlace place, std::uint64_t v) {
  expect_ok(core.write_through(place, &v, sizeof v));
}

using Bytes = std::vector<std::uint8_t>;

inline Bytes pattern(std::size_t bytes, std::uint64_t salt) {
  Bytes data(bytes);
  Random random(salt);
  for (auto& byte : data) byte = static_cast<std::uint8_t>(random.next());
  return data;
}

// The word is 0 before and after.
template <class C>
void expect_atomics_return_what_was_there(C& core, typename C::Word word) {
  EXPECT_EQ(core.load(word), 0u);
  core.store(word, 5);
  EXPECT_EQ(core.load(word), 5u);
  EXPECT_EQ(core.fetch_add(word, 3), 5u);
  EXPECT_EQ(core.exchange(word, 20), 8u);
  EXPECT_EQ(core.compare_exchange(word, 19, 1), 20u);
  EXPECT_EQ(core.load(word), 20u);
  EXPECT_EQ(core.compare_exchange(word, 20, 1), 20u);
  EXPECT_EQ(core.load(word), 1u);
  EXPECT_EQ(core.fetch_add(word, ~std::uint64_t{0}), 1u);
  EXPECT_EQ(core.load(word), 0u);
}

// The value of byte i of a region whose cores write a part of it each.
inline std::uint8_t value_of_byte(std::size_t i, std::size_t round) {
  return static_cast<std::uint8_t>(i * 7 + round * 31);
}
// Writes the core's own pieces through: pieces of 1 to 8 bytes, of which piece k is that of core k
// modulo their number.
template <class C>
void write_own_pieces(C& core, Home home, std::size_t bytes, std::size_t round) {
  std::size_t piece = 0;
  for (std::size_t i = 0; i < bytes; ++piece) {
    const std::size_t count = std::min(bytes - i, 1 + piece * 5 % 8);
    if (piece % core.cores() == core.self()) {
      std::array<std::uint8_t, 8> data{};
      for (std::size_t b = 0; b < count; ++b) data[b] = value_of_byte(i + b, round);
      expect_ok(core.write_through({home, i}, data.data(), count));
    }
    i += count;
  }
}
template <class C>
void expect_all_pieces(C& core, Home home, std::size_t bytes, std::size_t round) {
  core.refresh({home, 0}, bytes);
  Bytes all(bytes);
  expect_ok(core.read({home, 0}, all.data(), bytes));
  for (std::size_t i = 0; i < bytes; ++i)
    ASSERT_EQ(all[i], value_of_byte(i, round)) << "byte " << i << ", round " << round;
}

class CountingHook final : public IdleHook {
 public:
  explicit CountingHook(int fail_at) : fail_at_(fail_at) {}
  Status idle() override {
    if (++calls_ >= fail_at_) return Status::process_failed(1, "rank 1 died");
    return {};
  }
  int calls() const { return calls_; }

 private:
  int fail_at_;
  std::atomic<int> calls_{0};
};

}  // namespace tombolo::machine::testing
