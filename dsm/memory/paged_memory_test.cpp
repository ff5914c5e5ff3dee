// SPDX-License-Identifier: Apache-2.0
// Purpose: memory over a protocol that notes its calls: each is made within a RuntimeCall of the
// store, an interrupt is served where none is under way, and misses are counted and met.
// Thread safety: -
#include "dsm/memory/paged_memory.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <concepts>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "backends/coherent/coherent.h"
#include "dsm/pages/fault_pages.h"
#include "dsm/protocol/page_store.h"
#include "dsm/protocol/release.h"
#include "dsm/transport/core_transport.h"
#include "machine/testing/ensemble.h"
#include "machine/testing/forwarding.h"

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
  bool writable(Page page) const { return page < writable_pages; }
  std::span<std::byte> frame(Page page) { return std::span(bytes).subspan(page * 64, 64); }
  std::uint64_t instruction() const { return missing; }
  Status touch(const void* address, std::size_t all, bool write, std::size_t& touched) {
    touched = all / 2;
    return Status::io(std::to_string(static_cast<const std::byte*>(address) - bytes.data()) +
                      (write ? " for stores" : ""));
  }

  std::array<std::byte, 256> bytes{};
  PageNote note;
  Page cached = 0;
  Page writable_pages = 0;
  MissHandler* misses = nullptr;
  std::uint64_t missing = 0;
  int calls = 0;
};

// Whether the protocols of this test find locks free.
bool is_free = false;

// By all protocols of this test.
Calls* noted = nullptr;
std::function<void()> during;
std::function<void()> during_poll;  // the next one
Interrupter* of_protocol = nullptr;
std::string failing;  // the call of this name does

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
  void record(Page page, std::size_t offset, std::size_t bytes) {
    noted->push_back("record " + std::to_string(page) + ": " + std::to_string(offset) + ", " +
                     std::to_string(bytes));
    if (noted->size() > 1000) std::abort();  // without end
    if (during) during();
  }
  Status evict(Page page) { return note("evict " + std::to_string(page)); }
  Status poll() {
    const Status polled = note("poll");
    if (during_poll) std::exchange(during_poll, nullptr)();
    return polled;
  }
  Status begin_span(Lock) { return note("begin"); }
  Status end_span(Lock) { return note("end"); }
  Status try_begin_span(Lock, bool& taken) {
    taken = is_free;
    return note("try");
  }
  Status try_hand_over(Lock, bool& done) {
    done = is_free;
    return note("hand over");
  }
  Status barrier() { return note("barrier"); }
  Status tell() { return note("tell"); }
  Status learn() { return note("learn"); }
  template <class V, class Combine>
  Status reduce(V&, Combine&&) {
    return note("reduce");
  }
  Status close() { return note("close"); }

 private:
  Status note(const std::string& call) {
    noted->push_back(call + (store_.calls == 1 ? "" : ": " + std::to_string(store_.calls)));
    if (during && call != "poll") during();
    return call == failing ? Status::io("no " + call) : Status();
  }
  S& store_;
};

// Lets the test act within the next load of a word.
std::function<void()> during_load;
class HookedCore : public machine::testing::Forwarding<coherent::Core> {
 public:
  using Base = machine::testing::Forwarding<coherent::Core>;
  using Base::Base;
  std::uint64_t load(Word word) {
    if (during_load) std::exchange(during_load, nullptr)();
    return Base::load(word);
  }
};

// Threads under a protocol that does not poll look at no gate in their operations on words.
static_assert(std::derived_from<PagedMemory<CoreTransport<HookedCore>, FaultPages, Release>,
                                CoreMemory<HookedCore, host::NotInterrupted>>);
static_assert(std::derived_from<PagedMemory<CoreTransport<HookedCore>, Store, Noting>,
                                CoreMemory<HookedCore, host::Interrupted>>);

class Nothing final : public Interrupter {
 public:
  void interrupt(Thread) override {}
};

class PagedMemoryTest : public ::testing::Test {
 protected:
  using C = HookedCore;
  using Memory = PagedMemory<CoreTransport<C>, Store, Noting>;

  void SetUp() override {
    noted = &calls;
    make({}, nullptr);
  }
  void make(const Observer& observer, void (*give_up)(const Status&)) {
    memory.reset();
    const auto layout = Memory::take(shape, 4);
    const std::size_t data_bytes = CoreTransport<C>::data_bytes(shape);
    host = std::make_unique<machine::testing::Host<C>>(machine::testing::EnsembleShape{
        .cores = 1, .sync_bytes = layout.sync_bytes, .data_bytes = data_bytes});
    auto owned = std::make_unique<Store>();
    store = owned.get();
    memory = std::make_unique<Memory>(host->attachment(0), layout, shape, std::move(owned), give_up,
                                      observer);
    const Status caught = memory->interrupt_by(std::make_unique<Nothing>());
    ASSERT_TRUE(caught.ok()) << caught.message();
  }
  void TearDown() override {
    during = nullptr;
    failing = "";
    memory.reset();
    peers.interrupt(0);  // passed over
  }
  Calls taken() { return std::exchange(calls, {}); }

