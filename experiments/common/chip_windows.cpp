// SPDX-License-Identifier: Apache-2.0
#include "experiments/common/chip_windows.h"

template class tombolo::windows::Window<tombolo::scc::Core>;
template class tombolo::windows::Window<tombolo::experiments::published::SpinningCore>;
