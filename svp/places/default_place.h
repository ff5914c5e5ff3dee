// SPDX-License-Identifier: Apache-2.0
// Purpose: the workers that run the families of threads which are no workers themselves, where no
// place is named. Started when first needed, and ended with the program.
// Thread safety: yes.
#pragma once

#include "svp/scheduler/pool.h"

namespace tombolo::svp {

// A worker for each processor, or as many as the user wants. Throws as Pool.
Pool& default_pool();
// Before it is first needed: so many processes of the program share this host's processors.
void share_default_pool(unsigned processes);

}  // namespace tombolo::svp