  std::byte* at(std::size_t byte) { return memory->memory().data() + byte; }
  static std::uint64_t count_of(const char* name) {
    return runtime::counters().counter(name).value();
  }

  // As the fault handler does.
  void miss(std::uint64_t instruction, Page page, bool write) {
    store->missing = instruction;
    const Store::RuntimeCall call(*store);
    EXPECT_TRUE((write ? store->misses->write_miss(page) : store->misses->read_miss(page)).ok());
  }

  const Shape shape{.pages = 4, .page_bytes = 64, .cached_pages = 4, .locks = 3};
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
              memory->release(0).ok() && memory->barrier().ok() && memory->tell().ok() &&
              memory->learn().ok() && memory->pause().ok() && memory->reduce(value, nullptr).ok() &&
              memory->try_hand_over(0, taken_lock).ok() && memory->renew(at(0), 200).ok() &&
              memory->close().ok());
  EXPECT_EQ(taken(), (Calls{"begin", "try", "end", "barrier", "tell", "learn", "poll", "reduce",
                            "hand over", "evict 0", "evict 1", "close"}));
}

TEST_F(PagedMemoryTest, PassesErrorsOfTheProtocolOn) {
  bool taken_lock = false;
  std::uint64_t value = 0;
  store->cached = 2;
  const std::vector<std::pair<std::string, std::function<Status()>>> all{
      {"begin", [&] { return memory->acquire(0); }},
      {"try", [&] { return memory->try_acquire(0, taken_lock); }},
      {"end", [&] { return memory->release(0); }},
      {"hand over", [&] { return memory->try_hand_over(0, taken_lock); }},
      {"barrier", [&] { return memory->barrier(); }},
      {"tell", [&] { return memory->tell(); }},
      {"learn", [&] { return memory->learn(); }},
      {"poll", [&] { return memory->pause(); }},
      {"reduce", [&] { return memory->reduce(value, nullptr); }},
      {"evict 0", [&] { return memory->renew(at(0), 200); }},
      {"close", [&] { return memory->close(); }}};
  for (const auto& [call, of_memory] : all) {
    failing = call;
    EXPECT_EQ(of_memory().message(), "no " + call);
    EXPECT_EQ(taken(), Calls{call});
  }
}

// ---- Places -------------------------------------------------------------------------------------

TEST_F(PagedMemoryTest, HasTheStoresMemory) {
  EXPECT_EQ(memory->memory().data(), store->bytes.data());
  EXPECT_EQ(memory->memory().size(), store->bytes.size());
  EXPECT_EQ(memory->page_bytes(), 64U);
  EXPECT_EQ(memory->locks(), 3U);
  std::size_t touched = 0;
  EXPECT_EQ(memory->touch(at(5), 10, true, touched).message(), "5 for stores");
  EXPECT_EQ(memory->touch(at(6), 10, false, touched).message(), "6");
  EXPECT_EQ(touched, 5U);
}

// Of the memory alone, each page by itself; those that are cached are opened.
TEST_F(PagedMemoryTest, RecordsStoresByPages) {
  store->cached = 3;
  store->writable_pages = 1;
  memory->record(at(60), 100);
  EXPECT_EQ(taken(),
            (Calls{"record 0: 60, 4", "record 1: 0, 64", "write 1", "record 2: 0, 32", "write 2"}));
  memory->record(at(192), 64);
  memory->record(at(255), 1000);
  EXPECT_EQ(taken(), (Calls{"record 3: 0, 64", "record 3: 63, 1"}));
  memory->record(at(256), 8);
  memory->record(at(0) - 1, 8);
  memory->record(nullptr, 8);
  memory->record(at(0), 0);
  EXPECT_EQ(taken(), Calls{});
}

TEST_F(PagedMemoryTest, RenewsThePagesThatItsBytesLieOn) {
  store->cached = 4;
  EXPECT_TRUE(memory->renew(at(63), 2).ok());
  EXPECT_EQ(taken(), (Calls{"evict 0", "evict 1"}));
  EXPECT_TRUE(memory->renew(at(64), 64).ok());
  EXPECT_EQ(taken(), (Calls{"evict 1"}));
  EXPECT_TRUE(memory->renew(at(191), 1000).ok());
  EXPECT_EQ(taken(), (Calls{"evict 2", "evict 3"}));
  EXPECT_TRUE(memory->renew(at(256), 8).ok() && memory->renew(at(0) - 8, 8).ok() &&
              memory->renew(at(0), 0).ok());
  EXPECT_EQ(taken(), Calls{});
}

