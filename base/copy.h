// SPDX-License-Identifier: Apache-2.0
// Purpose: memcpy whose size is known at run time only. The sizes of single elements are copied in
// line, where a call would cost more. Large copies go back and forth (base/back_and_forth.h).
// Invariants: 4 and 8 bytes are one load and one store, so that aligned ones are never seen torn.
// Thread safety: that of memcpy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/back_and_forth.h"

namespace tombolo {

inline void copy_bytes(void* to, const void* from, std::size_t bytes) {
  if (bytes == sizeof(std::uint64_t)) {
    std::memcpy(to, from, sizeof(std::uint64_t));
  } else if (bytes == sizeof(std::uint32_t)) {
    std::memcpy(to, from, sizeof(std::uint32_t));
  } else if (bytes <= walk_from_bytes) {
    std::memcpy(to, from, bytes);
  } else {
    copy_back_and_forth(to, from, bytes);
  }
}

}  // namespace tombolo
