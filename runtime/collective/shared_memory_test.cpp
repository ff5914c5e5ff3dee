// SPDX-License-Identifier: Apache-2.0
// Purpose: memory that processes make together, on each machine: over any exchange, and where one
// step fails at one process.
#include "runtime/collective/shared_memory.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>

#include "host/memory/page.h"
#include "runtime/testing/thread_exchange.h"

namespace tombolo::runtime {
namespace {

using testing::Failure;
using testing::run_together;
using testing::ThreadExchange;
using All = Collective<ThreadExchange>;

constexpr int size = 3;
constexpr std::uint64_t region_bytes = 5000;

Options on(std::string_view machine) {
  Options options;
  options.machine = *machine_named(machine);
  options.evictions = 7;
  return options;
}

std::size_t mappings() {
  std::ifstream maps("/proc/self/maps");
  std::size_t lines = 0;
  for (std::string line; std::getline(maps, line);)
    if (line.find("tombolo-window") != std::string::npos) ++lines;
  return lines;
}

// One process of a window: its memory and its engine.
struct Window {
  std::optional<SharedMemory> memory;
  std::pmr::monotonic_buffer_resource room;
  EnginePointer engine;
};

Agreed make(All& all, const Options& options, SharedMemory::Request request, Member me,
            Window& out) {
  std::vector<Member> members(static_cast<std::size_t>(all.size()));
  all.gather(me, std::span(members));
  out.memory.emplace(request, all.rank(), std::move(members));
  TOMBOLO_AGREE(out.memory->make(all, options));
  return all.step({}, [&] {
    return out.memory->start_engine({.waiting = machine::WaitPolicy::for_host(size, 2),
                                     .for_regions = &out.room,
                                     .for_engine = &out.room},
                                    options, {}, out.engine);
  });
}

class SharedMemoryOn : public ::testing::TestWithParam<std::string_view> {};
INSTANTIATE_TEST_SUITE_P(Machines, SharedMemoryOn, ::testing::ValuesIn(machine_names()),
                         [](const auto& test) { return std::string(test.param); });

// A core of one's own: the sync words are as many as were asked for, and lead to the same memory.
TEST_P(SharedMemoryOn, CarriesOtherCores) {
  const Options options = on(GetParam());
  EXPECT_TRUE(run_together(size, {}, [&](ThreadExchange& exchange) {
    All all(exchange);
    std::pmr::monotonic_buffer_resource room;
    std::vector<Member> members(size);
    Member me = this_member(options);
    me.bytes = region_bytes;
    all.gather(me, std::span(members));
    SharedMemory memory({.sync_bytes = 12345}, all.rank(), members);
    const Agreed made = memory.make(all, options);
    ASSERT_TRUE(made.ok()) << made.status().message();
    const SharedMemory::Surroundings surroundings{.for_regions = &room};
    const machine::Attachment at = memory.attachment(surroundings, options);
    EXPECT_EQ(at.self, static_cast<machine::Home>(exchange.rank()));
    EXPECT_EQ(at.cores, static_cast<machine::Home>(size));
    EXPECT_EQ(at.sync_bytes_per_home, 12352u) << "whole lines";
    EXPECT_EQ(at.seed, options.seed);
    ASSERT_EQ(at.data.size(), static_cast<std::size_t>(size));
    EXPECT_EQ(at.data[1].bytes, region_bytes);
    const Particulars particulars = memory.particulars(surroundings, options);
    EXPECT_EQ(particulars.evictions, options.evictions);
    EXPECT_EQ(particulars.shared != nullptr, memory.served_machine().shared_bytes(at.data) > 0);
    at.sync[at.self * at.sync_bytes_per_home] = std::byte{7};
    at.data[at.self].memory[0] = static_cast<std::byte>(at.self + 1);
    EXPECT_TRUE(all.all(true));
    for (int rank = 0; rank < size; ++rank) {
      EXPECT_EQ(at.sync[static_cast<std::size_t>(rank) * at.sync_bytes_per_home], std::byte{7});
      EXPECT_EQ(at.data[static_cast<std::size_t>(rank)].memory[0],
                static_cast<std::byte>(rank + 1));
    }
    EXPECT_TRUE(all.all(true));
  }));
}

TEST_P(SharedMemoryOn, CarriesAWindow) {
  const Options options = on(GetParam());
  EXPECT_TRUE(run_together(size, {}, [&](ThreadExchange& exchange) {
    All all(exchange);
    Window window;
    Member me = this_member(options);
    me.bytes = region_bytes + static_cast<std::uint64_t>(exchange.rank());
    const Agreed made = make(all, options, {}, me, window);
    ASSERT_TRUE(made.ok()) << made.status().message();
    EXPECT_FALSE(window.memory->several_hosts());
    EXPECT_TRUE(window.memory->made());
    windows::Engine& engine = *window.engine;
    const auto right = static_cast<machine::Home>((exchange.rank() + 1) % size);
    const int mine = 100 + exchange.rank();
    ASSERT_TRUE(engine.fence({}).ok());
    ASSERT_TRUE(engine.put(right, region_bytes - 5, &mine, sizeof mine).ok());
    ASSERT_TRUE(engine.fence({}).ok());
    int found = 0;
    std::memcpy(&found, engine.view(static_cast<machine::Home>(exchange.rank())) + region_bytes - 5,
                sizeof found);
    EXPECT_EQ(found, 100 + (exchange.rank() + size - 1) % size);
    engine.close();
    all.all(true);
  }));
  EXPECT_EQ(mappings(), 0u);
}

TEST_P(SharedMemoryOn, ContiguousRegionsFollowEachOther) {
  const Options options = on(GetParam());
  EXPECT_TRUE(run_together(size, {}, [&](ThreadExchange& exchange) {
    All all(exchange);
    for (const bool contiguous : {true, false}) {
      Window window;
      Member me = this_member(options);
      me.bytes = 24;
      ASSERT_TRUE(make(all, options, {.contiguous = contiguous}, me, window).ok());
      const std::byte* const first = window.engine->view(0);
      const std::uint64_t apart = contiguous ? 24 : host::page_bytes();
      EXPECT_EQ(window.engine->view(1), first + apart);
      EXPECT_EQ(window.engine->view(2), first + 2 * apart);
      window.engine->close();
      all.all(true);
    }
  }));
}

// Each step fails once at each process: all hear of it, none hangs, nothing is left.
TEST_P(SharedMemoryOn, FailsEverywhereWhereOneStepFailsAtOneProcess) {
  const Options options = on(GetParam());
  int steps = 0;
  EXPECT_TRUE(run_together(size, {}, [&](ThreadExchange& exchange) {
    All all(exchange);
    Window window;
    Member me = this_member(options);
    me.bytes = region_bytes;
    EXPECT_TRUE(make(all, options, {}, me, window).ok());
    if (exchange.rank() == 0) steps = exchange.calls_of_all();
    window.engine->close();
    all.all(true);
  }));
  EXPECT_GE(steps, 3);
  for (int step = 0; step < steps; ++step)
    for (int failing = 0; failing < size; ++failing) {
      std::atomic<int> failed = 0;
      EXPECT_TRUE(run_together(size, {failing, step},
                               [&](ThreadExchange& exchange) {
                                 All all(exchange);
                                 Window window;
                                 Member me = this_member(options);
                                 me.bytes = region_bytes;
                                 const Agreed made = make(all, options, {}, me, window);
                                 if (!made.ok()) ++failed;
                                 EXPECT_FALSE(made.status().message().empty());
                               }))
          << "step " << step << ", process " << failing;
      EXPECT_EQ(failed, size) << "step " << step << ", process " << failing;
      EXPECT_EQ(mappings(), 0u) << "step " << step << ", process " << failing;
    }
}

TEST(SharedMemory, TooLargeIsNoMemoryEverywhere) {
  const Options options = on("coherent");
  EXPECT_TRUE(run_together(size, {}, [&](ThreadExchange& exchange) {
    All all(exchange);
    Window window;
    Member me = this_member(options);
    me.bytes = ~std::uint64_t{0};
    const Agreed made = make(all, options, {}, me, window);
    EXPECT_EQ(made.status().code(), Code::no_memory) << made.status().message();
    EXPECT_FALSE(window.memory->made());
  }));
}

TEST(SharedMemory, OfAPoolThatIsNotThereIsRefusedEverywhere) {
  Options options = on("flushed");
  options.pool = "/nowhere/pool";
  EXPECT_TRUE(run_together(size, {}, [&](ThreadExchange& exchange) {
    All all(exchange);
    Window window;
    Member me = this_member(options);
    me.bytes = 8;
    const Agreed made = make(all, options, {}, me, window);
    EXPECT_FALSE(made.ok());
    EXPECT_NE(made.status().message().find("/nowhere/pool"), std::string::npos);
  }));
}

// ---- Decisions from the members --------------------------------------------------------------

std::vector<Member> members_on(std::string_view machine, std::size_t n = 2) {
  return std::vector<Member>(n, this_member(on(machine)));
}

TEST(SharedMemory, IsRefusedToProcessesOnSeveralHostsWithoutAPool) {
  auto members = members_on("flushed");
  EXPECT_EQ(SharedMemory({}, 0, members).refusal(), "");
  members[1].host += 1;
  EXPECT_EQ(SharedMemory({}, 0, members).refusal(), "processes on several hosts without a pool");
  members[0].pooled = true;
  EXPECT_NE(SharedMemory({}, 0, members).refusal(), "") << "all must have one";
  members[1].pooled = true;
  const SharedMemory pooled({}, 0, members);
  EXPECT_EQ(pooled.refusal(), "");
  EXPECT_TRUE(pooled.several_hosts());
  EXPECT_FALSE(pooled.machine().native_atomics) << "not unless asked for";
  members[0].atomics_asked = true;
  EXPECT_TRUE(SharedMemory({}, 0, members).machine().native_atomics);
  EXPECT_EQ(SharedMemory({.regions = Regions::programs}, 0, members).refusal(),
            "memory of the program on several hosts");
}

TEST(SharedMemory, IsRefusedToThreadsWhereAtomicsServeOne) {
  auto members = members_on("flushed");
  members[1].threads = true;
  EXPECT_EQ(SharedMemory({}, 0, members).refusal(), "");
  members[0].native_atomics = false;
  EXPECT_EQ(SharedMemory({}, 0, members).refusal(),
            "atomics built from loads and stores serve one thread only");
  members[1].threads = false;
  EXPECT_EQ(SharedMemory({}, 0, members).refusal(), "");
}

TEST(SharedMemory, IsOnTheMachineOfTheFirstMember) {
  auto members = members_on("stale");
  members[1].machine = *machine_named("coherent");
  const SharedMemory memory({}, 1, members);
  EXPECT_EQ(memory.machine().id, *machine_named("stale"));
  EXPECT_TRUE(memory.served_machine().traits().keeps_views_apart);
}

TEST(Member, IsPooledOnlyWhereTheMachineTakesPoolsAndHostsCanMapThem) {
  const std::string file = ::testing::TempDir() + "/tombolo_member_pool";
  std::ofstream(file) << "x";
  Options options = on("flushed");
  options.pool = file;
  EXPECT_TRUE(this_member(options).pooled);
  options.pool = ::testing::TempDir();
  EXPECT_FALSE(this_member(options).pooled) << "a directory is one host's";
  options.pool = "/nowhere";
  EXPECT_FALSE(this_member(options).pooled);
  options = on("coherent");
  options.pool = file;
  EXPECT_FALSE(this_member(options).pooled);
  std::remove(file.c_str());
}

// A page-aligned range of private memory for a window over the program's memory.
class Memory {
 public:
  Memory() : at_(static_cast<std::byte*>(std::aligned_alloc(host::page_bytes(), bytes))) {
    std::memset(at_, 1, bytes);
  }
  ~Memory() { std::free(at_); }
  std::byte* at() const { return at_; }
  static constexpr std::size_t bytes = 3 << 12;

