// SPDX-License-Identifier: Apache-2.0
// Purpose: the form of values in a stream between machines that may differ in their representation
// (002 section 3.3): XDR, RFC 4506. Integers have 4 or 8 bytes, big end first; floating-point
// numbers are IEEE 754 in the same order.
// Thread safety: plain functions.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "svp/remote/turned_words.h"

namespace tombolo::svp {

// Types that XDR has: bool, integers, enumerations, float, double, and arrays of these of fixed
// length. Structures have none unless XdrForm is specialized.
//
// `word_bytes`, where a form has it: a value consists of words of so many bytes in memory as well,
// so that many values are converted at once; 0: it does not.
template <class T>
struct XdrForm {
  static constexpr bool exists = false;
};

template <class T>
concept XdrValue = XdrForm<T>::exists;

namespace detail {

template <class Word>
void store_big(std::byte* to, Word word) {
  if constexpr (std::endian::native == std::endian::little)
    word = sizeof word == 4 ? static_cast<Word>(__builtin_bswap32(static_cast<std::uint32_t>(word)))
                            : static_cast<Word>(__builtin_bswap64(word));
  std::memcpy(to, &word, sizeof word);
}
template <class Word>
Word load_big(const std::byte* from) {
  Word word;
  std::memcpy(&word, from, sizeof word);
  std::byte turned[sizeof word];
  store_big(turned, word);
  std::memcpy(&word, turned, sizeof word);
  return word;
}

// `Word`: unsigned, 4 or 8 bytes. The value's bits, or a number that is sign-extended to it.
template <class T, class Word>
struct XdrWord {
  static constexpr bool exists = true;
  static constexpr std::size_t bytes = sizeof(Word);
  static constexpr std::size_t word_bytes = sizeof(T) == sizeof(Word) ? sizeof(Word) : 0;
  static void encode(const T& value, std::byte* to) {
    if constexpr (std::floating_point<T>)
      store_big(to, std::bit_cast<Word>(value));
    else
      store_big(to, static_cast<Word>(value));
  }
  static void decode(const std::byte* from, T& value) {
    const Word word = load_big<Word>(from);
    if constexpr (std::floating_point<T>)
      value = std::bit_cast<T>(word);
    else
      value = static_cast<T>(word);
  }
};

template <class T>
using XdrWordFor = std::conditional_t<(sizeof(T) <= 4), std::uint32_t, std::uint64_t>;

}  // namespace detail

template <class T>
requires((std::integral<T> || std::is_enum_v<T>)&&sizeof(T) <= 8) struct XdrForm<T>
    : detail::XdrWord<T, detail::XdrWordFor<T>> {
};
template <>
struct XdrForm<float> : detail::XdrWord<float, std::uint32_t> {};
template <>
struct XdrForm<double> : detail::XdrWord<double, std::uint64_t> {};

template <XdrValue T, std::size_t n>
struct XdrForm<std::array<T, n>> {
  static constexpr bool exists = true;
  static constexpr std::size_t bytes = n * XdrForm<T>::bytes;
  static constexpr std::size_t word_bytes = [] {
    if constexpr (requires { XdrForm<T>::word_bytes; }) return XdrForm<T>::word_bytes;
    return std::size_t{0};
  }();
  static void encode(const std::array<T, n>& values, std::byte* to) {
    for (const T& value : values) {
      XdrForm<T>::encode(value, to);
      to += XdrForm<T>::bytes;
    }
  }
  static void decode(const std::byte* from, std::array<T, n>& values) {
    for (T& value : values) {
      XdrForm<T>::decode(from, value);
      from += XdrForm<T>::bytes;
    }
  }
};

// The form of a type whose name is not at hand.
struct Xdr {
  std::size_t bytes = 0;  // of an element
  void (*encode)(const void* elements, std::size_t count, std::byte* to) = nullptr;
  void (*decode)(const std::byte* from, std::size_t count, void* elements) = nullptr;
};

namespace detail {

// Values in memory differ from their form by the order of the bytes in each word alone.
template <XdrValue T>
constexpr bool is_turned_words() {
  if constexpr (requires { XdrForm<T>::word_bytes; })
    return std::endian::native == std::endian::little && XdrForm<T>::word_bytes != 0;
  return false;
}

template <XdrValue T>
void encode_all(const void* elements, std::size_t count, std::byte* to) {
  using Form = XdrForm<T>;
  if constexpr (is_turned_words<T>()) {
    copy_turned(to, static_cast<const std::byte*>(elements), count * Form::bytes / Form::word_bytes,
                Form::word_bytes);
  } else {
    const auto* element = static_cast<const T*>(elements);
    for (std::size_t i = 0; i < count; ++i) Form::encode(element[i], to + i * Form::bytes);
  }
}
template <XdrValue T>
void decode_all(const std::byte* from, std::size_t count, void* elements) {
  using Form = XdrForm<T>;
  if constexpr (is_turned_words<T>()) {
    copy_turned(static_cast<std::byte*>(elements), from, count * Form::bytes / Form::word_bytes,
                Form::word_bytes);
  } else {
    auto* element = static_cast<T*>(elements);
    for (std::size_t i = 0; i < count; ++i) Form::decode(from + i * Form::bytes, element[i]);
  }
}

}  // namespace detail

template <XdrValue T>
inline constexpr Xdr xdr_form{XdrForm<T>::bytes, &detail::encode_all<T>, &detail::decode_all<T>};

// Null: the type has none.
template <class T>
constexpr const Xdr* xdr_of() {
  if constexpr (XdrValue<T>)
    return &xdr_form<T>;
  else
    return nullptr;
}

}  // namespace tombolo::svp
