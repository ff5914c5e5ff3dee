// SPDX-License-Identifier: Apache-2.0
// Purpose: memory of pages that each thread caches: a consistency protocol over a transport, driven
// by the page faults of a store such as dsm/pages/fault_pages.h. With CoreTransport it is the
// transport `window`.
//
// Threads that answer each other (a protocol that polls) do so in their misses and in calls of this
// class, and where they compute, as interrupts by the threads that wait: at any instruction of the
// program but one that has missed its pages and has yet to run (unfinished_instruction.h).
//
// Invariants: DPA1 each call of the protocol is inside a RuntimeCall of the store, but for misses:
//                  the program's thread does not touch the view meanwhile.
//             DPA2 no interrupt is served within a call of this class (the gate is closed) but
//                  where a pause sleeps, nor within a miss (its signal waits).
// Thread safety: one thread for each object; misses are met by that thread alone.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "dsm/pages/miss_handler.h"
#include "dsm/pages/unfinished_instruction.h"
#include "dsm/protocol/consistency.h"
#include "dsm/protocol/transport.h"
#include "dsm/records/observer.h"
#include "dsm/threads/core_memory.h"
#include "dsm/threads/waited.h"
#include "host/faults/fault_router.h"
#include "host/interrupts/interrupts.h"
#include "runtime/counters/counters.h"

namespace tombolo::dsm {

// Threads are interrupted under a protocol that polls; under the others no operation asks for it.
template <bool polls>
using InterruptsOf = std::conditional_t<polls, host::Interrupted, host::NotInterrupted>;

template <Transport T, class S, template <class, class> class P>
class PagedMemory final : public CoreMemory<typename T::Core, InterruptsOf<P<T, S>::polls>> {
  using C = typename T::Core;
  using Protocol = P<T, S>;
  using Base = CoreMemory<C, InterruptsOf<Protocol::polls>>;
  using RuntimeCall = typename S::RuntimeCall;
  using Clock = UnfinishedInstruction::Clock;
  static_assert(ConsistencyProtocol<Protocol>);
  using Base::core;

 public:
  struct Layout {
    typename Base::WordLayout words;
    typename T::Layout transport;
    typename Protocol::Layout protocol;
    std::size_t sync_bytes = 0;
  };
  static Layout take(const Shape& shape, WordIndex words) {
    machine::SyncLayout layout(C::reserved_sync_bytes(shape.cores()));
    Layout taken{.words = Base::take_words(layout, shape, words),
                 .transport = T::take(layout, shape),
                 .protocol = Protocol::take(layout, shape)};
    taken.sync_bytes = layout.bytes();
    return taken;
  }

  // `store`: of the same shape, without a miss handler. `give_up` is called when a miss has failed,
  // under the rules of MissHandler, and ends the process; null: the handler's own way.
  PagedMemory(machine::AttachmentOf<C> attachment, const Layout& layout, const Shape& shape,
              std::unique_ptr<S> store, void (*give_up)(const Status&), const Observer& observer)
      : Base(std::move(attachment), layout.words),
        shape_(shape),
        transport_(core(), layout.transport, shape_),
        store_(std::move(store)),
        protocol_(transport_, *store_, layout.protocol),
        misses_(*this),
        give_up_(give_up),
        observer_(observer),
        waited_(observer) {
    if constexpr (requires { transport_.observe(observer_); }) transport_.observe(observer_);
    store_->on_miss(misses_);
    if constexpr (Protocol::polls) this->interrupts().by(answers_);
  }
  ~PagedMemory() override {
    if (interrupter_ != nullptr) host::leave_interrupts();
  }

  // Whether threads need interrupt_by(), before the first of them uses the memory.
  static constexpr bool interrupted = Protocol::polls;
  // `interrupter` reaches the other threads, and this one is interrupted from now on. Errors: io.
  Status interrupt_by(std::unique_ptr<Interrupter> interrupter) requires(interrupted) {
    interrupter_ = std::move(interrupter);
    protocol_.interrupt_by(*interrupter_);
    return host::catch_interrupts(answers_);
  }

  std::span<std::byte> memory() const override { return store_->memory(); }
  std::size_t page_bytes() const override { return shape_.page_bytes; }

