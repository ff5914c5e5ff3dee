// SPDX-License-Identifier: Apache-2.0
// Purpose: the machines that the tests of windows/ run on: all that are registered.
// Thread safety: types only.
#pragma once

#include <gtest/gtest.h>

#include "backends/machines.h"

namespace tombolo::windows::testing {

using Machines = AllMachines::apply<::testing::Types>;

// Machines on which what is not published or refreshed is seen to be old.
using MachinesThatLose = ::testing::Types<stale::Core>;

}  // namespace tombolo::windows::testing
