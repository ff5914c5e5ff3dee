// SPDX-License-Identifier: Apache-2.0
// Purpose: a program whose parts lie at the same addresses whenever it is started, also on another
// host with the same files and the same kind of kernel: without the randomization of addresses.
// Thread safety: for a process with one thread.
#pragma once

#include "base/status.h"

namespace tombolo::host {

// Starts this program anew, with these arguments and the environment as it is, unless its
// addresses are fixed already: then it returns ok. Errors: unsupported (the kernel refuses, or the
// filter of system calls of a container).
Status have_fixed_addresses(char** arguments);

}  // namespace tombolo::host
