// SPDX-License-Identifier: Apache-2.0
// Purpose: properties of elements and operations, and the plain compare-and-swap.
// Invariants: the tables are indexed by the enumerators' values.
// Thread safety: see elements.h.
#include "windows/elements/elements.h"

#include <array>
#include <cstring>

#include "base/check.h"
#include "windows/elements/scalar.h"

namespace tombolo::windows {
namespace {

enum class Class : std::uint8_t { integer, real, complex, logical, opaque, byte, pair };

struct Traits {
  const char* name;
  Class kind;
  std::uint8_t bytes;
  std::uint8_t alignment;
};

constexpr Traits traits(Element element, const char* name, Class kind) {
  Traits t{name, kind, 0, 0};
  scalar::with_type(element, [&]<typename T>() {
    t.bytes = sizeof(T);
    t.alignment = alignof(T);
  });
  return t;
}

constexpr std::array<Traits, elements> element_traits = {{
    traits(Element::i8, "i8", Class::integer),
    traits(Element::u8, "u8", Class::integer),
    traits(Element::i16, "i16", Class::integer),
    traits(Element::u16, "u16", Class::integer),
    traits(Element::i32, "i32", Class::integer),
    traits(Element::u32, "u32", Class::integer),
    traits(Element::i64, "i64", Class::integer),
    traits(Element::u64, "u64", Class::integer),
    traits(Element::i128, "i128", Class::integer),
    traits(Element::f32, "f32", Class::real),
    traits(Element::f64, "f64", Class::real),
    traits(Element::f80, "f80", Class::real),
    traits(Element::f128, "f128", Class::real),
    traits(Element::c32, "c32", Class::complex),
    traits(Element::c64, "c64", Class::complex),
    traits(Element::c_long_double, "c_long_double", Class::complex),
    traits(Element::c_f128, "c_f128", Class::complex),
    traits(Element::boolean, "boolean", Class::logical),
    traits(Element::logical2, "logical2", Class::logical),
    traits(Element::logical, "logical", Class::logical),
    traits(Element::logical8, "logical8", Class::logical),
    traits(Element::logical16, "logical16", Class::logical),
    traits(Element::character, "character", Class::opaque),
    traits(Element::wide_character, "wide_character", Class::opaque),
    traits(Element::packed, "packed", Class::opaque),
    traits(Element::f16, "f16", Class::opaque),
    traits(Element::c16, "c16", Class::opaque),
    traits(Element::byte, "byte", Class::byte),
    traits(Element::float_int, "float_int", Class::pair),
    traits(Element::double_int, "double_int", Class::pair),
    traits(Element::long_int, "long_int", Class::pair),
    traits(Element::int_int, "int_int", Class::pair),
    traits(Element::short_int, "short_int", Class::pair),
    traits(Element::long_double_int, "long_double_int", Class::pair),
    traits(Element::two_real, "two_real", Class::pair),
    traits(Element::two_double_precision, "two_double_precision", Class::pair),
    traits(Element::two_integer, "two_integer", Class::pair),
}};

constexpr std::array<const char*, op_count> op_names = {
    "sum",  "prod", "min",  "max",    "land",   "lor",     "lxor",
    "band", "bor",  "bxor", "minloc", "maxloc", "replace", "no_op"};

constexpr bool allowed(Op op, Class kind) {
  switch (op) {
    case Op::min:
    case Op::max:
      return kind == Class::integer || kind == Class::real;
    case Op::sum:
    case Op::prod:
      return kind == Class::integer || kind == Class::real || kind == Class::complex;
    case Op::land:
    case Op::lor:
    case Op::lxor:
      return kind == Class::integer || kind == Class::logical;
    case Op::band:
    case Op::bor:
    case Op::bxor:
      return kind == Class::integer || kind == Class::byte;
    case Op::minloc:
    case Op::maxloc:
      return kind == Class::pair;
    case Op::replace:
    case Op::no_op:
      break;
  }
  return true;
}

template <typename T, class Make>
constexpr auto by_element(Make&& make) {
  std::array<T, elements> all{};
  for (std::size_t e = 0; e < elements; ++e) all[e] = make(element_traits[e]);
  return all;
}

const Traits& of(Element element) { return element_traits[static_cast<std::size_t>(element)]; }

}  // namespace

constexpr std::array<std::uint8_t, elements> detail::element_bytes =
    by_element<std::uint8_t>([](const Traits& t) { return t.bytes; });

constexpr std::array<std::uint16_t, elements> detail::valid_ops =
    by_element<std::uint16_t>([](const Traits& t) {
      unsigned ops = 0;
      for (unsigned op = 0; op < op_count; ++op)
        if (allowed(static_cast<Op>(op), t.kind)) ops |= 1u << op;
      return static_cast<std::uint16_t>(ops);
    });

std::size_t alignment(Element element) { return of(element).alignment; }

bool is_pair(Element element) { return of(element).kind == Class::pair; }

const char* name(Element element) { return of(element).name; }

const char* name(Op op) { return op_names[static_cast<std::size_t>(op)]; }

bool valid_compare_and_swap(Element element) {
  const Class kind = of(element).kind;
  return kind == Class::integer || kind == Class::logical || kind == Class::byte;
}

void detail::swap_if_equal(std::size_t bytes, void* target, const void* compare,
                           const void* desired, void* old) {
  std::byte before[32];
  static_assert(sizeof before >= sizeof(scalar::Complex<scalar::F128>));
  std::memcpy(before, target, bytes);
  if (std::memcmp(before, compare, bytes) == 0) std::memcpy(target, desired, bytes);
  std::memcpy(old, before, bytes);
}

}  // namespace tombolo::windows
