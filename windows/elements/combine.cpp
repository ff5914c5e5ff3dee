// SPDX-License-Identifier: Apache-2.0
// Purpose: combine() on arrays, in copies of each loop for the vector instructions of the
// processor.
// Invariants: every copy gives the same bits: no contraction of multiply and add.
// Thread safety: see elements.h.

#include <array>
#include <cstring>

#include "base/check.h"
#include "windows/elements/elements.h"

// Below the other headers: the loops are the only code here whose speed matters, and g++ vectorizes
// loops of unknown length only from -O3 on; the pragma keeps that independent of the build type.
#if defined(__clang__)
#pragma clang fp contract(off)
#elif defined(__GNUC__) && defined(__OPTIMIZE__)
#pragma GCC optimize("O3", "fp-contract=off")
#endif

#include "windows/elements/scalar.h"

#define TOMBOLO_TARGET_AVX2 [[gnu::target("avx2")]]
#if defined(__clang__)
#define TOMBOLO_TARGET_AVX512 \
  [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl"), clang::min_vector_width(512)]]
#else
#define TOMBOLO_TARGET_AVX512 \
  [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")]]
#endif

namespace tombolo::windows {
namespace {

using scalar::apply;
using scalar::load;
using scalar::store;

using Kernel = void (*)(std::byte* inout, const std::byte* in, std::size_t count);

template <Op op, typename T>
[[gnu::always_inline]] inline void loop(std::byte* inout, const std::byte* in, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    std::byte* at = inout + i * sizeof(T);
    store(at, apply<op>(load<T>(at), load<T>(in + i * sizeof(T))));
  }
}

template <Op op, typename T>
void baseline(std::byte* inout, const std::byte* in, std::size_t count) {
  loop<op, T>(inout, in, count);
}

#if defined(__x86_64__)
template <Op op, typename T>
TOMBOLO_TARGET_AVX2 void avx2(std::byte* inout, const std::byte* in, std::size_t count) {
  loop<op, T>(inout, in, count);
}

template <Op op, typename T>
TOMBOLO_TARGET_AVX512 void avx512(std::byte* inout, const std::byte* in, std::size_t count) {
  loop<op, T>(inout, in, count);
}
#endif

template <Op op, typename T>
constexpr bool exists() {
  if (op == Op::minloc || op == Op::maxloc) return scalar::is_pair<T>;
  if (scalar::is_pair<T>) return false;
  if (op == Op::sum) return !scalar::is_complex<T>;
  if (op == Op::prod) return true;
  if (scalar::is_complex<T>) return false;
  if (op == Op::min || op == Op::max) return true;
  if (op == Op::band || op == Op::bor || op == Op::bxor) return sizeof(T) == 1;
  return !scalar::is_float<T> && op != Op::replace && op != Op::no_op;
}

enum class Level { baseline, avx2, avx512 };

template <Level level, Op op, typename T>
constexpr Kernel kernel() {
  if constexpr (!exists<op, T>()) {
    return nullptr;
#if defined(__x86_64__)
    // g++ 12 joins complex products into vfmaddsub in spite of fp-contract=off; AVX2 has no such
    // instruction, and these loops are no faster with wider vectors.
  } else if constexpr (level == Level::avx2 || (level == Level::avx512 && scalar::is_complex<T>)) {
    return &avx2<op, T>;
  } else if constexpr (level == Level::avx512) {
    return &avx512<op, T>;
#endif
  } else {
    return &baseline<op, T>;
  }
}

using Row = std::array<Kernel, elements>;
using Table = std::array<Row, op_count>;

template <Level level, Op op>
constexpr void fill(Table& table) {
  for (std::size_t e = 0; e < elements; ++e) {
    scalar::with_type(static_cast<Element>(e), [&]<typename T>() {
      table[static_cast<std::size_t>(op)][e] = kernel<level, op, T>();
    });
  }
}

template <Level level>
constexpr Table make_table() {
  Table table{};
  fill<level, Op::sum>(table);
  fill<level, Op::prod>(table);
  fill<level, Op::min>(table);
  fill<level, Op::max>(table);
  fill<level, Op::land>(table);
  fill<level, Op::lor>(table);
  fill<level, Op::lxor>(table);
  fill<level, Op::band>(table);
  fill<level, Op::bor>(table);
  fill<level, Op::bxor>(table);
  fill<level, Op::minloc>(table);
  fill<level, Op::maxloc>(table);
  return table;
}

constexpr Table baseline_table = make_table<Level::baseline>();
#if defined(__x86_64__)
constexpr Table avx2_table = make_table<Level::avx2>();
constexpr Table avx512_table = make_table<Level::avx512>();
#endif

const Table& table_of_this_processor() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return avx512_table;
  if (__builtin_cpu_supports("avx2")) return avx2_table;
#endif
  return baseline_table;
}

// The loop that serves a pair of operation and element, and how many of its elements one is.
struct Plan {
  Element element;
  std::size_t factor;
};

Plan plan(Op op, Element element) {
  if (op == Op::band || op == Op::bor || op == Op::bxor) return {Element::u8, bytes(element)};
  if (op == Op::sum) {
    if (element == Element::c32) return {Element::f32, 2};
    if (element == Element::c64) return {Element::f64, 2};
    if (element == Element::c_long_double) return {Element::f80, 2};
    if (element == Element::c_f128) return {Element::f128, 2};
  }
  return {element, 1};
}

void replace_pairs(Element element, std::byte* inout, const std::byte* in, std::size_t count) {
  scalar::with_type(element, [&]<typename T>() {
    if constexpr (scalar::is_pair<T>) {
      for (std::size_t i = 0; i < count; ++i)
        store(inout + i * sizeof(T), load<T>(in + i * sizeof(T)));
    }
  });
}

}  // namespace

void combine(Op op, Element element, void* inout, const void* in, std::size_t count) {
  static const Table& table = table_of_this_processor();
  auto* to = static_cast<std::byte*>(inout);
  const auto* from = static_cast<const std::byte*>(in);
  if (count == 0 || op == Op::no_op) return;
  if (op == Op::replace) {
    if (is_pair(element)) return replace_pairs(element, to, from, count);
    std::memmove(to, from, count * bytes(element));
    return;
  }
  TOMBOLO_CHECK(valid(op, element),
                "accumulate: operation {} is not defined on elements of type {}", name(op),
                name(element));
  const Plan way = plan(op, element);
  table[static_cast<std::size_t>(op)][static_cast<std::size_t>(way.element)](to, from,
                                                                             count * way.factor);
}

}  // namespace tombolo::windows
