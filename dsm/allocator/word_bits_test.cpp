// SPDX-License-Identifier: Apache-2.0
// Purpose: maps of bits in words, beside a vector of bools, with ranges that begin and end anywhere
// in a word.
// Thread safety: -
#include "dsm/allocator/word_bits.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "dsm/allocator/testing/plain_memory.h"

namespace tombolo::dsm::testing {
namespace {

constexpr std::uint64_t size = 5 * 64;
using Bools = std::vector<bool>;

std::uint64_t find(const Bools& bits, bool value, std::uint64_t from, std::uint64_t to) {
  while (from < to && bits[from] != value) ++from;
  return from;
}

std::optional<std::uint64_t> clear_run(const Bools& bits, std::uint64_t from, std::uint64_t to,
                                       std::uint64_t count, std::uint64_t step,
                                       std::uint64_t phase) {
  for (; from + count <= to; ++from)
    if ((from + phase) % step == 0 && find(bits, true, from, from + count) == from + count)
      return from;
  return std::nullopt;
}

std::optional<std::uint64_t> last_clear(const Bools& bits, std::uint64_t to) {
  while (to > 0)
    if (!bits[--to]) return to;
  return std::nullopt;
}

std::uint64_t longest_clear_run(const Bools& bits, std::uint64_t from, std::uint64_t to) {
  std::uint64_t longest = 0;
  std::uint64_t here = 0;
  for (; from < to; ++from) longest = std::max(longest, here = bits[from] ? 0 : here + 1);
  return longest;
}

TEST(WordBits, AreAsAVectorOfBools) {
  constexpr std::uint64_t seed = 11;
  SCOPED_TRACE(seed);
  Random random(seed);
  PlainProgram program({.bytes = 4 * group_bytes});
  PlainMemory memory(program, 0);
  WordBits bits(memory, 3);
  Bools expected(size, false);
  for (int step = 0; step < 20000; ++step) {
    const std::uint64_t a = random.below(size + 1);
    const std::uint64_t b = random.below(size + 1);
    // Short ranges leave runs to be found.
    const std::uint64_t from = std::min(a, b);
    const std::uint64_t to = random.one_in(4) ? std::max(a, b) : std::min(size, from + b % 9);
    const bool value = random.one_in(2);
    value ? bits.set(from, to) : bits.clear(from, to);
    for (std::uint64_t i = from; i < to; ++i) expected[i] = value;

    const std::uint64_t low = random.below(size + 1);
    const std::uint64_t high = low + random.below(size + 1 - low);
    for (const bool v : {false, true})
      ASSERT_EQ(bits.find(v, low, high), find(expected, v, low, high)) << step;
    const std::uint64_t count = 1 + random.below(80);
    const std::uint64_t step_bits = std::uint64_t{1} << random.below(6);
    const std::uint64_t phase = random.below(64);
    ASSERT_EQ(bits.clear_run(low, high, count, step_bits, phase),
              clear_run(expected, low, high, count, step_bits, phase))
        << step;
    ASSERT_EQ(bits.last_clear(high), last_clear(expected, high)) << step;
    ASSERT_EQ(bits.longest_clear_run(low, high), longest_clear_run(expected, low, high)) << step;
    if (low < size) {
      ASSERT_EQ(bits.test(low), expected[low]) << step;
    }
  }
}

}  // namespace
}  // namespace tombolo::dsm::testing
