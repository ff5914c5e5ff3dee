// SPDX-License-Identifier: Apache-2.0
// Purpose: whether the access that has met a fault was a load or a store, from the frame of its
// signal. A processor that is not here gives `unknown`.
// Thread safety: for use in signal handlers.
#pragma once

#include <ucontext.h>

#include <cstdint>
#include <cstring>

namespace tombolo::host {

enum class FaultKind : std::uint8_t { unknown, load, store };

#if defined(__x86_64__)

inline FaultKind kind_of_fault(const ucontext_t& context) {
  constexpr greg_t of_a_store = 2;  // bit 1 of the page fault's error code
  return (context.uc_mcontext.gregs[REG_ERR] & of_a_store) != 0 ? FaultKind::store
                                                                : FaultKind::load;
}

#elif defined(__aarch64__)

// The record of the exception syndrome register, among others of the frame.
inline FaultKind kind_of_fault(const ucontext_t& context) {
  constexpr std::uint32_t magic = 0x45535201;   // ESR_MAGIC
  constexpr std::uint64_t of_a_store = 1 << 6;  // WnR
  const unsigned char* at = context.uc_mcontext.__reserved;
  const unsigned char* const end = at + sizeof context.uc_mcontext.__reserved;
  struct {
    std::uint32_t magic;
    std::uint32_t bytes;
    std::uint64_t syndrome;
  } record;
  while (at + sizeof record <= end) {
    std::memcpy(&record, at, sizeof record);
    if (record.magic == magic)
      return (record.syndrome & of_a_store) != 0 ? FaultKind::store : FaultKind::load;
    if (record.magic == 0 || record.bytes == 0) break;
    at += record.bytes;
  }
  return FaultKind::unknown;
}

#else

inline FaultKind kind_of_fault(const ucontext_t&) { return FaultKind::unknown; }

#endif

}  // namespace tombolo::host
