// SPDX-License-Identifier: Apache-2.0
// The costs of the MPI library around the engine, by call, before the engine acts.
#include "experiments/common/library.h"

#include "experiments/common/measure.h"
#include "experiments/common/testing.h"

namespace tombolo::experiments {
namespace {

using simulator::Duration;

// Notes the time at which each call reaches it.
class Engine {
 public:
  explicit Engine(scc::Cpu& cpu) : cpu_(cpu) {}
  Status put(windows::Home, windows::Offset, const void*, std::size_t) { return note(); }
  Status get(windows::Home, windows::Offset, void*, std::size_t) { return note(); }
  Status fence(windows::Assertions) { return note(); }
  Status post(std::span<const windows::Home>, windows::Assertions) { return note(); }
  Status start(std::span<const windows::Home>, windows::Assertions) { return note(); }
  Status complete() { return note(); }
  Status wait() { return note(); }
  Status lock(sync::Access, windows::Home, windows::Assertions) { return note(); }
  Status unlock(windows::Home) { return note(); }
  Status lock_all(windows::Assertions) { return note(); }
  Status unlock_all() { return note(); }
  Status flush(windows::Home) { return note(); }
  Status barrier() { return note(); }
  simulator::Time called;
  int calls = 0;

 private:
  Status note() {
    called = cpu_.now();
    ++calls;
    return {};
  }
  scc::Cpu& cpu_;
};

// Runs body(library, cpu, engine) on one core.
template <class Body>
void with_library(Software software, const Body& body) {
  Rows rows;
  scc::JobShape shape;
  shape.processes = 1;
  const Status status =
      run_job(test_context(), rows, shape, [&](const scc::Attachment&, scc::Cpu& cpu) {
        Engine engine(cpu);
        LibraryOf<Engine> library(engine, cpu, software);
        body(library, cpu, engine);
      });
  EXPECT_TRUE(status.ok()) << status.message();
}

// The time of a call, all of which passes before the engine acts.
template <class Call>
Duration cost(scc::Cpu& cpu, Engine& engine, const Call& call) {
  const simulator::Time begin = cpu.now();
  const int before = engine.calls;
  call();
  EXPECT_EQ(engine.calls, before + 1);
  EXPECT_EQ(engine.called, cpu.now());
  return cpu.now() - begin;
}

TEST(Library, ChargesEachCallOnce) {
  with_library(Software::thesis, [](auto& mpi, scc::Cpu& cpu, Engine& engine) {
    const Duration call = cpu.timing().library_call;
    std::byte bytes[8] = {};
    const auto costs = [&](auto&& act) { return cost(cpu, engine, act); };
    EXPECT_EQ(costs([&] { mpi.get(0, 0, bytes, 8); }), call);
    EXPECT_EQ(costs([&] { mpi.fence(); }), call);
    EXPECT_EQ(costs([&] { mpi.complete(); }), call);
    EXPECT_EQ(costs([&] { mpi.wait(); }), call);
    EXPECT_EQ(costs([&] { mpi.lock(sync::Access::shared, 0); }), call);
    EXPECT_EQ(costs([&] { mpi.unlock(0); }), call);
    EXPECT_EQ(costs([&] { mpi.lock_all(); }), call);
    EXPECT_EQ(costs([&] { mpi.unlock_all(); }), call);
    EXPECT_EQ(costs([&] { mpi.flush(0); }), call);
    EXPECT_EQ(costs([&] { mpi.barrier(); }), Duration());
  });
}

TEST(Library, ChargesAPutByThePapersLibrary) {
  std::byte bytes[8] = {};
  for (const Software software : {Software::thesis, Software::report})
    with_library(software, [&](auto& mpi, scc::Cpu& cpu, Engine& engine) {
      const scc::Timing& timing = cpu.timing();
      const Duration put = software == Software::thesis ? timing.put_call : timing.report_put_call;
      EXPECT_EQ(cost(cpu, engine, [&] { mpi.put(0, 0, bytes, 8); }), timing.library_call + put);
    });
}

TEST(Library, ChargesTheRanksOfAGroup) {
  with_library(Software::thesis, [](auto& mpi, scc::Cpu& cpu, Engine& engine) {
    for (const std::size_t ranks : {std::size_t{0}, std::size_t{1}, std::size_t{8}}) {
      const std::vector<windows::Home> group(ranks);
      const Duration expected = cpu.timing().library_call + mpi.conversion(cpu.timing(), ranks);
      EXPECT_EQ(cost(cpu, engine, [&] { mpi.start(group); }), expected);
      EXPECT_EQ(cost(cpu, engine, [&] { mpi.post(group); }), expected);
    }
  });
}

// 000 Table 3.4, by which the two parameters were chosen: to a tenth of a microsecond.
TEST(Library, ConvertsRanksInTheThesissTime) {
  const scc::Timing timing(test_context().chip);
  EXPECT_NEAR(microseconds(Library::conversion(timing, 8)), 1.6, 0.1);
  EXPECT_NEAR(microseconds(Library::conversion(timing, 47)), 5.1, 0.1);
}

}  // namespace
}  // namespace tombolo::experiments
