// SPDX-License-Identifier: Apache-2.0
// Purpose: copies words with their bytes in the opposite order, with the vector instructions of the
// processor.
// Thread safety: plain functions.
#pragma once

#include <cstddef>

namespace tombolo::svp {

// `word_bytes`: 4 or 8. No alignment is needed; the ranges do not overlap.
void copy_turned(std::byte* to, const std::byte* from, std::size_t words, std::size_t word_bytes);

}  // namespace tombolo::svp
