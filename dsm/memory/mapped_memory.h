// SPDX-License-Identifier: Apache-2.0
// Purpose: the transport `map`: all processes map the same pages, which hardware keeps coherent.
// Loads and stores need no help; locks and barriers are words, and order them.
//
// Invariants: DMM1 a lock's word is changed by atomics when it is taken and by an ordered store
//                  when it is free, so that a span sees all that its thread's predecessors stored
//                  before they gave the lock back: more than regional consistency promises.
// Memory: a line for each lock.
// Thread safety: one thread for each object.
#pragma once

#include <span>
#include <utility>

#include "dsm/protocol/reduction.h"
#include "dsm/records/observer.h"
#include "dsm/threads/core_memory.h"
#include "dsm/threads/waited.h"
#include "sync/barriers/dissemination_barrier.h"
#include "sync/locks/mutex.h"

namespace tombolo::dsm {

template <machine::Core C>
class MappedMemory final : public CoreMemory<C> {
  static_assert(C::properties.coherent, "pages that are mapped alike need a coherent machine");
  using CoreMemory<C>::core;

 public:
  struct Layout {
    typename CoreMemory<C>::WordLayout words;
    machine::Offset mutexes = 0;
    typename sync::DisseminationBarrier<C>::Layout barrier;
    typename Reduction<C>::Layout reduction;
    std::size_t sync_bytes = 0;
  };
  static Layout take(const Shape& shape, WordIndex words) {
    machine::SyncLayout layout(C::reserved_sync_bytes(shape.cores()));
    Layout taken{.words = CoreMemory<C>::take_words(layout, shape, words),
                 .mutexes = layout.take_lines(shape.locks_per_home() * words_per_lock),
                 .barrier = sync::DisseminationBarrier<C>::take(layout, shape.threads),
                 .reduction = Reduction<C>::take(layout, shape)};
    taken.sync_bytes = layout.bytes();
    return taken;
  }

  // `memory`: the pages, as this process maps them.
  MappedMemory(machine::AttachmentOf<C> attachment, const Layout& layout, const Shape& shape,
               std::span<std::byte> memory, const Observer& observer)
      : CoreMemory<C>(std::move(attachment), layout.words),
        layout_(layout),
        shape_(shape),
        memory_(memory),
        mutex_(core()),
        barrier_(core(), layout.barrier),
        reduction_(core(), layout.reduction, shape_),
        waited_(observer) {}

  std::span<std::byte> memory() const override { return memory_; }
  std::size_t page_bytes() const override { return shape_.page_bytes; }
  // Every store is seen by all.
  void record(const void*, std::size_t) override {}

  Lock locks() const override { return shape_.locks; }
  Status acquire(Lock lock) override {
    if (mutex_.try_acquire(word(lock))) [[likely]]
      return {};
    TOMBOLO_CHECK(!holds(lock), "acquire: this thread holds lock {} already", lock);
    return waited_.for_lock([&] { return mutex_.acquire(word(lock)); });
  }
  Status try_acquire(Lock lock, bool& taken) override {
    taken = mutex_.try_acquire(word(lock));
    return {};
  }
  Status release(Lock lock) override {
    TOMBOLO_CHECK(holds(lock), "release: this thread does not hold lock {}", lock);
    mutex_.release(word(lock));
    return {};
  }
  Status barrier() override {
    return waited_.at_barrier([&] { return barrier_.arrive_and_wait(); });
  }
  Status reduce(std::uint64_t& value, ProgramMemory::Combine combine) override {
    return waited_.at_barrier([&] {
      return reduction_.reduce(value, combine, [this] { return barrier_.arrive_and_wait(); });
    });
  }
  Status close() override { return barrier_.arrive_and_wait(); }

 private:
  static constexpr std::size_t words_per_lock = 8;
  typename C::Word word(Lock lock) {
    shape_.check_lock(lock);
    return core().word(
        {shape_.home_of_lock(lock),
         layout_.mutexes + shape_.place_of_lock(lock) * words_per_lock * sizeof(std::uint64_t)});
  }
  bool holds(Lock lock) {
    machine::Home holder = 0;
    return mutex_.held(word(lock), holder) && holder == core().self();
  }

  Layout layout_;
  Shape shape_;
  std::span<std::byte> memory_;
  sync::SpinMutex<C> mutex_;
  sync::DisseminationBarrier<C> barrier_;
  Reduction<C> reduction_;
  Waited waited_;
};

}  // namespace tombolo::dsm
