// SPDX-License-Identifier: Apache-2.0
// Purpose: where the variables of the running program lie (its .data and .bss), of the executable
// itself and not of its libraries.
// Thread safety: yes.
#pragma once

#include "base/status.h"
#include "host/memory/address_space.h"

namespace tombolo::host {

// The whole pages of the executable's writable segments, without those that the loader has made
// read-only (RELRO). Empty if it has none. Errors: unsupported if other memory lies between them.
Status program_variables(AddressRange& out);

// The bytes that a thread's own variables take at most, of all that is loaded now.
std::size_t thread_local_bytes();

}  // namespace tombolo::host
