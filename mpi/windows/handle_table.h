// SPDX-License-Identifier: Apache-2.0
// Purpose: the objects behind the handles of another library, found without a lock by many readers
// while one writer changes the table: look-ups are equally quick whatever the number of entries.
//
//   table.insert(handle, window);          one writer at a time
//   Window* const window = table.find(handle);
//
// Open addressing with linear probing. A reader may be in the middle of a search for any length of
// time, hence slots are changed in place and no array of slots is ever freed; each is twice the
// size of the one before, which is left as it is, so that all together are less than two of the
// last.
//
// Invariants: HT1 between the first slot of an entry's search and the entry no slot is free, as
//                 long as it is in the table: readers stop at free slots only.
//             HT2 a slot's handle is written while its value is null or `removed`, and before the
//                 value: a reader that loads the value first, then the handle, has a pair that
//                 belongs together, or one whose handle was not in the table when the search began.
//             HT3 at most half of the slots are not free.
// Thread safety: find() from any thread at any time, for handles that are not inserted or erased
// meanwhile (MPI: a handle is not used while it is made or freed). insert() and erase() by one
// thread at a time.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace tombolo::mpi {

template <class Handle, class Value>
class HandleTable {
 public:
  constexpr HandleTable() = default;
  HandleTable(const HandleTable&) = delete;
  HandleTable& operator=(const HandleTable&) = delete;

  // The value of `handle`, or null.
  Value* find(Handle handle) const {
    const Slots* const slots = current_.load(std::memory_order_acquire);
    for (std::size_t i = slots->home(handle);; i = slots->after(i)) {
      const Slot& slot = slots->at[i];
      Value* const value = slot.value.load(std::memory_order_acquire);  // HT2
      if (value == nullptr) return nullptr;
      if (slot.handle.load(std::memory_order_relaxed) == handle && value != removed()) [[likely]]
        return value;
    }
  }

  // A handle that is there already means `value` from now on.
  void insert(Handle handle, Value* value) {
    Slots* slots = current_.load(std::memory_order_relaxed);
    if ((used_ + 1) * 2 > slots->mask + 1) slots = grow();
    Slot* reusable = nullptr;
    std::size_t i = slots->home(handle);
    for (; slots->value(i) != nullptr; i = slots->after(i)) {
      Slot& slot = slots->at[i];
      if (slots->value(i) == removed()) {
        if (reusable == nullptr) reusable = &slot;
      } else if (slot.handle.load(std::memory_order_relaxed) == handle) {
        slot.value.store(value, std::memory_order_release);
        return;
      }
    }
    if (reusable == nullptr) ++used_;
    ++entries_;
    put(reusable != nullptr ? *reusable : slots->at[i], handle, value);
  }

  // Takes `handle` out, if it still means `value`.
  void erase(Handle handle, const Value* value) {
    Slots* const slots = current_.load(std::memory_order_relaxed);
    std::size_t i = slots->home(handle);
    while (
        slots->value(i) != nullptr &&
        (slots->value(i) != value || slots->at[i].handle.load(std::memory_order_relaxed) != handle))
      i = slots->after(i);
    if (slots->value(i) == nullptr) return;
    slots->at[i].value.store(removed(), std::memory_order_release);
    --entries_;
    // Nothing behind it needs this slot, nor those before it that were only kept for it (HT1).
    if (slots->value(slots->after(i)) != nullptr) return;
    for (; slots->value(i) == removed(); i = slots->before(i)) {
      slots->at[i].value.store(nullptr, std::memory_order_release);
      --used_;
    }
  }

  // Calls visit(value) for all that are in the table. For the writer.
  template <class Visit>
  void each(Visit&& visit) const {
    const Slots* const slots = current_.load(std::memory_order_relaxed);
    for (std::size_t i = 0; i <= slots->mask; ++i)
      if (Value* const value = slots->value(i); value != nullptr && value != removed())
        visit(*value);
  }

  std::size_t size() const { return entries_; }
  // Of all arrays that were ever made. For the writer.
  std::size_t slots() const {
    std::size_t sum = few;
    for (const auto& slots : all_) sum += slots->mask + 1;
    return sum;
  }

 private:
  struct Slot {
    std::atomic<Handle> handle{};
    std::atomic<Value*> value{nullptr};  // null: free, and the end of a search
  };
  struct Slots {
    // Slots owned elsewhere.
    constexpr Slots(Slot* slots, std::size_t n) : mask(n - 1), at(slots) {}
    explicit Slots(std::size_t n)
        : mask(n - 1), owned(std::make_unique<Slot[]>(n)), at(owned.get()) {}
    std::size_t home(Handle handle) const {
      return static_cast<std::size_t>((bits(handle) * 0x9e3779b97f4a7c15u) >> 40) & mask;
    }
    std::size_t after(std::size_t i) const { return (i + 1) & mask; }
    std::size_t before(std::size_t i) const { return (i - 1) & mask; }
    Value* value(std::size_t i) const { return at[i].value.load(std::memory_order_relaxed); }
    const std::size_t mask;
    const std::unique_ptr<Slot[]> owned;
    Slot* const at;
  };

  // Handles are integers in one ABI and pointers in another.
  static std::uintptr_t bits(const void* handle) {
    return reinterpret_cast<std::uintptr_t>(handle);
  }
  static std::uintptr_t bits(int handle) { return static_cast<std::uintptr_t>(handle); }

  // Never dereferenced.
  static Value* removed() { return reinterpret_cast<Value*>(std::uintptr_t{1}); }

  static void put(Slot& slot, Handle handle, Value* value) {
    slot.handle.store(handle, std::memory_order_relaxed);
    slot.value.store(value, std::memory_order_release);  // HT2
  }

  Slots* grow() {
    const Slots* const old = current_.load(std::memory_order_relaxed);
    auto grown = std::make_unique<Slots>(2 * (old->mask + 1));
    for (std::size_t from = 0; from <= old->mask; ++from) {
      Value* const value = old->value(from);
      if (value == nullptr || value == removed()) continue;
      const Handle handle = old->at[from].handle.load(std::memory_order_relaxed);
      std::size_t to = grown->home(handle);
      while (grown->value(to) != nullptr) to = grown->after(to);
      put(grown->at[to], handle, value);
    }
    used_ = entries_;
    current_.store(grown.get(), std::memory_order_release);
    all_.push_back(std::move(grown));
    return all_.back().get();
  }

  // The first slots lie beside the table: a look-up after a long computation finds both on one
  // page.
  static constexpr std::size_t few = 16;
  std::array<Slot, few> few_{};
  Slots first_{few_.data(), few};
  std::atomic<Slots*> current_{&first_};
  // The rest is the writer's.
  std::size_t entries_ = 0;
  std::size_t used_ = 0;  // slots that are not free
  std::vector<std::unique_ptr<Slots>> all_;
};

}  // namespace tombolo::mpi
