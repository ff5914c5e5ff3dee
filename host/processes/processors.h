// SPDX-License-Identifier: Apache-2.0
// Purpose: how many processors this host has for all its processes. Thread safety: yes.
#pragma once

#include <cstdint>

namespace tombolo::host {

// Those that are online, whatever subset a launcher has bound this process to; at least 1.
std::uint32_t processors();

}  // namespace tombolo::host
