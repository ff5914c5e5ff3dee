// SPDX-License-Identifier: Apache-2.0
// Purpose: the machines that the tests of windows/ run on: all that are registered, and the
// simulated chip where it is built.
// Thread safety: types only.
#pragma once

#include <gtest/gtest.h>

#include "backends/machines.h"
#ifdef TOMBOLO_HAS_SCC
#include "backends/scc/scc.h"
#include "backends/scc/testing/host.h"
#endif

namespace tombolo::windows::testing {

// All whose processes are threads, which tests may drive as they like.
using MachinesOfThreads = AllMachines::apply<::testing::Types>;

#ifdef TOMBOLO_HAS_SCC
using Machines = AllMachines::and_also<scc::Core>::apply<::testing::Types>;
#else
using Machines = MachinesOfThreads;
#endif

// Machines on which what is not published or refreshed is seen to be old.
using MachinesThatLose = ::testing::Types<stale::Core>;

}  // namespace tombolo::windows::testing
