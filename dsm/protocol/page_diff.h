// SPDX-License-Identifier: Apache-2.0
// Purpose: the difference of a page: its bytes exclusive or its twin's (003 section 5.3). Applied
// to the home by exclusive or, it changes the bits that this thread has changed, and no others.
//
// Two threads that change one bit without synchronization give a page that neither has stored: the
// home is changed twice. docs/model/threads.md says so to the author of a program.
// Thread safety: plain functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace tombolo::dsm {

using PageBytes = std::vector<std::byte>;

namespace detail {

// The vector registers that every processor has.
using Block [[gnu::vector_size(16)]] = std::uint64_t;

inline Block block_at(const std::byte* from) {
  Block block;
  std::memcpy(&block, from, sizeof block);
  return block;
}
inline bool is_zero(const Block& block) { return (block[0] | block[1]) == 0; }

}  // namespace detail

// True if they differ; `diff` is as long as they are.
inline bool difference(std::span<const std::byte> frame, std::span<const std::byte> twin,
                       PageBytes& diff) {
  using detail::Block;
  diff.resize(frame.size());
  Block blocks{};
  std::size_t i = 0;
  for (; i + sizeof(Block) <= frame.size(); i += sizeof(Block)) {
    const Block changed = detail::block_at(&frame[i]) ^ detail::block_at(&twin[i]);
    std::memcpy(&diff[i], &changed, sizeof changed);
    blocks |= changed;
  }
  std::byte rest{};
  for (; i < frame.size(); ++i) rest |= diff[i] = frame[i] ^ twin[i];
  return rest != std::byte{} || !detail::is_zero(blocks);
}

inline bool all_zero(std::span<const std::byte> bytes) {
  using detail::Block;
  Block blocks{};
  std::size_t i = 0;
  for (; i + sizeof(Block) <= bytes.size(); i += sizeof(Block))
    blocks |= detail::block_at(&bytes[i]);
  std::byte rest{};
  for (; i < bytes.size(); ++i) rest |= bytes[i];
  return rest == std::byte{} && detail::is_zero(blocks);
}

// `changed` becomes itself exclusive or `diff`; they are equally long.
inline void apply_difference(std::span<const std::byte> diff, std::span<std::byte> changed) {
  for (std::size_t i = 0; i < diff.size(); ++i) changed[i] ^= diff[i];
}

inline void copy(std::span<const std::byte> from, std::span<std::byte> to) {
  std::memcpy(to.data(), from.data(), from.size());
}

}  // namespace tombolo::dsm
