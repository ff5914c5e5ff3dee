// SPDX-License-Identifier: Apache-2.0
// Purpose: rounds sizes to the units of memory. Thread safety: pure functions.
#pragma once

#include <concepts>

namespace tombolo {

// The least multiple of `unit` that is not below `n`. It wraps where the type cannot hold it: a
// caller with a size from outside compares the result with `n`.
template <std::unsigned_integral T>
constexpr T round_up(T n, std::type_identity_t<T> unit) {
  return (n + unit - 1) / unit * unit;
}

}  // namespace tombolo
