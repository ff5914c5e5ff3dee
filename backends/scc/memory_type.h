// SPDX-License-Identifier: Apache-2.0
// Purpose: the memory types of the SCC (000 section 2.2.4): the meaning of each for loads and
// stores, and a place in a core's physical memory together with its type. The bits by which a page
// table entry names its type are in experiments/memory/page_bits.h.
// Thread safety: values.
#pragma once

#include <cstdint>
#include <string_view>

#include "simulator/kernel/identifiers.h"

namespace tombolo::scc {

using simulator::Address;

enum class MemoryType : std::uint8_t {
  dcm,      // definitely cacheable: L1 and L2, write-back
  dcm_wt,   // L1 write-through, L2 write-back: of no use (000 section 2.2.4)
  ncm,      // not cacheable
  ncm_wcb,  // not cacheable, writes combined
  mpbt_wb,  // L1 only, write-back; writes that miss are combined
  mpbt_wt,  // L1 only, write-through; writes are combined
  wt,       // L1 and L2, write-through, writes combined: only on a chip with guaranteed commit
};

constexpr std::string_view name_of(MemoryType type) {
  constexpr std::string_view names[] = {"DCM",     "DCM-WT",  "NCM", "NCM-WCB",
                                        "MPBT-WB", "MPBT-WT", "WT"};
  return names[static_cast<std::size_t>(type)];
}

// The behaviour of a type.
constexpr bool in_l1(MemoryType t) { return t != MemoryType::ncm && t != MemoryType::ncm_wcb; }
constexpr bool in_l2(MemoryType t) {
  return t == MemoryType::dcm || t == MemoryType::dcm_wt || t == MemoryType::wt;
}
constexpr bool is_mpbt(MemoryType t) {
  return t == MemoryType::mpbt_wb || t == MemoryType::mpbt_wt;
}
constexpr bool writes_through_l1(MemoryType t) {
  return t == MemoryType::dcm_wt || t == MemoryType::mpbt_wt || t == MemoryType::wt;
}
constexpr bool combines(MemoryType t) {
  return is_mpbt(t) || t == MemoryType::ncm_wcb || t == MemoryType::wt;
}

// A byte in the physical memory of one core, as a page table maps it.
struct View {
  Address first;
  MemoryType type = MemoryType::dcm;
  constexpr View operator+(std::uint64_t bytes) const { return {first + bytes, type}; }
};

}  // namespace tombolo::scc
