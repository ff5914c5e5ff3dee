// SPDX-License-Identifier: Apache-2.0
// Purpose: the difference of a page: its bytes exclusive or its twin's (003 section 5.3). Applied
// to the home by exclusive or, it changes the bits that this thread has changed, and no others.
//
// Two threads that change one bit without synchronization give a page that neither has stored: the
// home is changed twice. docs/model/threads.md says so to the author of a program.
// Thread safety: plain functions.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

namespace tombolo::dsm {

using PageBytes = std::vector<std::byte>;

// True if they differ; `diff` is as long as they are.
inline bool difference(std::span<const std::byte> frame, std::span<const std::byte> twin,
                       PageBytes& diff) {
  diff.resize(frame.size());
  std::byte any{};
  for (std::size_t i = 0; i < frame.size(); ++i) {
    diff[i] = frame[i] ^ twin[i];
    any |= diff[i];
  }
  return any != std::byte{};
}

inline bool all_zero(std::span<const std::byte> bytes) {
  std::byte any{};
  for (const std::byte byte : bytes) any |= byte;
  return any == std::byte{};
}

inline void copy(std::span<const std::byte> from, std::span<std::byte> to) {
  std::memcpy(to.data(), from.data(), from.size());
}

}  // namespace tombolo::dsm
