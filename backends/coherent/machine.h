// SPDX-License-Identifier: Apache-2.0
// Purpose: `coherent` as a machine that programs may choose (backends/machines.h).
// Thread safety: stateless.
#pragma once

#include <string_view>

#include "backends/coherent/coherent.h"
#include "base/type_list.h"

namespace tombolo::coherent {

struct Machine {
  static constexpr std::string_view name = "coherent";
  using Cores = TypeList<Core>;
};

}  // namespace tombolo::coherent
