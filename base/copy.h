// SPDX-License-Identifier: Apache-2.0
// Purpose: memcpy whose size is known at run time only. The sizes of single elements are copied in
// line, where a call would cost more.
// Invariants: 4 and 8 bytes are one load and one store, so that aligned ones are never seen torn.
// Thread safety: that of memcpy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tombolo {

inline void copy_bytes(void* to, const void* from, std::size_t bytes) {
  if (bytes == sizeof(std::uint64_t)) {
    std::memcpy(to, from, sizeof(std::uint64_t));
  } else if (bytes == sizeof(std::uint32_t)) {
    std::memcpy(to, from, sizeof(std::uint32_t));
  } else if (bytes == 2 * sizeof(std::uint64_t)) {
    std::memcpy(to, from, 2 * sizeof(std::uint64_t));
  } else {
    std::memcpy(to, from, bytes);
  }
}

}  // namespace tombolo
