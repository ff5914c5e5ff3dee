// SPDX-License-Identifier: Apache-2.0
// Purpose: the settings of simulated chips.
// Thread safety: constants.
#pragma once

#include "base/options.h"

namespace tombolo::scc {

inline constexpr Option chips_option{
    .variable = "TOMBOLO_CHIPS",
    .values = "a folder",
    .meaning =
        "where chips of the simulated SCC's kind are found by name: one TOML file each. Not "
        "set: those that come with Tombolo"};

}  // namespace tombolo::scc
