// SPDX-License-Identifier: Apache-2.0
// Purpose: the transport `map`: all processes map the same pages, which hardware keeps coherent.
// Loads and stores need no help; synchronization moves nothing and only waits. MappedMemory has
// locks and words, for processes that come and go; MappedTeamMemory barriers besides, for those
// that are all there from the start to the end.
//
// Invariants: DMM1 a lock's word is changed by atomics alone, so that a span sees all that its
//                  thread's predecessors stored before they gave the lock back: more than regional
//                  consistency promises.
//             DMM2 pause() of MappedMemory sleeps on the word that was loaded last, if it still has
//                  the value that it had then: each store to it ends the sleep. A sleep is bounded,
//                  for loops that look at something else besides.
//             DMM3 word and lock i lie at home i mod homes. The homes are a power of two, since a
//                  division would take as long as a free lock.
// Memory: a line for each lock, 8 bytes for each word, and counts of those that sleep on words.
// Thread safety: one thread for each object.
#pragma once

#include <bit>
#include <span>
#include <utility>

#include "dsm/protocol/reduction.h"
#include "dsm/records/observer.h"
#include "dsm/threads/growing_pause.h"
#include "dsm/threads/program_memory.h"
#include "dsm/threads/waited.h"
#include "machine/optional.h"
#include "sync/barriers/dissemination_barrier.h"
#include "sync/locks/sleeping_mutex.h"
#include "sync/watched_word.h"

namespace tombolo::dsm {

template <machine::SleepsOnWords C>
class MappedMemory : public ProgramMemory {
  static_assert(C::properties.coherent, "pages that are mapped alike need a coherent machine");

 public:
  struct Layout {
    WordIndex count = 0;  // of words
    Thread homes = 1;
    machine::Offset words = 0;
    machine::Offset sleepers = 0;
    machine::Offset locks = 0;
  };
  // `homes`: a power of two, of the first ones.
  static Layout take(machine::SyncLayout& layout, const Shape& shape, WordIndex words,
                     Thread homes) {
    const auto each = [homes](std::uint64_t all) { return (all + homes - 1) / homes; };
    return {.count = words,
            .homes = homes,
            .words = layout.take_lines(each(words)),
            .sleepers = layout.take_lines(each(counts_of_sleepers)),
            .locks = layout.take_lines(each(shape.locks) * words_per_lock)};
  }

  // `memory`: the pages, as this process maps them.
  MappedMemory(machine::AttachmentOf<C> attachment, const Layout& layout, const Shape& shape,
               std::span<std::byte> memory, const Observer& observer)
      : shape_(shape),
        waited_(observer),
        core_(std::move(attachment)),
        layout_(layout),
        home_bits_(static_cast<unsigned>(std::countr_zero(layout.homes))),
        memory_(memory),
        mutex_(core_, polls) {}

  Thread self() const override { return core_.self(); }
  Thread threads() const override { return shape_.threads; }
  std::span<std::byte> memory() const override { return memory_; }
  std::size_t page_bytes() const override { return shape_.page_bytes; }
  // Every store is seen by all.
  void record(const void*, std::size_t) override {}

  WordIndex words() const override { return layout_.count; }
  std::uint64_t load(WordIndex word) override {
    looked_at_ = word;
    return seen_ = at(word).load();
  }
  void store(WordIndex word, std::uint64_t value) override { at(word).store(value); }
  std::uint64_t exchange(WordIndex word, std::uint64_t value) override {
    return at(word).exchange(value);
  }
  std::uint64_t fetch_add(WordIndex word, std::uint64_t value) override {
    return at(word).fetch_add(value);
  }
  std::uint64_t compare_exchange(WordIndex word, std::uint64_t expected,
                                 std::uint64_t desired) override {
    const std::uint64_t found = at(word).compare_exchange(expected, desired);
    if (found == expected) return found;
    looked_at_ = word;
    return seen_ = found;
  }

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
  // The lock's holder is not looked at: the mutexes of programs of Pthreads know it, and a look
  // takes a tenth of the time of a free lock.
  Status release(Lock lock) override {
    mutex_.release(word(lock));
    return {};
  }
  // Operations on words order all that is stored here.
  Status hand_over(Lock) override { return {}; }
  Status try_hand_over(Lock, bool& done) override {
    done = true;
    return {};
  }
  Status barrier() override { return not_all_are_there(); }
  Status reduce(std::uint64_t&, Combine) override { return not_all_are_there(); }

