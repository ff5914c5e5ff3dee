// SPDX-License-Identifier: Apache-2.0
// Purpose: the core type for processes of one coherent host that share memory by a fork, for
// interfaces that have no other machine.
// Thread safety: that of coherent::Core.
#pragma once

#include "backends/coherent/coherent.h"

namespace tombolo::runtime {

using HostCore = coherent::Core;
static_assert(HostCore::properties.coherent);

}  // namespace tombolo::runtime
