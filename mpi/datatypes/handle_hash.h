// SPDX-License-Identifier: Apache-2.0
// Purpose: an MPI handle, an integer or a pointer as the MPI has it, as a number, and the place of
// that number in a table.
// Thread safety: the functions touch no shared state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace tombolo::mpi {

template <typename Handle>
std::uintptr_t handle_key(Handle handle) {
  if constexpr (std::is_pointer_v<Handle>)
    return reinterpret_cast<std::uintptr_t>(handle);
  else
    return static_cast<std::uint32_t>(handle);
}

// The place in a table of 2^bits.
template <unsigned bits>
std::size_t place_of_key(std::uintptr_t key) {
  return static_cast<std::size_t>(key * 0x9e3779b97f4a7c15u >> (64 - bits));
}

}  // namespace tombolo::mpi