  void record(const void* address, std::size_t bytes) override {
    const std::uint64_t size = memory().size();
    const std::uint64_t at = offset_of(address);
    if (at >= size) return;
    const Closed closed(this->interrupts());
    const std::uint64_t end = at + std::min<std::uint64_t>(bytes, size - at);
    for (std::uint64_t next = at; next < end;) {
      const std::uint64_t page_end = (next / shape_.page_bytes + 1) * shape_.page_bytes;
      const std::uint64_t part = std::min(end, page_end) - next;
      protocol_.record(next / shape_.page_bytes, next % shape_.page_bytes, part);
      open_for_stores(next / shape_.page_bytes);
      next += part;
    }
  }

  // The pages leave the cache, with their changes: the next access brings those of all others.
  Status renew(const void* address, std::size_t bytes) override {
    const std::uint64_t size = memory().size();
    const std::uint64_t at = offset_of(address);
    if (at >= size || bytes == 0) return {};
    const Page last = (at + std::min<std::uint64_t>(bytes, size - at) - 1) / shape_.page_bytes;
    const Call call(*this);
    for (Page page = at / shape_.page_bytes; page <= last; ++page)
      if (store_->lookup(page) != nullptr) TOMBOLO_TRY(protocol_.evict(page));
    return {};
  }

  Status touch(const void* address, std::size_t bytes, bool write, std::size_t& touched) override {
    return store_->touch(address, bytes, write, touched);
  }

  // The pages of the runtime's own mapping: the program's instruction touches none.
  Status try_change(Lock lock, void* address, std::size_t bytes, const AtomicChange& change,
                    std::uint64_t& old, bool& done) override {
    const std::uint64_t at = offset_of(address);
    TOMBOLO_CHECK(at < memory().size() && at % bytes == 0,
                  "an atomic operation of {} bytes at {}: the address must be a multiple of that",
                  bytes, address);
    const Call call(*this);
    TOMBOLO_TRY(protocol_.try_begin_span(lock, done));
    if (!done) return {};
    atomics_.add();
    TOMBOLO_TRY(change_in_span(at, bytes, change, old));
    return protocol_.end_span(lock);
  }

  // The program may not access the page: it is as one outside of the memory.
  void close_to_program(const void* address) {
    const Page page = page_at(address);
    closed_.insert(std::ranges::upper_bound(closed_, page), page);
    if constexpr (requires { protocol_.bring_no_more(page); }) protocol_.bring_no_more(page);
  }

  Lock locks() const override { return shape_.locks; }
  Status acquire(Lock lock) override {
    const Call call(*this);
    return waited_.for_lock([&] { return protocol_.begin_span(lock); });
  }
  Status try_acquire(Lock lock, bool& taken) override {
    const Call call(*this);
    return protocol_.try_begin_span(lock, taken);
  }
  Status try_hand_over(Lock lock, bool& done) override {
    if constexpr (requires { protocol_.try_hand_over(lock, done); }) {
      const Call call(*this);
      return protocol_.try_hand_over(lock, done);
    } else {
      return ProgramMemory::try_hand_over(lock, done);
    }
  }
  Status release(Lock lock) override {
    const Call call(*this);
    return protocol_.end_span(lock);
  }
  Status barrier() override {
    const Call call(*this);
    return waited_.at_barrier([&] { return protocol_.barrier(); });
  }
  Status tell() override {
    const Call call(*this);
    return protocol_.tell();
  }
  Status learn() override {
    const Call call(*this);
    return protocol_.learn();
  }
  Status reduce(std::uint64_t& value, ProgramMemory::Combine combine) override {
    const Call call(*this);
    return waited_.at_barrier([&] { return protocol_.reduce(value, combine); });
  }
  Status pause() override {
    if constexpr (Protocol::polls) {
      const Call call(*this);
      TOMBOLO_TRY(protocol_.poll());
    }
    return Base::pause();
  }
  Status close() override {
    const Call call(*this);
    return protocol_.close();
  }

 private:
  class Misses : public MissHandler {
   public:
    explicit Misses(PagedMemory& memory) : memory_(memory) {}
    Status read_miss(Page page) override {
      reads_.add();
      return memory_.observed(Trace::Event::read_fault, {.page = page, .write = false});
    }
    Status write_miss(Page page) override {
      writes_.add();
      return memory_.observed(Trace::Event::write_fault, {.page = page, .write = true});
    }
    bool may_access(const void* address) override {
      return !std::ranges::binary_search(memory_.closed_, memory_.page_at(address));
    }
    void fail(Page page, const Status& why) override {
      if (memory_.give_up_ != nullptr) memory_.give_up_(why);
      MissHandler::fail(page, why);
    }

