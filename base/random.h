// SPDX-License-Identifier: Apache-2.0
// Purpose: seeded random numbers that give the same sequence on every host (the standard library's
// distributions do not). Generator: SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
// Thread safety: one object per thread.
#pragma once

#include <cstdint>

namespace tombolo {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

  // Uniform in [0, bound); bound > 0. The bias is below 2^-32 for bounds below 2^32.
  std::uint64_t below(std::uint64_t bound) {
    return static_cast<std::uint64_t>((static_cast<unsigned __int128>(next()) * bound) >> 64);
  }

  // True once in `n` calls on average; never for n == 0.
  bool one_in(std::uint64_t n) { return n != 0 && below(n) == 0; }

  // An independent generator, for the stream `index` of the same seed.
  static Random stream(std::uint64_t seed, std::uint64_t index) {
    Random mix(seed ^ (index * 0xd1342543de82ef95u + 0x632be59bd9b4e019u));
    return Random(mix.next());
  }

 private:
  std::uint64_t state_;
};

}  // namespace tombolo