TEST_F(PagedMemoryTest, KeepsItsProgramFromClosedPages) {
  memory->close_to_program(at(130));
  memory->close_to_program(at(0));
  memory->close_to_program(at(192));
  EXPECT_FALSE(store->misses->may_access(at(63)));
  EXPECT_TRUE(store->misses->may_access(at(64)));
  EXPECT_FALSE(store->misses->may_access(at(128)));
  EXPECT_FALSE(store->misses->may_access(at(255)));
}

// ---- Misses -------------------------------------------------------------------------------------

TEST_F(PagedMemoryTest, ChangesAValueInASpanOfTheLock) {
  auto* const value = reinterpret_cast<std::uint16_t*>(memory->memory().data() + 64 + 6);
  *value = 5;
  const AtomicChange add{.kind = AtomicChange::Kind::add, .operand = 0xffff};
  std::uint64_t old = 77;
  bool done = true;
  is_free = false;
  EXPECT_TRUE(memory->try_change(0, value, 2, add, old, done).ok());
  EXPECT_FALSE(done);
  EXPECT_EQ(taken(), Calls{"try"});
  is_free = true;
  EXPECT_TRUE(memory->try_change(0, value, 2, add, old, done).ok());
  EXPECT_TRUE(done);
  EXPECT_EQ(old, 5u);
  EXPECT_EQ(*value, 4u);
  EXPECT_EQ(value[1], 0u) << "a neighbour";
  EXPECT_EQ(taken(), (Calls{"try", "read 1", "write 1", "record 1: 6, 2", "end"}));
  store->cached = 2;
  EXPECT_TRUE(memory->try_change(0, value, 2, {}, old, done).ok());
  EXPECT_EQ(old, 4u);
  EXPECT_EQ(taken(), (Calls{"try", "end"})) << "a load";
}

TEST_F(PagedMemoryTest, ChangesNoValueOutsideOfTheMemory) {
  std::byte* const end = memory->memory().data() + memory->memory().size();
  std::uint64_t old = 0;
  bool done = false;
  is_free = true;
  const auto change = [&](std::byte* at) {
    return memory->try_change(0, at, 8, {.kind = AtomicChange::Kind::add, .operand = 1}, old, done);
  };
  EXPECT_DEATH(static_cast<void>(change(end)), "an atomic operation of 8 bytes at");
  EXPECT_DEATH(static_cast<void>(change(end - 4)), "must be a multiple of that");
  EXPECT_TRUE(change(end - 8).ok());
}

TEST_F(PagedMemoryTest, BringsPagesTogetherWhereOneIsLost) {
  miss(100, 1, true);
  miss(100, 2, false);
  miss(100, 1, true);
  miss(104, 1, false);
  EXPECT_EQ(taken(), (Calls{"write 1", "read 2", "together r2 w1", "read 1"}));
}

TEST_F(PagedMemoryTest, CountsMissesAndWaits) {
  PageHeat heat(shape);
  Trace trace;
  make({.timed = true, .heat = &heat, .trace = &trace}, nullptr);
  const std::uint64_t reads = count_of("dsm_read_faults");
  const std::uint64_t writes = count_of("dsm_write_faults");
  const std::uint64_t locks = count_of("dsm_lock_waits");
  const std::uint64_t barriers = count_of("dsm_barriers");
  miss(100, 1, true);
  miss(104, 1, false);
  miss(108, 1, false);
  EXPECT_EQ(count_of("dsm_read_faults"), reads + 2);
  EXPECT_EQ(count_of("dsm_write_faults"), writes + 1);
  const HotPage hottest = heat.hottest()[0];
  EXPECT_EQ(hottest.page, 1U);
  EXPECT_EQ(hottest.faults, 3U);
  std::uint64_t value = 0;
  EXPECT_TRUE(memory->acquire(0).ok() && memory->barrier().ok() &&
              memory->reduce(value, nullptr).ok());
  EXPECT_EQ(count_of("dsm_lock_waits"), locks + 1);
  EXPECT_EQ(count_of("dsm_barriers"), barriers + 2);
  const std::string lines = trace.lines(0, 0);
  for (const auto& [event, times] :
       {std::pair("write fault", 1), {"read fault", 2}, {"lock wait", 1}, {"barrier", 2}}) {
    int found = 0;
    for (auto i = lines.find(event); i != std::string::npos; i = lines.find(event, i + 1)) ++found;
    EXPECT_EQ(found, times) << event << " in " << lines;
  }
}