   private:
    PagedMemory& memory_;
    runtime::Counter& reads_ = runtime::counters().counter("dsm_read_faults");
    runtime::Counter& writes_ = runtime::counters().counter("dsm_write_faults");
  };

  using Closed = typename InterruptsOf<Protocol::polls>::Closed;
  // A call of the runtime.
  class Call {
   public:
    explicit Call(PagedMemory& memory) : closed_(memory.interrupts()), call_(*memory.store_) {}

   private:
    Closed closed_;  // until the view is as it is to be
    RuntimeCall call_;
  };
  class Answers final : public host::InterruptGate {
   public:
    explicit Answers(PagedMemory& memory) : memory_(memory) {}

   private:
    void serve(std::uint64_t instruction) override { memory_.answer(instruction); }

    PagedMemory& memory_;
  };

  // Those that are not answered ask again.
  void answer(std::uint64_t instruction) {
    if (instruction != 0 && unfinished_.may_run_next(instruction, Clock::now())) return;
    const RuntimeCall call(*store_);
    if (const Status answered = protocol_.poll(); !answered.ok()) misses_.fail(0, answered);
  }

  // A miss of the program's, which may be in the handler of its fault.
  Status observed(Trace::Event event, const Access& access) {
    if (observer_.heat != nullptr) {
      const host::Fault* const fault = host::fault_here();
      observer_.heat->fault(
          access.page, fault == nullptr ? 0 : offset_of(fault->address) % shape_.page_bytes,
          access.write,
          fault == nullptr ? nullptr : reinterpret_cast<const void*>(fault->instruction));
    }
    return observer_.traced(event, access.page, [&] { return miss(access); });
  }
  Status miss(const Access& access) {
    if constexpr (Protocol::polls) {
      const bool lost = unfinished_.miss(store_->instruction(), access);
      TOMBOLO_TRY(lost ? protocol_.bring_together(unfinished_.accesses()) : bring(access));
      unfinished_.brought(Clock::now());
      return {};
    }
    return bring(access);
  }
  Status bring(const Access& access) {
    return access.write ? protocol_.write_miss(access.page) : protocol_.read_miss(access.page);
  }

  // A cached page that is about to be stored to is opened without a fault: that takes a signal
  // more.
  void open_for_stores(Page page) {
    if (store_->lookup(page) == nullptr || store_->writable(page)) return;
    const RuntimeCall call(*store_);
    if (const Status opened = protocol_.write_miss(page); !opened.ok()) misses_.fail(page, opened);
  }

  Status change_in_span(std::uint64_t at, std::size_t bytes, const AtomicChange& change,
                        std::uint64_t& old) {
    const Page page = at / shape_.page_bytes;
    const std::size_t offset = at % shape_.page_bytes;
    if (store_->lookup(page) == nullptr) TOMBOLO_TRY(protocol_.read_miss(page));
    old = 0;
    std::memcpy(&old, store_->frame(page).data() + offset, bytes);
    const std::uint64_t value = change.of(old, bytes);
    if (value == old) return {};
    if (!store_->writable(page)) TOMBOLO_TRY(protocol_.write_miss(page));
    protocol_.record(page, offset, bytes);
    std::memcpy(store_->frame(page).data() + offset, &value, bytes);
    return {};
  }

  // At least the memory's size for an address outside of it.
  std::uint64_t offset_of(const void* address) const {
    return reinterpret_cast<std::uint64_t>(address) -
           reinterpret_cast<std::uint64_t>(store_->memory().data());
  }

  Page page_at(const void* address) const { return offset_of(address) / shape_.page_bytes; }

  Shape shape_;
  std::vector<Page> closed_;  // in order
  T transport_;
  std::unique_ptr<S> store_;
  Protocol protocol_;
  Misses misses_;
  Answers answers_{*this};
  UnfinishedInstruction unfinished_;
  std::unique_ptr<Interrupter> interrupter_;
  void (*give_up_)(const Status&);
  Observer observer_;
  Waited waited_;
  runtime::Counter& atomics_ = runtime::counters().counter("dsm_atomics");
};

}  // namespace tombolo::dsm
