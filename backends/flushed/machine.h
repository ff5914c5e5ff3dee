// SPDX-License-Identifier: Apache-2.0
// Purpose: `flushed` as a machine that programs may choose (backends/machines.h).
// Thread safety: stateless.
#pragma once

#include <string_view>

#include "backends/flushed/flushed.h"
#include "base/type_list.h"

namespace tombolo::flushed {

struct Machine {
  static constexpr std::string_view name = "flushed";
  using Cores = TypeList<Core<machine::Atomics::full>, Core<machine::Atomics::none>>;
  // Its memory may come from a pool that several hosts map.
  static constexpr bool takes_pools = true;
  static Status available() { return host::flush::available(); }
};

}  // namespace tombolo::flushed
