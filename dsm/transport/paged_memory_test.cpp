// SPDX-License-Identifier: Apache-2.0
// Purpose: memory over a protocol that notes its calls: each is made within a RuntimeCall of the
// store, and an interrupt is served where none is under way.
// Thread safety: -
#include "dsm/transport/paged_memory.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "backends/coherent/coherent.h"
#include "dsm/protocol/page_store.h"
#include "dsm/transport/core_transport.h"
#include "machine/testing/ensemble.h"

namespace tombolo::dsm {
namespace {

using Calls = std::vector<std::string>;

// A store whose pages are as the test says.
class Store {
 public:
  class RuntimeCall {
   public:
    explicit RuntimeCall(Store& store) : store_(store) { ++store_.calls; }
    ~RuntimeCall() { --store_.calls; }
    RuntimeCall(const RuntimeCall&) = delete;
    RuntimeCall& operator=(const RuntimeCall&) = delete;

   private:
    Store& store_;
  };

  void on_miss(MissHandler& to) { misses = &to; }
  std::span<std::byte> memory() { return bytes; }
  PageNote* lookup(Page page) { return page < cached ? &note : nullptr; }
  bool writable(Page) const { return false; }
  std::uint64_t instruction() const { return missing; }
  Status touch(const void*, std::size_t all, bool, std::size_t& touched) {
    touched = all;
    return {};
  }

  std::array<std::byte, 256> bytes{};
  PageNote note;
  Page cached = 0;
  MissHandler* misses = nullptr;
  std::uint64_t missing = 0;
  int calls = 0;
};

// By all protocols of this test.
Calls* noted = nullptr;
std::function<void()> during;
Interrupter* of_protocol = nullptr;

template <class T, class S>
class Noting {
 public:
  static constexpr const char* name = "noting";
  static constexpr bool polls = true;
  struct Layout {};
  static Layout take(machine::SyncLayout&, const Shape&) { return {}; }
  Noting(T&, S& store, Layout) : store_(store) {}
  void interrupt_by(Interrupter& interrupter) { of_protocol = &interrupter; }

  Status read_miss(Page page) { return note("read " + std::to_string(page)); }
  Status write_miss(Page page) { return note("write " + std::to_string(page)); }
  Status bring_together(std::span<const Access> accesses) {
    std::string text = "together";
    for (const Access& access : accesses)
      text += (access.write ? " w" : " r") + std::to_string(access.page);
    return note(text);
  }
  void record(Page page, std::size_t, std::size_t) {
    noted->push_back("record " + std::to_string(page));
    if (during) during();
  }
  Status evict(Page page) { return note("evict " + std::to_string(page)); }
  Status poll() { return note("poll"); }
  Status begin_span(Lock) { return note("begin"); }
  Status end_span(Lock) { return note("end"); }
  Status try_begin_span(Lock, bool&) { return note("try"); }
  Status barrier() { return note("barrier"); }
  template <class V, class Combine>
  Status reduce(V&, Combine&&) {
    return note("reduce");
  }
  Status close() { return note("close"); }

 private:
  Status note(const std::string& call) {
    noted->push_back(call + (store_.calls == 1 ? "" : ": " + std::to_string(store_.calls)));
    if (during && call != "poll") during();
    return {};
  }
  S& store_;
};

class Nothing final : public Interrupter {
 public:
  void interrupt(Thread) override {}
};

class PagedMemoryTest : public ::testing::Test {
 protected:
  using C = coherent::Core;
  using Memory = PagedMemory<CoreTransport<C>, Store, Noting>;

  void SetUp() override {
    noted = &calls;
    const auto layout = Memory::take(shape, 4);
    const std::size_t data_bytes = CoreTransport<C>::data_bytes(shape);
    host = std::make_unique<machine::testing::Host<C>>(machine::testing::EnsembleShape{
        .cores = 1, .sync_bytes = layout.sync_bytes, .data_bytes = data_bytes});
    auto owned = std::make_unique<Store>();
    store = owned.get();
    memory = std::make_unique<Memory>(host->attachment(0), layout, shape, std::move(owned), nullptr,
                                      Observer{});
    const Status caught = memory->interrupt_by(std::make_unique<Nothing>());
    ASSERT_TRUE(caught.ok()) << caught.message();
  }
  void TearDown() override {
    during = nullptr;
    memory.reset();
    peers.interrupt(0);  // passed over
  }
  Calls taken() { return std::exchange(calls, {}); }

  // As the fault handler does.
  void miss(std::uint64_t instruction, Page page, bool write) {
    store->missing = instruction;
    const Store::RuntimeCall call(*store);
    EXPECT_TRUE((write ? store->misses->write_miss(page) : store->misses->read_miss(page)).ok());
  }

  const Shape shape{.pages = 4, .page_bytes = 64, .cached_pages = 4};
  std::unique_ptr<machine::testing::Host<C>> host;
  Store* store = nullptr;
  std::unique_ptr<Memory> memory;
  Calls calls;
  host::PeerInterrupts peers{{host::process_named(getpid())}};
};

TEST_F(PagedMemoryTest, CallsTheProtocolWithinRuntimeCalls) {
  bool taken_lock = false;
  std::uint64_t value = 0;
  store->cached = 2;
  EXPECT_TRUE(memory->acquire(0).ok() && memory->try_acquire(0, taken_lock).ok() &&
              memory->release(0).ok() && memory->barrier().ok() && memory->pause().ok() &&
              memory->reduce(value, nullptr).ok() &&
              memory->renew(memory->memory().data(), 200).ok() && memory->close().ok());
  EXPECT_EQ(taken(), (Calls{"begin", "try", "end", "barrier", "poll", "reduce", "evict 0",
                            "evict 1", "close"}));
  memory->record(memory->memory().data() + 60, 100);
  EXPECT_EQ(taken(), (Calls{"record 0", "write 0", "record 1", "write 1", "record 2"}));
}

TEST_F(PagedMemoryTest, BringsPagesTogetherWhereOneIsLost) {
  miss(100, 1, true);
  miss(100, 2, false);
  miss(100, 1, true);
  miss(104, 1, false);
  EXPECT_EQ(taken(), (Calls{"write 1", "read 2", "together r2 w1", "read 1"}));
}

TEST_F(PagedMemoryTest, AnswersInterrupts) {
  peers.interrupt(0);
  EXPECT_EQ(taken(), Calls{"poll"});
  EXPECT_NE(of_protocol, nullptr);
}

TEST_F(PagedMemoryTest, AnswersAtTheEndOfACallThatIsInterrupted) {
  during = [&] {
    peers.interrupt(0);
    calls.emplace_back("interrupted");
  };
  std::uint64_t value = 0;
  bool taken_lock = false;
  const std::vector<std::function<void()>> all{
      [&] { EXPECT_TRUE(memory->acquire(0).ok()); },
      [&] { EXPECT_TRUE(memory->try_acquire(0, taken_lock).ok()); },
      [&] { EXPECT_TRUE(memory->release(0).ok()); },
      [&] { EXPECT_TRUE(memory->barrier().ok()); },
      [&] { EXPECT_TRUE(memory->reduce(value, nullptr).ok()); },
      [&] { EXPECT_TRUE(memory->close().ok()); },
      [&] { memory->record(memory->memory().data(), 1); }};
  for (const auto& call : all) {
    call();
    const Calls seen = taken();
    EXPECT_EQ(seen, (Calls{seen[0], "interrupted", "poll"}));
  }
}

}  // namespace
}  // namespace tombolo::dsm
