// SPDX-License-Identifier: Apache-2.0
// Purpose: atomic operations as plain values have the results of the processor's, of each size.
#include "dsm/threads/atomic_change.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <thread>
#include <vector>

namespace tombolo::dsm {
namespace {

using Kind = AtomicChange::Kind;

template <class U>
class AtomicChanges : public ::testing::Test {};
using Sizes = ::testing::Types<std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(AtomicChanges, Sizes);

// By the rules of C++ for the type.
template <class U>
U expected(Kind kind, U old, U operand) {
  using S = std::make_signed_t<U>;
  const bool less = static_cast<S>(old) < static_cast<S>(operand);
  switch (kind) {
    case Kind::load:
      return old;
    case Kind::exchange:
      return operand;
    case Kind::add:
      return static_cast<U>(old + operand);
    case Kind::sub:
      return static_cast<U>(old - operand);
    case Kind::and_:
      return old & operand;
    case Kind::or_:
      return old | operand;
    case Kind::xor_:
      return old ^ operand;
    case Kind::nand:
      return static_cast<U>(~(old & operand));
    case Kind::max:
      return less ? operand : old;
    case Kind::min:
      return less ? old : operand;
    case Kind::umax:
      return old < operand ? operand : old;
    case Kind::umin:
      return old < operand ? old : operand;
    case Kind::compare_exchange:
      return old == 3 ? operand : old;
  }
  return 0;
}

TYPED_TEST(AtomicChanges, AreThoseOfTheType) {
  using U = TypeParam;
  constexpr U most = std::numeric_limits<U>::max();
  std::mt19937_64 random(1);
  std::vector<U> values{0, 1, 3, most, most / 2, most / 2 + 1};
  for (int i = 0; i < 20; ++i) values.push_back(static_cast<U>(random()));
  for (int kind = 0; kind <= static_cast<int>(Kind::compare_exchange); ++kind) {
    for (const U old : values) {
      for (const U operand : values) {
        const AtomicChange change{
            .kind = static_cast<Kind>(kind), .operand = operand, .expected = 3};
        const U right = expected(change.kind, old, operand);
        EXPECT_EQ(change.of(old, sizeof(U)), right) << kind << ": " << +old << ", " << +operand;
        U value = old;
        EXPECT_EQ(change_by_processor(&value, sizeof(U), change), old);
        EXPECT_EQ(value, right);
      }
    }
  }
}

TEST(AtomicChange, IsOneOperationForAllThreads) {
  std::uint32_t count = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < 20000; ++k)
        change_by_processor(&count, sizeof count, {.kind = Kind::add, .operand = 1});
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, 80000u);
}

TEST(AtomicChangeDeathTest, HasTheSizeOfANumber) {
  std::uint64_t value = 0;
  EXPECT_DEATH(change_by_processor(&value, 3, {}), "an atomic operation of 3 bytes");
}

}  // namespace
}  // namespace tombolo::dsm