 private:
  std::byte* at_;
};

TEST_P(SharedMemoryOn, TakesMemoryOfTheProgram) {
  const Options options = on(GetParam());
  std::array<Memory, size> memories;
  EXPECT_TRUE(run_together(size, {}, [&](ThreadExchange& exchange) {
    All all(exchange);
    Window window;
    Member me = this_member(options);
    me.bytes = Memory::bytes;
    me.address =
        reinterpret_cast<std::uint64_t>(memories[static_cast<std::size_t>(exchange.rank())].at());
    me.remap = false;  // the threads share one address space
    const SharedMemory::Request request{.regions = Regions::programs};
    ASSERT_TRUE(make(all, options, request, me, window).ok());
    EXPECT_TRUE(window.memory->reachable(all));
    windows::Engine& engine = *window.engine;
    const auto right = static_cast<machine::Home>((exchange.rank() + 1) % size);
    const int mine = 100 + exchange.rank();
    int first = 0;
    ASSERT_TRUE(engine.fence({}).ok());
    ASSERT_TRUE(engine.get(right, 4, &first, sizeof first).ok());
    ASSERT_TRUE(engine.put(right, 8, &mine, sizeof mine).ok());
    ASSERT_TRUE(engine.fence({}).ok());
    EXPECT_EQ(first, 0x01010101);
    const auto& own = memories[static_cast<std::size_t>(exchange.rank())];
    int found = 0;
    std::memcpy(&found, own.at() + 8, sizeof found);
    EXPECT_EQ(found, 100 + (exchange.rank() + size - 1) % size);
    engine.close();
    all.all(true);
  }));
}

TEST(SharedMemory, AProcessIsReachedAsLongAsItIsThere) {
  Member member = this_member(on("coherent"));
  EXPECT_TRUE(reach(member).ok());
  const pid_t child = fork();
  if (child == 0)
    while (true) pause();
  member.process.pid = child;
  EXPECT_TRUE(reach(member).ok());
  const std::uint64_t another = 5;
  Member other = member;
  other.probe = reinterpret_cast<std::uint64_t>(&another);
  EXPECT_EQ(reach(other).code(), Code::io) << "not the process that was meant";
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(reach(member).code(), Code::process_failed);
}

}  // namespace
}  // namespace tombolo::runtime
