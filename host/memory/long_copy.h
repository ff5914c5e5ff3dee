// SPDX-License-Identifier: Apache-2.0
// Purpose: memcpy of a megabyte and more. Processors that copy strings in whole lines write those
// without reading them before; a memcpy that reads them takes up to half as long again. Which of
// the two is quicker here is measured at the first long copy of a process, in half a millisecond,
// if the processor announces quick strings at all (long_copy_bench.cpp measures more).
//
// Invariants: HLC1 the first bytes go alone, so that the string starts on a line: a line that is
//                  written in two parts is read first.
//             HLC2 no string where the target is less than a line after the source, but for whole
//                  pages: the processor then takes each load for one of bytes just stored, and
//                  waits.
// Thread safety: that of memcpy; measures once for all threads.
#pragma once

#include <cstddef>

namespace tombolo::host {

// Below, memcpy is as quick or quicker.
inline constexpr std::size_t long_copy_bytes = std::size_t{1} << 20;

// The two ranges do not overlap. Any size: short ones are left to memcpy.
void copy_long(void* to, const void* from, std::size_t bytes);

// Its parts, for tests and measurements: whether a megabyte takes less time as a string, which is
// measured at the first call; whether these addresses let it (HLC2); and the copy itself, which is
// memcpy on processors without such an instruction.
bool gains_by_strings();
bool far_enough(const void* to, const void* from);
void copy_as_string(void* to, const void* from, std::size_t bytes);

}  // namespace tombolo::host
