// SPDX-License-Identifier: Apache-2.0
// Purpose: `stale` as a machine that programs may choose (backends/machines.h).
// Thread safety: stateless.
#pragma once

#include <string_view>

#include "backends/stale/stale.h"
#include "base/type_list.h"

namespace tombolo::stale {

struct Machine {
  static constexpr std::string_view name = "stale";
  using Cores = TypeList<Core>;
};

}  // namespace tombolo::stale
