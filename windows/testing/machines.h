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

// All whose processes are threads, which tests may interleave freely.
using MachinesOfThreads = AllMachines::apply<::testing::Types>;

#ifdef TOMBOLO_HAS_SCC
using Machines = AllMachines::and_also<scc::Core>::apply<::testing::Types>;
#else
using Machines = MachinesOfThreads;
#endif

// Machines that show unpublished or unrefreshed data as old.
using MachinesThatLose = ::testing::Types<stale::Core>;

}  // namespace tombolo::windows::testing
