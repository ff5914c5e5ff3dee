// SPDX-License-Identifier: Apache-2.0
// Purpose: private to this folder: the C++ type behind each Element, and each Op on two values.
// Invariants: see EL3 and EL4 in elements.h.
// Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "windows/elements/elements.h"

namespace tombolo::windows::scalar {

using I128 = __int128;
using U128 = unsigned __int128;
using F80 = long double;
using F128 = __float128;

template <typename T>
struct Complex {
  T re;
  T im;
};

template <typename V, typename I>
struct Pair {
  using Value = V;
  using Index = I;
  V value;
  I index;
};

template <typename T>
inline constexpr bool is_complex = false;
template <typename T>
inline constexpr bool is_complex<Complex<T>> = true;

template <typename T>
inline constexpr bool is_pair = false;
template <typename V, typename I>
inline constexpr bool is_pair<Pair<V, I>> = true;

template <typename T>
inline constexpr bool is_float = std::is_floating_point_v<T> || std::is_same_v<T, F128>;

// Unsigned type in which T's arithmetic wraps, at least as wide as int so that no promotion to a
// signed type follows.
template <std::size_t Bytes>
using Wrapping = std::conditional_t<(Bytes > 8), U128,
                                    std::conditional_t<(Bytes > 4), std::uint64_t, std::uint32_t>>;

// The result of `a op b` for arithmetic types, complex numbers (sum, prod) and pairs (minloc,
// maxloc).
template <Op op, typename T>
[[gnu::always_inline]] inline T apply(T a, T b) {
  if constexpr (op == Op::minloc || op == Op::maxloc) {
    const bool in_wins = op == Op::minloc ? b.value < a.value : b.value > a.value;
    if (in_wins || (b.value == a.value && b.index < a.index)) return b;
    return a;
  } else if constexpr (is_complex<T>) {
    if constexpr (op == Op::sum) return {a.re + b.re, a.im + b.im};
    if constexpr (op == Op::prod) return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  } else if constexpr (op == Op::min) {
    return a < b ? a : b;
  } else if constexpr (op == Op::max) {
    return a > b ? a : b;
  } else if constexpr (is_float<T>) {
    if constexpr (op == Op::sum) return a + b;
    if constexpr (op == Op::prod) return a * b;
  } else {
    using W = Wrapping<sizeof(T)>;
    if constexpr (op == Op::sum) return static_cast<T>(static_cast<W>(a) + static_cast<W>(b));
    if constexpr (op == Op::prod) return static_cast<T>(static_cast<W>(a) * static_cast<W>(b));
    if constexpr (op == Op::land) return static_cast<T>((a != 0) & (b != 0));
    if constexpr (op == Op::lor) return static_cast<T>((a != 0) | (b != 0));
    if constexpr (op == Op::lxor) return static_cast<T>((a != 0) ^ (b != 0));
    if constexpr (op == Op::band) return static_cast<T>(a & b);
    if constexpr (op == Op::bor) return static_cast<T>(a | b);
    if constexpr (op == Op::bxor) return static_cast<T>(a ^ b);
  }
}

// Calls f.template operator()<T>() with the type behind `element`.
template <typename F>
constexpr decltype(auto) with_type(Element element, F&& f) {
  switch (element) {
    case Element::i8:
      return f.template operator()<std::int8_t>();
    case Element::boolean:
    case Element::character:
    case Element::packed:
    case Element::byte:
    case Element::u8:
      return f.template operator()<std::uint8_t>();
    case Element::i16:
      return f.template operator()<std::int16_t>();
    case Element::logical2:
    case Element::f16:
    case Element::u16:
      return f.template operator()<std::uint16_t>();
    case Element::i32:
      return f.template operator()<std::int32_t>();
    case Element::logical:
    case Element::wide_character:
    case Element::c16:
    case Element::u32:
      return f.template operator()<std::uint32_t>();
    case Element::i64:
      return f.template operator()<std::int64_t>();
    case Element::logical8:
    case Element::u64:
      return f.template operator()<std::uint64_t>();
    case Element::logical16:
      return f.template operator()<U128>();
    case Element::i128:
      return f.template operator()<I128>();
    case Element::f32:
      return f.template operator()<float>();
    case Element::f64:
      return f.template operator()<double>();
    case Element::f80:
      return f.template operator()<F80>();
    case Element::f128:
      return f.template operator()<F128>();
    case Element::c32:
      return f.template operator()<Complex<float>>();
    case Element::c64:
      return f.template operator()<Complex<double>>();
    case Element::c_long_double:
      return f.template operator()<Complex<F80>>();
    case Element::c_f128:
      return f.template operator()<Complex<F128>>();
    case Element::float_int:
      return f.template operator()<Pair<float, int>>();
    case Element::double_int:
      return f.template operator()<Pair<double, int>>();
    case Element::long_int:
      return f.template operator()<Pair<long, int>>();
    case Element::two_integer:
    case Element::int_int:
      return f.template operator()<Pair<int, int>>();
    case Element::short_int:
      return f.template operator()<Pair<short, int>>();
    case Element::long_double_int:
      return f.template operator()<Pair<F80, int>>();
    case Element::two_real:
      return f.template operator()<Pair<float, float>>();
    case Element::two_double_precision:
      break;
  }
  return f.template operator()<Pair<double, double>>();
}

template <typename T>
[[gnu::always_inline]] inline T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// Stores a value, but never the padding of a pair.
template <typename T>
[[gnu::always_inline]] inline void store(std::byte* to, const T& value) {
  if constexpr (is_pair<T>) {
    std::memcpy(to + offsetof(T, value), &value.value, sizeof value.value);
    std::memcpy(to + offsetof(T, index), &value.index, sizeof value.index);
  } else {
    std::memcpy(to, &value, sizeof value);
  }
}

}  // namespace tombolo::windows::scalar
