// SPDX-License-Identifier: Apache-2.0
// Purpose: the bits of a page table entry that name a memory type (000 section 2.2.4), by which
// 002 has its figure of reads. Programs elsewhere name the types themselves.
// Thread safety: values.
#pragma once

#include "backends/scc/memory_type.h"

namespace tombolo::experiments {

// PCD disables the caches, PWT makes L1 write-through (not L2, which cannot), PMB keeps the page
// out of L2, marks its lines in L1 and combines its writes.
struct PageBits {
  bool pcd = false;
  bool pwt = false;
  bool pmb = false;
};

constexpr scc::MemoryType type_of(PageBits bits) {
  using enum scc::MemoryType;
  if (bits.pcd) return bits.pmb ? ncm_wcb : ncm;  // PWT has no meaning
  if (bits.pmb) return bits.pwt ? mpbt_wt : mpbt_wb;
  return bits.pwt ? dcm_wt : dcm;
}

}  // namespace tombolo::experiments
