// SPDX-License-Identifier: Apache-2.0
// Purpose: what a core of the machine `coherent` is given beyond what every core is.
// Thread safety: plain values.
#pragma once

#include "machine/place.h"

namespace tombolo::coherent {

// Of a region without a mapping: where `bytes` of it from offset `start` on are mapped after all.
struct Part {
  std::byte* memory = nullptr;
  machine::Offset start = 0;
  std::uint64_t bytes = 0;
};

struct Attachment : machine::Attachment {
  std::pmr::vector<Part> parts;  // by home, of other processes' regions; empty: there is none
};

}  // namespace tombolo::coherent
