// SPDX-License-Identifier: Apache-2.0
// Purpose: an atomic operation of a program as a plain value: the new value for the one that it
// finds. Numbers of 1, 2, 4 or 8 bytes are in 64 bits, extended by zeros.
// Thread safety: plain values.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/check.h"

namespace tombolo::dsm {

struct AtomicChange {
  enum class Kind : std::uint8_t {
    load,
    exchange,
    add,
    sub,
    and_,
    or_,
    xor_,
    nand,
    max,  // signed
    min,
    umax,
    umin,
    compare_exchange,
  };
  Kind kind = Kind::load;
  std::uint64_t operand = 0;
  std::uint64_t expected = 0;  // of compare_exchange

  // The new value; the old one if it stays.
  std::uint64_t of(std::uint64_t old, std::size_t bytes) const {
    const unsigned unused = 64 - 8 * static_cast<unsigned>(bytes);
    return result(old, unused) << unused >> unused;
  }

 private:
  std::uint64_t result(std::uint64_t old, unsigned unused) const {
    // The sign is the highest bit.
    const auto as_signed = [=](std::uint64_t v) { return static_cast<std::int64_t>(v << unused); };
    switch (kind) {
      case Kind::load:
        return old;
      case Kind::exchange:
        return operand;
      case Kind::add:
        return old + operand;
      case Kind::sub:
        return old - operand;
      case Kind::and_:
        return old & operand;
      case Kind::or_:
        return old | operand;
      case Kind::xor_:
        return old ^ operand;
      case Kind::nand:
        return ~(old & operand);
      case Kind::max:
        return std::ranges::max(old, operand, {}, as_signed);
      case Kind::min:
        return std::ranges::min(old, operand, {}, as_signed);
      case Kind::umax:
        return std::max(old, operand);
      case Kind::umin:
        return std::min(old, operand);
      case Kind::compare_exchange:
        return old == expected ? operand : old;
    }
    return old;
  }
};

// `body` is called with a pointer to the unsigned type of so many bytes.
template <class Body>
std::uint64_t with_atomic_type(void* at, std::size_t bytes, Body&& body) {
  switch (bytes) {
    case 1:
      return body(static_cast<std::uint8_t*>(at));
    case 2:
      return body(static_cast<std::uint16_t*>(at));
    case 4:
      return body(static_cast<std::uint32_t*>(at));
    case 8:
      return body(static_cast<std::uint64_t*>(at));
    default:
      TOMBOLO_CHECK(false, "an atomic operation of {} bytes; it may have 1, 2, 4 or 8", bytes);
  }
  return 0;
}

// By the processor's own operations, in one order for all threads. Returns the value that it found.
inline std::uint64_t change_by_processor(void* at, std::size_t bytes, const AtomicChange& change) {
  return with_atomic_type(at, bytes, [&]<class V>(V* value) -> std::uint64_t {
    V old = __atomic_load_n(value, __ATOMIC_SEQ_CST);
    if (change.kind == AtomicChange::Kind::load) return old;
    while (!__atomic_compare_exchange_n(value, &old, static_cast<V>(change.of(old, bytes)), false,
                                        __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
    }
    return old;
  });
}

}  // namespace tombolo::dsm
