// SPDX-License-Identifier: Apache-2.0
// Purpose: the size of a page of this host's memory. Thread safety: yes.
#pragma once

#include <unistd.h>

#include <cstdint>

namespace tombolo::host {

// Bytes of a page, as the kernel maps memory.
inline std::uint64_t page_bytes() {
  static const auto bytes = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

}  // namespace tombolo::host
