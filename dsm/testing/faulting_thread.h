// SPDX-License-Identifier: Apache-2.0
// Purpose: a thread of a program as ProgramThread, whose loads and stores are plain accesses to its
// own view: its page store meets them by page faults. The threads of a test are those of one
// process, and each has a view, at an address of its own.
//
//   FaultingThread<CoreTransport<C>, Regional, FaultMechanism::userfault> thread(core, layout,
//                                                                                shape);
//
// A miss that fails ends the process.
// Thread safety: one thread for each object, which makes it.
#pragma once

#include "dsm/pages/fault_pages.h"
#include "dsm/testing/program_thread.h"

namespace tombolo::dsm::testing {

// FaultPages that are made as ProgramThread makes its store.
template <host::FaultMechanism Mechanism>
class OwnFaultPages {
 public:
  explicit OwnFaultPages(const Shape& shape) {
    const Status made = FaultPages::create(shape, {.mechanism = Mechanism}, pages_);
    TOMBOLO_CHECK(made.ok(), "fault pages: {}", made.message());
  }
  FaultPages& get() { return *pages_; }

  PageNote* lookup(Page page) { return pages_->lookup(page); }
  PageNote& install(Page page, std::span<const std::byte> bytes) {
    return pages_->install(page, bytes);
  }
  void install_run(Page first, std::span<const std::byte> bytes, bool for_stores) {
    pages_->install_run(first, bytes, for_stores);
  }
  void invalidate(Page page) { pages_->invalidate(page); }
  bool writable(Page page) { return pages_->writable(page); }
  void allow_writes(Page page) { pages_->allow_writes(page); }
  void forbid_writes(Page page) { pages_->forbid_writes(page); }
  std::span<std::byte> frame(Page page) { return pages_->frame(page); }
  void make_twin(Page page) { pages_->make_twin(page); }
  std::span<std::byte> twin(Page page) { return pages_->twin(page); }
  std::uint32_t slot(Page page) { return pages_->slot(page); }
  std::vector<Page> cached() const { return pages_->cached(); }
  std::vector<Page> written() const { return pages_->written(); }
  void leave_to_program(Page page) { pages_->leave_to_program(page); }
  bool in_place() const { return pages_->in_place(); }
  bool full() const { return pages_->full(); }
  Page room() const { return pages_->room(); }
  Page victim() const { return pages_->victim(); }

 private:
  std::unique_ptr<FaultPages> pages_;
};

template <Transport T, template <class, class> class P, host::FaultMechanism Mechanism>
class FaultingThread : public ProgramThread<T, OwnFaultPages<Mechanism>, P> {
  using Base = ProgramThread<T, OwnFaultPages<Mechanism>, P>;
  using RuntimeCall = FaultPages::RuntimeCall;

 public:
  using typename Base::Core;
  using typename Base::Layout;
  using typename Base::Protocol;

  FaultingThread(Core& core, const Layout& layout, const Shape& shape)
      : Base(core, layout, shape), misses_(this->protocol()) {
    view().on_miss(misses_);
  }
  FaultPages& view() { return this->pages().get(); }

  std::uint64_t load(Variable v) {
    this->approach();
    return *place_of(v);
  }
  void store(Variable v, std::uint64_t value, bool recorded = true) {
    this->approach();
    if (recorded) this->protocol().record(this->page_of(v), this->offset_of(v), sizeof value);
    *place_of(v) = value;
  }

  void begin_span(Lock lock) {
    const RuntimeCall call(view());
    Base::begin_span(lock);
  }
  void end_span(Lock lock) {
    const RuntimeCall call(view());
    Base::end_span(lock);
  }
  void hand_over(Lock lock) {
    const RuntimeCall call(view());
    Base::hand_over(lock);
  }
  void barrier() {
    const RuntimeCall call(view());
    Base::barrier();
  }
  void tell() {
    const RuntimeCall call(view());
    Base::tell();
  }
  void learn() {
    const RuntimeCall call(view());
    Base::learn();
  }
  std::uint64_t sum(std::uint64_t value) {
    const RuntimeCall call(view());
    return Base::sum(value);
  }
  // Without a RuntimeCall: each page is closed at once.
  using Base::close;
  using Base::evict;

 private:
  volatile std::uint64_t* place_of(Variable v) {
    std::byte* const page = view().memory().data() + this->page_of(v) * this->shape().page_bytes;
    return reinterpret_cast<volatile std::uint64_t*>(page + this->offset_of(v));
  }

  ProtocolMisses<Protocol> misses_;
};

}  // namespace tombolo::dsm::testing