TEST_F(PagedMemoryTest, ToldWhereAPageCannotBeHad) {
  const auto say = [](const Status& why) {
    std::fprintf(stderr, "given up: %s", why.message().c_str());
    _exit(7);
  };
  store->cached = 1;
  failing = "write 0";
  EXPECT_EXIT(memory->record(at(0), 8), ::testing::ExitedWithCode(1), "no write 0");
  EXPECT_EXIT(
      {
        make({}, say);
        store->cached = 1;
        memory->record(at(0), 8);
      },
      ::testing::ExitedWithCode(7), "given up: no write 0");
  // In place of a handler that says so, the store does.
  store->missing = 100;
  EXPECT_EQ(store->misses->write_miss(0).message(), "no write 0");
  EXPECT_EXIT(
      {
        make({}, say);
        failing = "poll";
        host::PeerInterrupts({host::process_named(getpid())}).interrupt(0);
      },
      ::testing::ExitedWithCode(7), "given up: no poll");
}

// ---- Interrupts ---------------------------------------------------------------------------------

TEST_F(PagedMemoryTest, AnswersInterrupts) {
  peers.interrupt(0);
  EXPECT_EQ(taken(), Calls{"poll"});
  EXPECT_NE(of_protocol, nullptr);
}

TEST_F(PagedMemoryTest, IsNotInterruptedAfterItsEnd) {
  memory.reset();
  peers.interrupt(0);
  EXPECT_EQ(taken(), Calls{});
}

TEST_F(PagedMemoryTest, AnswersAtTheEndOfACallThatIsInterrupted) {
  during = [&] {
    peers.interrupt(0);
    calls.emplace_back("interrupted");
  };
  store->cached = 1;
  store->writable_pages = 1;
  std::uint64_t value = 0;
  bool taken_lock = false;
  const std::vector<std::function<void()>> all{
      [&] { EXPECT_TRUE(memory->acquire(0).ok()); },
      [&] { EXPECT_TRUE(memory->try_acquire(0, taken_lock).ok()); },
      [&] { EXPECT_TRUE(memory->release(0).ok()); },
      [&] { EXPECT_TRUE(memory->try_hand_over(0, taken_lock).ok()); },
      [&] { EXPECT_TRUE(memory->barrier().ok()); },
      [&] { EXPECT_TRUE(memory->tell().ok()); },
      [&] { EXPECT_TRUE(memory->learn().ok()); },
      [&] { EXPECT_TRUE(memory->reduce(value, nullptr).ok()); },
      [&] { EXPECT_TRUE(memory->renew(at(0), 1).ok()); },
      [&] { EXPECT_TRUE(memory->close().ok()); },
      [&] { memory->record(at(0), 1); }};
  for (const auto& call : all) {
    call();
    const Calls seen = taken();
    EXPECT_EQ(seen, (Calls{seen[0], "interrupted", "poll"}));
  }
}

TEST_F(PagedMemoryTest, AnswersAtTheEndOfAWordThatIsInterrupted) {
  during_load = [&] {
    peers.interrupt(0);
    calls.emplace_back("interrupted");
  };
  EXPECT_EQ(memory->load(1), 0U);
  EXPECT_EQ(taken(), (Calls{"interrupted", "poll"}));
}

TEST_F(PagedMemoryTest, AnswersAtTheEndOfAPauseThatIsInterrupted) {
  during_poll = [&] {
    peers.interrupt(0);
    calls.emplace_back("interrupted");
  };
  EXPECT_TRUE(memory->pause().ok());
  EXPECT_EQ(taken(), (Calls{"poll", "interrupted", "poll"}));
}

// Tells the instruction before which an interrupt by this test comes.
class Recorder final : public host::InterruptGate {
 public:
  std::uint64_t instruction = 0;

 private:
  void serve(std::uint64_t at) override { instruction = at; }
};

// For a while, which a busy host may take up: one time of many is enough.
TEST_F(PagedMemoryTest, AnswersNotBeforeTheInstructionThatHasMissedHasRun) {
  peers.interrupt(0);
  Recorder recorder;
  ASSERT_TRUE(host::catch_interrupts(recorder).ok());
  peers.interrupt(0);
  make({}, nullptr);
  int put_off = 0;
  for (int i = 0; i < 1000 && put_off == 0; ++i) {
    miss(recorder.instruction, 1, false);
    taken();
    peers.interrupt(0);
    put_off += taken().empty() ? 1 : 0;
  }
  EXPECT_EQ(put_off, 1);
  std::this_thread::sleep_for(4 * UnfinishedInstruction::time_to_run);
  peers.interrupt(0);
  EXPECT_EQ(taken(), Calls{"poll"});
}

}  // namespace
}  // namespace tombolo::dsm