  Status pause() override {
    if (++pauses_ >= polls) return at(looked_at_).sleep(seen_);
    machine::relax_processor();
    return {};
  }
  void paused_enough() override { pauses_ = 0; }
  Status close() override { return {}; }

 protected:
  C& core() { return core_; }
  bool holds(Lock lock) {
    machine::Home holder = 0;
    return mutex_.held(word(lock), holder) && holder == core_.self();
  }

  Shape shape_;
  Waited waited_;

 private:
  static constexpr std::size_t words_per_lock = 8;
  // Words of the same remainder share one.
  static constexpr WordIndex counts_of_sleepers = 1024;
  // A poll takes some 50 ns. A processor that is given away without a sleep may stay away for a
  // time slice.
  static constexpr std::uint32_t polls = 100;

  static Status not_all_are_there() {
    return Status::unsupported(
        "a barrier or reduction of all threads of a program that starts and ends them");
  }

  typename C::Word place(machine::Offset first, std::uint64_t i, std::size_t words_each) {
    return core_.word({static_cast<Thread>(i & (layout_.homes - 1)),
                       first + (i >> home_bits_) * words_each * sizeof(std::uint64_t)});
  }
  sync::WatchedWord<C> at(WordIndex word) {
    TOMBOLO_CHECK(word < layout_.count, "word {} is past the {} words of the program", word,
                  layout_.count);
    return {core_, place(layout_.words, word, 1),
            place(layout_.sleepers, word % counts_of_sleepers, 1)};
  }
  typename C::Word word(Lock lock) {
    shape_.check_lock(lock);
    return place(layout_.locks, lock, words_per_lock);
  }

  C core_;
  Layout layout_;
  unsigned home_bits_;
  std::span<std::byte> memory_;
  sync::SleepingMutex<C> mutex_;
  WordIndex looked_at_ = 0;  // DMM2
  std::uint64_t seen_ = 0;
  std::uint32_t pauses_ = 0;
};

template <machine::SleepsOnWords C>
class MappedTeamMemory final : public MappedMemory<C> {
  using Base = MappedMemory<C>;
  using Base::core;
  using Base::shape_;
  using Base::waited_;

 public:
  struct Layout {
    typename Base::Layout mapped;
    typename sync::DisseminationBarrier<C>::Layout barrier;
    typename Reduction<C>::Layout reduction;
    std::size_t sync_bytes = 0;
  };
  static Layout take(const Shape& shape, WordIndex words) {
    machine::SyncLayout layout(C::reserved_sync_bytes(shape.threads));
    Layout taken{.mapped = Base::take(layout, shape, words, std::bit_floor(shape.threads)),
                 .barrier = sync::DisseminationBarrier<C>::take(layout, shape.threads),
                 .reduction = Reduction<C>::take(layout, shape)};
    taken.sync_bytes = layout.bytes();
    return taken;
  }

  MappedTeamMemory(machine::AttachmentOf<C> attachment, const Layout& layout, const Shape& shape,
                   std::span<std::byte> memory, const Observer& observer)
      : Base(std::move(attachment), layout.mapped, shape, memory, observer),
        barrier_(core(), layout.barrier),
        reduction_(core(), layout.reduction, shape_),
        pause_(core().self()) {}

  Status release(Lock lock) override {
    TOMBOLO_CHECK(this->holds(lock), "release: this thread does not hold lock {}", lock);
    return Base::release(lock);
  }
  // It does not sleep on the word: all threads of a barrier or condition wait for one word, and
  // each change of it would wake all of them where threads outnumber processors.
  Status pause() override { return core().pause(pause_.next_ns()); }
  void paused_enough() override { pause_.reset(); }
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
  sync::DisseminationBarrier<C> barrier_;
  Reduction<C> reduction_;
  GrowingPause pause_;
};

}  // namespace tombolo::dsm
