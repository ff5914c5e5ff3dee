// SPDX-License-Identifier: Apache-2.0
// Purpose: private to this folder: a fixed table from MPI handles (integers or pointers) to values,
// for quick lookups.
// Invariants: HA1 at most half of the slots are used, so that a search ends soon.
// Thread safety: concurrent find() calls are safe once the last insert() is done.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/check.h"

namespace tombolo::mpi {

template <typename Handle, typename Value, std::size_t Bits>
class HandleMap {
 public:
  // Adds `handle`, unless it is there already.
  void insert(Handle handle, const Value& value) {
    const std::uintptr_t key = key_of(handle);
    std::size_t at = slot_of(key);
    while (slots_[at].key != 0 && slots_[at].key != key) at = (at + 1) % slots;
    if (slots_[at].key == key) return;
    TOMBOLO_CHECK(++used_ <= slots / 2, "handle table: {} entries are too many", used_);
    slots_[at] = {key, value};
  }

  // The value of `handle`, or null.
  const Value* find(Handle handle) const {
    const std::uintptr_t key = key_of(handle);
    for (std::size_t at = slot_of(key); slots_[at].key != 0; at = (at + 1) % slots) {
      if (slots_[at].key == key) return &slots_[at].value;
    }
    return nullptr;
  }

 private:
  static constexpr std::size_t slots = std::size_t{1} << Bits;
  struct Slot {
    std::uintptr_t key = 0;
    Value value{};
  };

  static std::uintptr_t key_of(Handle handle) {
    if constexpr (std::is_pointer_v<Handle>)
      return reinterpret_cast<std::uintptr_t>(handle);
    else
      return static_cast<std::uint32_t>(handle);
  }
  static std::size_t slot_of(std::uintptr_t key) {
    return static_cast<std::size_t>(key * 0x9e3779b97f4a7c15u >> (64 - Bits));
  }

  std::array<Slot, slots> slots_{};
  std::size_t used_ = 0;
};

}  // namespace tombolo::mpi
