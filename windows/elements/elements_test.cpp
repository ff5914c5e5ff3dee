// SPDX-License-Identifier: Apache-2.0
// Purpose: every operation on every element against a scalar reference that shares no code with the
// implementation: seeded random data, unaligned addresses, counts from 0 to thousands.
// Invariants: a failure prints element, operation, count, shift and index.
// Thread safety: a test program.
#include "windows/elements/elements.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

namespace tombolo::windows {
namespace {

using Quad = __float128;
struct QuadComplex {
  Quad re, im;
};
struct FloatInt {
  float v;
  int i;
};
struct DoubleInt {
  double v;
  int i;
};
struct LongInt {
  long v;
  int i;
};
struct IntInt {
  int v, i;
};
struct ShortInt {
  short v;
  int i;
};
struct LongDoubleInt {
  long double v;
  int i;
};
struct Reals {
  float v, i;
};
struct Doubles {
  double v, i;
};

enum class Kind { integer, real, complex, logical, opaque, byte, pair };

template <typename T>
concept PairType = requires(T t) {
  t.v;
  t.i;
};

// Calls f<T>(element, kind) for every element.
template <typename F>
void for_every_element(F f) {
  f.template operator()<std::int8_t>(Element::i8, Kind::integer);
  f.template operator()<std::uint8_t>(Element::u8, Kind::integer);
  f.template operator()<std::int16_t>(Element::i16, Kind::integer);
  f.template operator()<std::uint16_t>(Element::u16, Kind::integer);
  f.template operator()<std::int32_t>(Element::i32, Kind::integer);
  f.template operator()<std::uint32_t>(Element::u32, Kind::integer);
  f.template operator()<std::int64_t>(Element::i64, Kind::integer);
  f.template operator()<std::uint64_t>(Element::u64, Kind::integer);
  f.template operator()<__int128>(Element::i128, Kind::integer);
  f.template operator()<float>(Element::f32, Kind::real);
  f.template operator()<double>(Element::f64, Kind::real);
  f.template operator()<long double>(Element::f80, Kind::real);
  f.template operator()<Quad>(Element::f128, Kind::real);
  f.template operator()<std::complex<float>>(Element::c32, Kind::complex);
  f.template operator()<std::complex<double>>(Element::c64, Kind::complex);
  f.template operator()<std::complex<long double>>(Element::c_long_double, Kind::complex);
  f.template operator()<QuadComplex>(Element::c_f128, Kind::complex);
  f.template operator()<std::uint8_t>(Element::boolean, Kind::logical);
  f.template operator()<std::int16_t>(Element::logical2, Kind::logical);
  f.template operator()<std::int32_t>(Element::logical, Kind::logical);
  f.template operator()<std::int64_t>(Element::logical8, Kind::logical);
  f.template operator()<__int128>(Element::logical16, Kind::logical);
  f.template operator()<char>(Element::character, Kind::opaque);
  f.template operator()<wchar_t>(Element::wide_character, Kind::opaque);
  f.template operator()<std::uint8_t>(Element::packed, Kind::opaque);
  f.template operator()<std::uint16_t>(Element::f16, Kind::opaque);
  f.template operator()<std::uint32_t>(Element::c16, Kind::opaque);
  f.template operator()<std::uint8_t>(Element::byte, Kind::byte);
  f.template operator()<FloatInt>(Element::float_int, Kind::pair);
  f.template operator()<DoubleInt>(Element::double_int, Kind::pair);
  f.template operator()<LongInt>(Element::long_int, Kind::pair);
  f.template operator()<IntInt>(Element::int_int, Kind::pair);
  f.template operator()<ShortInt>(Element::short_int, Kind::pair);
  f.template operator()<LongDoubleInt>(Element::long_double_int, Kind::pair);
  f.template operator()<Reals>(Element::two_real, Kind::pair);
  f.template operator()<Doubles>(Element::two_double_precision, Kind::pair);
  f.template operator()<IntInt>(Element::two_integer, Kind::pair);
}

constexpr Op all_ops[] = {Op::sum,    Op::prod,   Op::min,     Op::max,  Op::land,
                          Op::lor,    Op::lxor,   Op::band,    Op::bor,  Op::bxor,
                          Op::minloc, Op::maxloc, Op::replace, Op::no_op};

// The table of the MPI standard (chapter on reductions), written as a list per kind.
bool allowed(Op op, Kind kind) {
  const std::string o = name(op);
  const auto in = [&](const char* list) {
    return std::string(list).find(" " + o + " ") != std::string::npos;
  };
  if (in(" replace no_op ")) return true;
  switch (kind) {
    case Kind::integer:
      return in(" sum prod min max land lor lxor band bor bxor ");
    case Kind::real:
      return in(" sum prod min max ");
    case Kind::complex:
      return in(" sum prod ");
    case Kind::logical:
      return in(" land lor lxor ");
    case Kind::byte:
      return in(" band bor bxor ");
    case Kind::pair:
      return in(" minloc maxloc ");
    case Kind::opaque:
      break;
  }
  return false;
}

using Random = std::mt19937_64;

template <typename T>
T random_value(Random& random) {
  const auto small = [&] { return static_cast<int>(random() % 33) - 16; };
  if constexpr (PairType<T>) {
    T t;
    std::memset(static_cast<void*>(&t), 0x5a, sizeof t);
    t.v = static_cast<decltype(t.v)>(small() / 4);
    t.i = static_cast<decltype(t.i)>(small());
    return t;
  } else if constexpr (std::is_same_v<T, QuadComplex>) {
    return {small() / Quad(4), small() / Quad(8)};
  } else if constexpr (requires(T t) { t.real(); }) {
    using R = typename T::value_type;
    return {static_cast<R>(small()) / 3, static_cast<R>(small()) / 7};
  } else if constexpr (std::is_floating_point_v<T>) {
    return random() % 50 == 0 ? std::numeric_limits<T>::quiet_NaN() : static_cast<T>(small()) / 3;
  } else if constexpr (std::is_same_v<T, Quad>) {
    return static_cast<T>(small()) / 3;
  } else {
    const bool zero = random() % 4 == 0;
    unsigned __int128 bits = random();
    bits = bits << 64 | random();
    return zero ? T{0} : static_cast<T>(bits);
  }
}

template <typename T>
T integer_reference(Op op, T a, T b) {
  unsigned __int128 x = static_cast<unsigned __int128>(a);
  unsigned __int128 y = static_cast<unsigned __int128>(b);
  switch (op) {
    case Op::sum:
      return static_cast<T>(x + y);
    case Op::prod:
      return static_cast<T>(x * y);
    case Op::min:
      return b < a ? b : a;
    case Op::max:
      return b > a ? b : a;
    case Op::land:
      return static_cast<T>(a && b);
    case Op::lor:
      return static_cast<T>(a || b);
    case Op::lxor:
      return static_cast<T>(!a != !b);
    case Op::band:
      return static_cast<T>(x & y);
    case Op::bor:
      return static_cast<T>(x | y);
    case Op::bxor:
      return static_cast<T>(x ^ y);
    default:
      return op == Op::replace ? b : a;
  }
}

template <typename T>
T reference(Op op, T a, T b) {
  if (op == Op::replace) return b;
  if (op == Op::no_op) return a;
  if constexpr (PairType<T>) {
    if (a.v == b.v) return a.i <= b.i ? a : b;
    return (a.v < b.v) == (op == Op::minloc) ? a : b;
  } else if constexpr (std::is_same_v<T, QuadComplex>) {
    if (op == Op::sum) return {a.re + b.re, a.im + b.im};
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  } else if constexpr (requires(T t) { t.real(); }) {
    return op == Op::sum ? a + b : a * b;
  } else if constexpr (std::is_floating_point_v<T> || std::is_same_v<T, Quad>) {
    if (op == Op::sum) return a + b;
    if (op == Op::prod) return a * b;
    if (a != a || b != b) return b;
    return (op == Op::min) == (a < b) ? a : b;
  } else {
    return integer_reference(op, a, b);
  }
}

template <typename T>
bool same(const T& a, const T& b) {
  if constexpr (PairType<T>)
    return a.v == b.v && a.i == b.i;
  else if constexpr (std::is_same_v<T, QuadComplex>)
    return a.re == b.re && a.im == b.im;
  else
    return a == b || (a != a && b != b);
}

// Bytes of a pair that hold neither value nor index.
template <typename T>
bool is_padding(std::size_t byte) {
  if constexpr (PairType<T>) {
    T t;
    return byte >= sizeof t.v && (byte < offsetof(T, i) || byte >= offsetof(T, i) + sizeof t.i);
  }
  return false;
}

using Combine = void (*)(Op, Element, void*, const void*, std::size_t);

template <typename T>
void check_array(Op op, Element element, std::size_t count, std::size_t shift, Random& random,
                 Combine combined = combine) {
  constexpr std::size_t guard = 64;
  std::vector<T> a(count), b(count);
  for (T& v : a) v = random_value<T>(random);
  for (T& v : b) v = random_value<T>(random);
  std::vector<unsigned char> target(count * sizeof(T) + shift + 2 * guard, 0xa5);
  std::vector<unsigned char> origin(count * sizeof(T) + shift + guard, 0);
  unsigned char* at = target.data() + guard + shift;
  unsigned char* in = origin.data() + (shift * 3) % 5;
  if (count != 0) {
    std::memcpy(at, a.data(), count * sizeof(T));
    std::memcpy(in, b.data(), count * sizeof(T));
  }
  const std::vector<unsigned char> before = target;
  combined(op, element, at, op == Op::no_op ? nullptr : in, count);
  for (std::size_t i = 0; i < count; ++i) {
    T got;
    std::memcpy(&got, at + i * sizeof(T), sizeof got);
    ASSERT_TRUE(same(got, reference(op, a[i], b[i])))
        << name(element) << " " << name(op) << " count " << count << " shift " << shift << " at "
        << i;
  }
  for (std::size_t i = 0; i < target.size(); ++i) {
    const std::size_t inside = i - guard - shift;
    const bool outside = i < guard + shift || inside >= count * sizeof(T);
    if (outside || is_padding<T>(inside % sizeof(T))) {
      ASSERT_EQ(target[i], before[i]) << name(element) << " " << name(op) << " stray byte " << i;
    }
  }
}

TEST(Elements, SizesAndAlignmentsAreThoseOfC) {
  std::size_t seen = 0;
  for_every_element([&]<typename T>(Element element, Kind kind) {
    ++seen;
    EXPECT_EQ(bytes(element), sizeof(T)) << name(element);
    EXPECT_EQ(alignment(element), alignof(T)) << name(element);
    EXPECT_EQ(is_pair(element), kind == Kind::pair) << name(element);
  });
  EXPECT_EQ(seen, elements);
  EXPECT_EQ(bytes(Element::double_int), 16u);
  EXPECT_EQ(bytes(Element::long_double_int), 32u);
}

TEST(Elements, ValidityFollowsTheStandard) {
  for_every_element([&]<typename T>(Element element, Kind kind) {
    for (const Op op : all_ops)
      EXPECT_EQ(valid(op, element), allowed(op, kind)) << name(element) << name(op);
    EXPECT_EQ(valid_compare_and_swap(element),
              kind == Kind::integer || kind == Kind::logical || kind == Kind::byte);
  });
}

TEST(Elements, CombineMatchesReference) {
  Random random(20240607);
  for_every_element([&]<typename T>(Element element, Kind) {
    for (const Op op : all_ops) {
      if (!valid(op, element)) continue;
      for (const std::size_t count : {0, 1, 2, 3, 7, 16, 33, 129, 1000, 4099}) {
        for (const std::size_t shift : {0, 1, 5, 8})
          ASSERT_NO_FATAL_FAILURE(check_array<T>(op, element, count, shift, random));
      }
    }
  });
}

TEST(Elements, CombineOneMatchesReference) {
  const Combine one = [](Op op, Element element, void* inout, const void* in, std::size_t) {
    combine_one(op, element, inout, in);
  };
  Random random(20240608);
  for_every_element([&]<typename T>(Element element, Kind) {
    for (const Op op : all_ops) {
      if (!valid(op, element)) continue;
      for (const std::size_t shift : {0, 1, 5, 8})
        for (int round = 0; round < 20; ++round)
          ASSERT_NO_FATAL_FAILURE(check_array<T>(op, element, 1, shift, random, one));
    }
  });
}

TEST(Elements, CombineInPlaceUsesBothOperands) {
  std::vector<double> values(1000, 1.5);
  combine(Op::sum, Element::f64, values.data(), values.data(), values.size());
  for (const double v : values) ASSERT_EQ(v, 3.0);
}

TEST(ElementsDeathTest, InvalidCombinationNamesBoth) {
  double value = 1;
  EXPECT_DEATH(combine(Op::band, Element::f64, &value, &value, 1), "band is not defined.*f64");
  EXPECT_DEATH(combine_atomic(Op::sum, Element::f80, &value, &value, nullptr), "no atomic.*f80");
}

TEST(Elements, AtomicMatchesReferenceAndReturnsOld) {
  Random random(77);
  for_every_element([&]<typename T>(Element element, Kind kind) {
    const bool word = sizeof(T) <= 8 && kind != Kind::pair && kind != Kind::complex;
    for (const Op op : all_ops) {
      ASSERT_EQ(native_atomic(op, element), word && valid(op, element))
          << name(element) << name(op);
      for (int i = 0; i < 200 && native_atomic(op, element); ++i) {
        const T before = random_value<T>(random);
        const T in = random_value<T>(random);
        T target = before;
        T old = in;
        alignas(16) unsigned char loose[sizeof(T) + 1];
        std::memcpy(loose + 1, &in, sizeof in);
        combine_atomic(op, element, &target, op == Op::no_op ? nullptr : loose + 1,
                       i % 3 == 0 ? nullptr : &old);
        ASSERT_TRUE(same(target, reference(op, before, in))) << name(element) << " " << name(op);
        if (i % 3 != 0) {
          ASSERT_TRUE(same(old, before)) << name(element) << " " << name(op);
        }
      }
    }
  });
}

TEST(Elements, CompareAndSwapComparesBits) {
  Random random(5);
  for_every_element([&]<typename T>(Element element, Kind) {
    for (int i = 0; i < 100; ++i) {
      const T before = random_value<T>(random);
      const T desired = random_value<T>(random);
      T compare = i % 2 == 0 ? before : random_value<T>(random);
      if (i % 2 == 0) std::memcpy(static_cast<void*>(&compare), &before, sizeof compare);
      const bool equal = std::memcmp(&compare, &before, sizeof before) == 0;
      for (const bool atomic : {false, true}) {
        if (atomic && sizeof(T) > 8) continue;
        alignas(16) T target;
        T old;
        std::memcpy(static_cast<void*>(&target), &before, sizeof target);
        (atomic ? compare_and_swap_atomic : compare_and_swap)(element, &target, &compare, &desired,
                                                              &old);
        ASSERT_EQ(std::memcmp(&old, &before, sizeof old), 0) << name(element);
        ASSERT_EQ(std::memcmp(&target, equal ? &desired : &before, sizeof target), 0)
            << name(element);
      }
    }
  });
}

TEST(Elements, AtomicsOfThreadsAreNeverLost) {
  constexpr int thread_count = 4;
  constexpr int rounds = 20000;
  alignas(8) std::int64_t sum = 0;
  alignas(8) double real = 0;
  alignas(8) std::int16_t narrow = 0;
  alignas(8) std::uint32_t swapped = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < thread_count; ++t) {
    threads.emplace_back([&] {
      const std::int64_t one = 1;
      const double half = 0.5;
      const std::int16_t step = 1;
      for (int i = 0; i < rounds; ++i) {
        combine_atomic(Op::sum, Element::i64, &sum, &one, nullptr);
        combine_atomic(Op::sum, Element::f64, &real, &half, nullptr);
        combine_atomic(Op::sum, Element::i16, &narrow, &step, nullptr);
        std::uint32_t expected = 0;
        combine_atomic(Op::no_op, Element::u32, &swapped, nullptr, &expected);
        while (true) {
          const std::uint32_t desired = expected + 1;
          std::uint32_t old;
          compare_and_swap_atomic(Element::u32, &swapped, &expected, &desired, &old);
          if (old == expected) break;
          expected = old;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sum, thread_count * rounds);
  EXPECT_EQ(real, thread_count * rounds / 2.0);
  EXPECT_EQ(narrow, static_cast<std::int16_t>(thread_count * rounds));
  EXPECT_EQ(swapped, static_cast<std::uint32_t>(thread_count * rounds));
}

}  // namespace
}  // namespace tombolo::windows
