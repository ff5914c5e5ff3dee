// SPDX-License-Identifier: Apache-2.0
// Purpose: see turned_words.h. The loop is compiled for the instructions of several processors.
#include "svp/remote/turned_words.h"

#include <cstdint>
#include <cstring>

// Below the headers, for this loop alone: g++ vectorizes loops of unknown length only from -O3 on.
#if !defined(__clang__) && defined(__GNUC__) && defined(__OPTIMIZE__)
#pragma GCC optimize("O3")
#endif

namespace tombolo::svp {
namespace {

inline std::uint32_t turned(std::uint32_t word) { return __builtin_bswap32(word); }
inline std::uint64_t turned(std::uint64_t word) { return __builtin_bswap64(word); }

using Copy = void (*)(std::byte* to, const std::byte* from, std::size_t words);
struct Copies {
  Copy of_four;
  Copy of_eight;
};

template <class Word>
[[gnu::always_inline]] inline void loop(std::byte* __restrict to, const std::byte* __restrict from,
                                        std::size_t words) {
  for (std::size_t i = 0; i < words; ++i) {
    Word word;
    std::memcpy(&word, from + i * sizeof word, sizeof word);
    word = turned(word);
    std::memcpy(to + i * sizeof word, &word, sizeof word);
  }
}

template <class Word>
void baseline(std::byte* to, const std::byte* from, std::size_t words) {
  loop<Word>(to, from, words);
}

#if defined(__x86_64__)
template <class Word>
[[gnu::target("avx2")]] void avx2(std::byte* to, const std::byte* from, std::size_t words) {
  loop<Word>(to, from, words);
}
#endif

Copies copies_of_this_processor() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2")) return {&avx2<std::uint32_t>, &avx2<std::uint64_t>};
#endif
  return {&baseline<std::uint32_t>, &baseline<std::uint64_t>};
}

}  // namespace

void copy_turned(std::byte* to, const std::byte* from, std::size_t words, std::size_t word_bytes) {
  static const Copies copies = copies_of_this_processor();
  (word_bytes == sizeof(std::uint32_t) ? copies.of_four : copies.of_eight)(to, from, words);
}

}  // namespace tombolo::svp
