// SPDX-License-Identifier: Apache-2.0
// Purpose: 64-bit fingerprints of a core's history and of the contents of memory. Two states with
// one fingerprint count as one; at ten million states the chance that any two meet is some 3e-6.
// Thread safety: plain functions.
#pragma once

#include <cstdint>

namespace tombolo::litmus {

// The finalizer of SplitMix64 (base/random.h), which spreads each bit over all.
constexpr std::uint64_t spread(std::uint64_t v) {
  v = (v ^ (v >> 30)) * 0xbf58476d1ce4e5b9u;
  v = (v ^ (v >> 27)) * 0x94d049bb133111ebu;
  return v ^ (v >> 31);
}

constexpr std::uint64_t mix(std::uint64_t hash, std::uint64_t v) {
  return spread(hash * 0x9e3779b97f4a7c15u + spread(v + 0x632be59bd9b4e019u));
}

}  // namespace tombolo::litmus
