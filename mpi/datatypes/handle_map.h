// SPDX-License-Identifier: Apache-2.0
// Purpose: private to this folder: a fixed table from MPI handles (integers or pointers) to values,
// for quick lookups.
// Invariants: HA1 at most half of the slots are used, so that a search ends soon.
// Thread safety: concurrent find() calls are safe once the last insert() is done.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "mpi/datatypes/handle_hash.h"

namespace tombolo::mpi {

template <typename Handle, typename Value, std::size_t Bits>
class HandleMap {
 public:
  // Adds `handle`, unless it is there already.
  void insert(Handle handle, const Value& value) {
    const std::uintptr_t key = handle_key(handle);
    std::size_t at = place_of_key<Bits>(key);
    while (slots_[at].key != 0 && slots_[at].key != key) at = (at + 1) % slots;
    if (slots_[at].key == key) return;
    TOMBOLO_CHECK(++used_ <= slots / 2, "handle table: {} entries are too many", used_);
    slots_[at] = {key, value};
  }

  // The value of `handle`, or null.
  const Value* find(Handle handle) const {
    const std::uintptr_t key = handle_key(handle);
    for (std::size_t at = place_of_key<Bits>(key); slots_[at].key != 0; at = (at + 1) % slots) {
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

  std::array<Slot, slots> slots_{};
  std::size_t used_ = 0;
};

}  // namespace tombolo::mpi
