// SPDX-License-Identifier: Apache-2.0
// Purpose: the core type for the threads of one process, for interfaces with a template over a core
// whose cores are such threads. Their memory is coherent by the language's rules, whatever machine
// the user chose for memory between processes.
// Thread safety: a type only.
#pragma once

#include "backends/coherent/coherent.h"

namespace tombolo::runtime {

using ThreadCore = coherent::Core;
static_assert(ThreadCore::properties.coherent);

}  // namespace tombolo::runtime
