// SPDX-License-Identifier: Apache-2.0
// Purpose: element operations as one atomic step on coherent memory.
// Invariants: one atomic read-modify-write per call; a result equal to the old value may be left
// unwritten, which no other process can tell apart.
// Thread safety: see elements.h.
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "windows/elements/elements.h"
#include "windows/elements/scalar.h"

namespace tombolo::windows {
namespace {

template <std::size_t Bytes>
struct WordOf;
template <>
struct WordOf<1> {
  using type = std::uint8_t;
};
template <>
struct WordOf<2> {
  using type [[gnu::may_alias]] = std::uint16_t;
};
template <>
struct WordOf<4> {
  using type [[gnu::may_alias]] = std::uint32_t;
};
template <>
struct WordOf<8> {
  using type [[gnu::may_alias]] = std::uint64_t;
};
template <typename T>
using Word = typename WordOf<sizeof(T)>::type;

template <typename W>
W get(const void* from) {
  W word;
  std::memcpy(&word, from, sizeof word);
  return word;
}

template <typename W>
void put_old(void* old, W before) {
  if (old != nullptr) std::memcpy(old, &before, sizeof before);
}

template <Op op, typename T, typename W>
W exchange_loop(W* target, W in) {
  const T b = std::bit_cast<T>(in);
  W before = __atomic_load_n(target, __ATOMIC_SEQ_CST);
  while (true) {
    const W after = std::bit_cast<W>(scalar::apply<op, T>(std::bit_cast<T>(before), b));
    if (after == before) return before;
    if (__atomic_compare_exchange_n(target, &before, after, true, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE))
      return before;
  }
}

template <Op op, typename T>
void step(void* target_address, const void* in_address, void* old) {
  using W = Word<T>;
  auto* target = static_cast<W*>(target_address);
  if constexpr (op == Op::no_op) {
    put_old<W>(old, __atomic_load_n(target, __ATOMIC_SEQ_CST));
  } else {
    const W in = get<W>(in_address);
    if constexpr (op == Op::replace) {
      if (old == nullptr)
        __atomic_store_n(target, in, __ATOMIC_RELEASE);
      else
        put_old<W>(old, __atomic_exchange_n(target, in, __ATOMIC_ACQ_REL));
    } else if constexpr (op == Op::sum && !scalar::is_float<T>) {
      put_old<W>(old, __atomic_fetch_add(target, in, __ATOMIC_ACQ_REL));
    } else if constexpr (op == Op::band) {
      put_old<W>(old, __atomic_fetch_and(target, in, __ATOMIC_ACQ_REL));
    } else if constexpr (op == Op::bor) {
      put_old<W>(old, __atomic_fetch_or(target, in, __ATOMIC_ACQ_REL));
    } else if constexpr (op == Op::bxor) {
      put_old<W>(old, __atomic_fetch_xor(target, in, __ATOMIC_ACQ_REL));
    } else {
      put_old<W>(old, exchange_loop<op, T, W>(target, in));
    }
  }
}

using Step = void (*)(void* target, const void* in, void* old);
using Table = std::array<std::array<Step, elements>, op_count>;

template <Op op, typename T>
constexpr Step step_of() {
  constexpr bool bits_only = op == Op::replace || op == Op::no_op;
  constexpr bool any_number =
      bits_only || op == Op::sum || op == Op::prod || op == Op::min || op == Op::max;
  if constexpr (scalar::is_pair<T> || scalar::is_complex<T> || sizeof(T) > 8 || op == Op::minloc ||
                op == Op::maxloc || (scalar::is_float<T> && !any_number))
    return nullptr;
  else
    return &step<op, T>;
}

template <std::size_t... ops>
constexpr Table make_table(std::index_sequence<ops...>) {
  Table table{};
  for (std::size_t e = 0; e < elements; ++e) {
    scalar::with_type(static_cast<Element>(e), [&]<typename T>() {
      ((table[ops][e] = step_of<static_cast<Op>(ops), T>()), ...);
    });
  }
  return table;
}

constexpr Table step_table = make_table(std::make_index_sequence<op_count>());

Step find(Op op, Element element) {
  return step_table[static_cast<std::size_t>(op)][static_cast<std::size_t>(element)];
}

template <typename W>
void swap_word(void* target, const void* compare, const void* desired, void* old) {
  W before = get<W>(compare);
  __atomic_compare_exchange_n(static_cast<W*>(target), &before, get<W>(desired), false,
                              __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
  put_old<W>(old, before);
}

}  // namespace

bool native_atomic(Op op, Element element) {
  return find(op, element) != nullptr && valid(op, element);
}

void combine_atomic(Op op, Element element, void* target, const void* in, void* old_or_null) {
  TOMBOLO_CHECK(native_atomic(op, element),
                "accumulate: no atomic operation {} on elements of type {}", name(op),
                name(element));
  find(op, element)(target, in, old_or_null);
}

void compare_and_swap_atomic(Element element, void* target, const void* compare,
                             const void* desired, void* old) {
  switch (bytes(element)) {
    case 1:
      return swap_word<WordOf<1>::type>(target, compare, desired, old);
    case 2:
      return swap_word<WordOf<2>::type>(target, compare, desired, old);
    case 4:
      return swap_word<WordOf<4>::type>(target, compare, desired, old);
    case 8:
      return swap_word<WordOf<8>::type>(target, compare, desired, old);
  }
  TOMBOLO_CHECK(false,
                "compare-and-swap: an element of type {} has {} bytes; atomic are 1, 2, 4 and 8",
                name(element), bytes(element));
}

}  // namespace tombolo::windows
