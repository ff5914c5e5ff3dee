// SPDX-License-Identifier: Apache-2.0
// Purpose: the windows of the simulated chip that several experiments use, compiled once, in
// chip_windows.cpp: they take longer than the experiments themselves.
// Thread safety: see windows/window.h.
#pragma once

#include "backends/scc/scc.h"
#include "experiments/published/spinning_registers.h"
#include "windows/window.h"

extern template class tombolo::windows::Window<tombolo::scc::Core>;
extern template class tombolo::windows::Window<tombolo::experiments::published::SpinningCore>;
