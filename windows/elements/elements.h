// SPDX-License-Identifier: Apache-2.0
// Purpose: the arithmetic of accumulate operations on arrays of basic types, without MPI.
//
//   combine(Op::sum, Element::f64, target, origin, 8192);   // target[i] += origin[i]
//
// Invariants: EL1 memory passed in may have any alignment, except for the *_atomic functions, which
//                 want it aligned to bytes(element).
//             EL2 padding inside pair types is never written.
//             EL3 signed integer overflow wraps; min is `target < in ? target : in` and max the
//                 same with >, so an unordered comparison (NaN) yields the incoming value.
//             EL4 minloc and maxloc choose the lower index between equal values.
// Thread safety: the plain functions need exclusive use of the memory they write. The *_atomic
// functions may run at once on one location, in threads or processes that share coherent memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tombolo::windows {

// A basic type as it lies in memory. Names state the bits of a value; c32 is the complex number of
// two f32. Pair types are {value, int index}. two_* are Fortran's pairs of equal types.
enum class Element : std::uint8_t {
  i8,
  u8,
  i16,
  u16,
  i32,
  u32,
  i64,
  u64,
  i128,  // Fortran INTEGER*16
  f32,
  f64,
  f80,   // C long double
  f128,  // Fortran REAL*16
  c32,
  c64,
  c_long_double,
  c_f128,          // Fortran COMPLEX*32
  boolean,         // C and C++ bool and LOGICAL*1: 1 byte
  logical2,        // LOGICAL*2
  logical,         // LOGICAL, LOGICAL*4
  logical8,        // LOGICAL*8
  logical16,       // LOGICAL*16
  character,       // 1 byte of text: replace and no_op only
  wide_character,  // wchar_t: replace and no_op only
  packed,          // MPI_PACKED, 1 byte: replace and no_op only
  f16,             // Fortran REAL*2: replace and no_op only
  c16,             // Fortran COMPLEX*4: replace and no_op only
  byte,            // untyped: replace, no_op and the bitwise operations
  float_int,
  double_int,
  long_int,
  int_int,
  short_int,
  long_double_int,
  two_real,
  two_double_precision,
  two_integer,
};
inline constexpr std::size_t elements = static_cast<std::size_t>(Element::two_integer) + 1;

enum class Op : std::uint8_t {
  sum,
  prod,
  min,
  max,
  land,
  lor,
  lxor,
  band,
  bor,
  bxor,
  minloc,
  maxloc,
  replace,
  no_op,
};
inline constexpr std::size_t op_count = static_cast<std::size_t>(Op::no_op) + 1;

namespace detail {
extern const std::array<std::uint8_t, elements> element_bytes;
extern const std::array<std::uint16_t, elements> valid_ops;  // bit i: the operation i

template <class T>
void add(void* inout, const void* in) {  // at any alignment (EL1)
  T sum;
  T more;
  std::memcpy(&sum, inout, sizeof sum);
  std::memcpy(&more, in, sizeof more);
  sum += more;
  std::memcpy(inout, &sum, sizeof sum);
}

template <class Word>
void swap_if_equal(void* target, const void* compare, const void* desired, void* old) {
  Word before;
  Word expected;
  std::memcpy(&before, target, sizeof before);
  std::memcpy(&expected, compare, sizeof expected);
  if (before == expected) std::memcpy(target, desired, sizeof before);
  std::memcpy(old, &before, sizeof before);
}
void swap_if_equal(std::size_t bytes, void* target, const void* compare, const void* desired,
                   void* old);
}  // namespace detail

// Distance in bytes between neighbours in an array of `element`, padding of pairs included
// (double_int: 16).
inline std::size_t bytes(Element element) {
  return detail::element_bytes[static_cast<std::size_t>(element)];
}

// Alignment in bytes that a C compiler gives `element`.
std::size_t alignment(Element element);

// True for {value, index} types, the only ones whose bytes() may exceed their data.
bool is_pair(Element element);

// Short lower-case names for messages, for instance "double_int" and "maxloc".
const char* name(Element element);
const char* name(Op op);

// True where the MPI standard allows `op` on `element` in an accumulate operation.
inline bool valid(Op op, Element element) {
  return (detail::valid_ops[static_cast<std::size_t>(element)] >> static_cast<unsigned>(op) & 1) !=
         0;
}

// True where the MPI standard allows compare-and-swap on `element`: integers, logicals and byte.
bool valid_compare_and_swap(Element element);

// inout[i] = inout[i] op in[i] for i in [0, count). Stops the process if !valid(op, element). `in`
// is not read for no_op and may then be null. The arrays may coincide; otherwise they must not
// overlap.
void combine(Op op, Element element, void* inout, const void* in, std::size_t count);

// combine() of one element, with counters and single numbers in line: the way to a processor's own
// version costs more than such an addition.
inline void combine_one(Op op, Element element, void* inout, const void* in) {
  if (op == Op::sum) {
    switch (element) {
      case Element::i32:
      case Element::u32:
        return detail::add<std::uint32_t>(inout, in);  // EL3: wraps
      case Element::i64:
      case Element::u64:
        return detail::add<std::uint64_t>(inout, in);
      case Element::f32:
        return detail::add<float>(inout, in);
      case Element::f64:
        return detail::add<double>(inout, in);
      default:
        break;
    }
  }
  combine(op, element, inout, in, 1);
}

// True if combine_atomic can serve the pair: valid, and an element of 1, 2, 4 or 8 bytes that is
// not a pair or complex type.
bool native_atomic(Op op, Element element);

// Atomically *target = *target op *in on one element of coherent memory, with the former value in
// `*old` unless null. `target` is aligned to bytes(element); `in` and `old` need no alignment. `in`
// is not read for no_op. Ordering: acquire and release. Stops if !native_atomic(op, element).
void combine_atomic(Op op, Element element, void* target, const void* in, void* old_or_null);

// Atomically: *old = *target; if *old has the bits of *compare then *target = *desired. `target` is
// aligned to bytes(element), which is 1, 2, 4 or 8. Ordering: acquire and release.
void compare_and_swap_atomic(Element element, void* target, const void* compare,
                             const void* desired, void* old);

// The same without atomicity, for any element and alignment. Those of 4 and 8 bytes in line, where
// calls would cost more, and with one store.
inline void compare_and_swap(Element element, void* target, const void* compare,
                             const void* desired, void* old) {
  const std::size_t size = bytes(element);
  if (size == sizeof(std::uint64_t))
    detail::swap_if_equal<std::uint64_t>(target, compare, desired, old);
  else if (size == sizeof(std::uint32_t))
    detail::swap_if_equal<std::uint32_t>(target, compare, desired, old);
  else
    detail::swap_if_equal(size, target, compare, desired, old);
}

}  // namespace tombolo::windows
