// SPDX-License-Identifier: Apache-2.0
// Purpose: the workers that run the families of threads which are no workers themselves, where no
// place is named. Started when first needed, and ended with the program.
// Thread safety: yes.
#pragma once

#include "svp/scheduler/pool.h"

namespace tombolo::svp {

// A worker for each processor. Throws as Pool.
Pool& default_pool();

}  // namespace tombolo::svp
