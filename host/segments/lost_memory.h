// SPDX-License-Identifier: Apache-2.0
// Purpose: a pool that is made shorter while it is in use takes its memory away, and the next
// access ends the process by SIGBUS. This says on stderr which pool that was, before the process
// ends as it would have without us, or the program's own handler runs.
//
// Invariants: LM1 every mapping is looked after, however many there are.
//             LM2 any other SIGBUS goes where it would have gone, and the next one finds us again.
// Thread safety: yes.
#pragma once

#include <cstddef>
#include <string>

namespace tombolo::host {

// A mapping of the file `path`, and its end, before it is unmapped. May throw std::bad_alloc.
void tell_if_lost(const std::byte* start, std::size_t bytes, const std::string& path);
void is_unmapped(const std::byte* start);

}  // namespace tombolo::host
