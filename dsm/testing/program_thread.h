// SPDX-License-Identifier: Apache-2.0
// Purpose: a thread of a program on virtual shared memory, for tests: 8-byte variables, each load
// and store of which looks whether its page is cached, as a page fault would.
//
//   ProgramThread<CoreTransport<C>, PrivatePages, Regional> thread(core, layout, shape);
//   thread.store(v, 7); thread.begin_span(0); ...
//
// Invariants: DPT1 variable v is the v / pages-th of page v mod pages: neighbours by number lie on
//                  different pages, and threads share pages falsely.
// Errors stop the program: in tests they are mistakes. A machine that ends a wait with an error
// needs on_error().
// Thread safety: one thread for each object.
#pragma once

#include <array>
#include <cstring>
#include <functional>

#include "dsm/protocol/consistency.h"
#include "dsm/protocol/page_store.h"
#include "dsm/protocol/transport.h"

namespace tombolo::dsm::testing {

using Variable = std::uint64_t;

template <Transport T, PageStore S, template <class, class> class P>
class ProgramThread {
 public:
  using Core = typename T::Core;
  using Protocol = P<T, S>;
  static_assert(ConsistencyProtocol<Protocol>);
  // Whether the stores of a span are seen by threads that take any lock after it.
  static constexpr bool tells_all = Protocol::polls || requires(Protocol & p, bool& done) {
    p.try_hand_over(Lock{}, done);
  };

  struct Layout {
    typename T::Layout transport;
    typename Protocol::Layout protocol;
    std::size_t sync_bytes = 0;
    std::size_t data_bytes = 0;
  };
  static Layout take(const Shape& shape) {
    machine::SyncLayout layout(Core::reserved_sync_bytes(shape.cores()));
    return take(layout, shape);
  }
  static Layout take(machine::SyncLayout& layout, const Shape& shape) {
    Layout taken{.transport = T::take(layout, shape), .protocol = Protocol::take(layout, shape)};
    taken.sync_bytes = layout.bytes();
    taken.data_bytes = T::data_bytes(shape);
    return taken;
  }

  ProgramThread(Core& core, const Layout& layout, const Shape& shape)
      : shape_(shape),
        transport_(core, layout.transport, shape_),
        store_(shape_),
        protocol_(transport_, store_, layout.protocol) {
    if constexpr (requires { store_.on_install({}); })
      store_.on_install([this](Page page) { expose(page); });
  }

  // Instead of stopping.
  void on_error(std::function<void(const Status&)> action) { on_error_ = std::move(action); }
  // Called before each load and store.
  void before_access(std::function<void()> action) { before_access_ = std::move(action); }

  Thread self() { return transport_.core().self(); }
  const Shape& shape() const { return shape_; }
  Core& core() { return transport_.core(); }
  S& pages() { return store_; }
  Protocol& protocol() { return protocol_; }
  Page page_of(Variable v) const { return v % shape_.pages; }

  std::uint64_t load(Variable v) {
    approach();
    if (store_.lookup(page_of(v)) == nullptr) must(protocol_.read_miss(page_of(v)));
    std::uint64_t value = 0;
    std::memcpy(&value, bytes_of(v).data(), sizeof value);
    return value;
  }
  // `recorded`: as instrumented code does.
  void store(Variable v, std::uint64_t value, bool recorded = true) {
    approach();
    if (recorded) protocol_.record(page_of(v), offset_of(v), sizeof value);
    const PageNote* cached = store_.lookup(page_of(v));
    if (cached == nullptr || !store_.writable(page_of(v))) must(protocol_.write_miss(page_of(v)));
    std::memcpy(bytes_of(v).data(), &value, sizeof value);
    if (store_.in_place()) expose(page_of(v));
  }

  // One instruction that stores to both. False if they are not writable at once when it runs.
  bool store_both(Variable first, Variable second, std::uint64_t value) {
    approach();
    const std::array<Access, 2> both{{{page_of(first), true}, {page_of(second), true}}};
    must(protocol_.bring_together(both));
    for (const Variable v : {first, second}) {
      if (store_.lookup(page_of(v)) == nullptr || !store_.writable(page_of(v))) return false;
      std::memcpy(bytes_of(v).data(), &value, sizeof value);
    }
    return true;
  }

  void begin_span(Lock lock) { must(protocol_.begin_span(lock)); }
  bool try_begin_span(Lock lock) {
    bool taken = false;
    must(protocol_.try_begin_span(lock, taken));
    return taken;
  }
  void end_span(Lock lock) { must(protocol_.end_span(lock)); }
  bool try_hand_over(Lock lock) {
    bool done = false;
    must(protocol_.try_hand_over(lock, done));
    return done;
  }
  void hand_over(Lock lock) {
    if constexpr (requires(bool& done) { protocol_.try_hand_over(lock, done); }) {
      while (!try_hand_over(lock)) pause(1000);
    } else {
      begin_span(lock);
      end_span(lock);
    }
  }
  // The lock is free meanwhile: for a condition that holders of it bring about.
  void wait(Lock lock) {
    end_span(lock);
    pause(1000);
    begin_span(lock);
  }
  void wake_all(Lock) {}
  void pause(std::uint64_t ns) { must(core().pause(ns)); }
  void barrier() { must(protocol_.barrier()); }
  void tell() { must(protocol_.tell()); }
  void learn() { must(protocol_.learn()); }
  std::uint64_t sum(std::uint64_t value) {
    must(protocol_.reduce(value, std::plus<std::uint64_t>()));
    return value;
  }
  void evict(Page page) {
    if (store_.lookup(page) != nullptr) must(protocol_.evict(page));
  }
  void close() { must(protocol_.close()); }

  void must(const Status& status) {
    if (status.ok()) return;
    if (on_error_) return on_error_(status);
    TOMBOLO_CHECK(status.ok(), "virtual shared memory: {}", status.message());
  }

 protected:
  void approach() {
    if (before_access_) before_access_();
    if constexpr (Protocol::polls) must(protocol_.poll());
  }
  std::size_t offset_of(Variable v) const { return v / shape_.pages * sizeof(std::uint64_t); }

 private:
  void expose(Page page) {
    must(transport_.expose(store_.slot(page), store_.frame(page)));
    must(transport_.complete());
  }
  std::span<std::byte> bytes_of(Variable v) {
    return store_.frame(page_of(v)).subspan(offset_of(v), sizeof(std::uint64_t));
  }

  Shape shape_;
  T transport_;
  S store_;
  Protocol protocol_;
  std::function<void(const Status&)> on_error_;
  std::function<void()> before_access_;
};

}  // namespace tombolo::dsm::testing
