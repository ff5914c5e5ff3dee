// SPDX-License-Identifier: Apache-2.0
// Purpose: stores to words that no atomic operation ever changes. On a machine whose atomics are
// built upon a lock, only a store that may meet an atomic has to take that lock, not a lone one.
// Thread safety: as the core's store.
#pragma once

#include <cstdint>

#include "machine/optional.h"

namespace tombolo::sync {

template <machine::Core C>
void store_lone(C& core, typename C::Word word, std::uint64_t v) {
  if constexpr (machine::StoresAlone<C>)
    core.store_alone(word, v);
  else
    core.store(word, v);
}

}  // namespace tombolo::sync
