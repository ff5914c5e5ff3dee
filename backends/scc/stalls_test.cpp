// SPDX-License-Identifier: Apache-2.0
// The parameter stalls_behind_write: which accesses wait until the write that is under way is done,
// and for how long, to the tick.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "backends/scc/cpu.h"

namespace tombolo::scc {
namespace {

using enum MemoryType;

Parameters chip_named(const std::string& name, bool stalls) {
  Parameters parameters{};
  const Status status = find_parameters(name, &parameters);
  EXPECT_TRUE(status.ok()) << status.message();
  parameters.core.stalls_behind_write = stalls;
  return parameters;
}

using Program = std::function<void(Chip&, Cpu&)>;

// Runs it on core 0, alone.
void alone(const Parameters& parameters, const Program& program) {
  Chip chip(parameters);
  chip.start(CoreId(0), [&](Cpu& cpu) { program(chip, cpu); });
  const simulator::RunResult result = chip.run();
  EXPECT_TRUE(result.status.ok()) << result.status.message();
}

// Nothing is under way then, and each device is idle.
void settle(Cpu& cpu) {
  cpu.wait_for_writes();
  cpu.compute_cycles(1000);
}

template <class Body>
Duration time_of(Cpu& cpu, Body&& body) {
  const Time begin = cpu.now();
  body();
  return cpu.now() - begin;
}

// A store to memory of the nearest controller, which no cache holds.
void post(Chip& chip, Cpu& cpu) { cpu.store<std::uint32_t>({chip.shared(0), ncm}, 1); }

// An access, and the program that makes the caches ready for it.
struct Access {
  std::string name;
  Program prepare;
  Program access;
};

struct Measured {
  Duration write;   // a store until it is done
  Duration access;  // nothing under way
  Duration both;    // the access behind the store, from the store on
};

Measured measure(
    const Parameters& parameters, const Access& of,
    const Program& write = [](Chip& chip, Cpu& cpu) { post(chip, cpu); }) {
  Measured found;
  alone(parameters, [&](Chip& chip, Cpu& cpu) {
    settle(cpu);
    found.write = time_of(cpu, [&] {
      write(chip, cpu);
      cpu.wait_for_writes();
    });
    of.prepare(chip, cpu);
    settle(cpu);
    found.access = time_of(cpu, [&] { of.access(chip, cpu); });
    of.prepare(chip, cpu);
    settle(cpu);
    found.both = time_of(cpu, [&] {
      write(chip, cpu);
      of.access(chip, cpu);
    });
  });
  return found;
}

void nothing(Chip&, Cpu&) {}

View cached(std::uint64_t offset = 0) { return {Address(offset), dcm}; }

void load(Cpu& cpu, View from) { cpu.load<std::uint32_t>(from); }

// In L2, and no longer in L1.
Access load_from_l2() {
  return {"a load that hits L2",
          [](Chip&, Cpu& cpu) {
            load(cpu, cached());
            cpu.wbinvd();
          },
          [](Chip&, Cpu& cpu) { load(cpu, cached()); }};
}

Access store_to_l2() {
  Access access = load_from_l2();
  access.name = "a store that hits L2";
  access.access = [](Chip&, Cpu& cpu) { cpu.store<std::uint32_t>(cached(), 1); };
  return access;
}

// Each time another line, that no cache has seen.
Access load_from_memory() {
  return {"a load that misses both caches", nothing,
          [next = std::uint64_t{1} << 20](Chip&, Cpu& cpu) mutable {
            load(cpu, cached(next += 4096));
          }};
}

Access load_around_the_caches() {
  return {"a load of memory that is not cached", nothing, [](Chip& chip, Cpu& cpu) {
            load(cpu, {chip.shared(1), ncm});
          }};
}

Access load_from_a_buffer() {
  return {"a load from a message passing buffer", [](Chip&, Cpu& cpu) { cpu.cl1invmb(); },
          [](Chip& chip, Cpu& cpu) {
            load(cpu, {chip.mpb(CoreId(9)), mpbt_wb});
          }};
}

Access read_of_a_register() {
  return {"a read of a register", nothing, [](Chip&, Cpu& cpu) { cpu.test_and_set(CoreId(9)); }};
}

std::vector<Access> loads_that_leave() {
  return {load_from_memory(), load_around_the_caches(), load_from_a_buffer(), read_of_a_register()};
}

// The instruction itself, a cycle, passes meanwhile.
TEST(Stalls, AnAccessBeyondL1BeginsWhenTheWriteIsDone) {
  const Parameters parameters = chip_named("scc", true);
  const Timing timing(parameters);
  std::vector<Access> all = loads_that_leave();
  all.push_back(load_from_l2());
  all.push_back(store_to_l2());
  for (const Access& access : all) {
    const Measured m = measure(parameters, access);
    EXPECT_EQ(m.both, m.write + m.access - timing.load) << access.name;
  }
}

TEST(Stalls, WithoutItL2AnswersMeanwhile) {
  const Parameters parameters = chip_named("scc", false);
  const Timing timing(parameters);
  for (const Access& access : {load_from_l2(), store_to_l2()}) {
    const Measured m = measure(parameters, access);
    EXPECT_GT(m.write, m.access * 2) << access.name;
    EXPECT_EQ(m.both, timing.store + m.access) << access.name;
  }
}

// Caches are looked into while the write is under way; the request leaves when it is done.
TEST(Stalls, WithoutItCachesAreLookedIntoMeanwhile) {
  const Parameters parameters = chip_named("scc", false);
  const Timing timing(parameters);
  for (const Access& access : loads_that_leave()) {
    const Measured m = measure(parameters, access);
    EXPECT_EQ(m.both, m.write + m.access - timing.load - timing.miss - timing.l2) << access.name;
  }
}

// L1, and work.
TEST(Stalls, L1AnswersMeanwhile) {
  const Access in_l1 = {"loads and stores that hit L1",
                        [](Chip&, Cpu& cpu) { load(cpu, cached()); },
                        [](Chip&, Cpu& cpu) {
                          load(cpu, cached());
                          cpu.store<std::uint32_t>(cached(4), 1);
                          cpu.compute_cycles(5);
                          cpu.cl1invmb();
                        }};
  const Parameters parameters = chip_named("scc", true);
  const Measured m = measure(parameters, in_l1);
  EXPECT_GT(m.write, m.access * 2);
  EXPECT_EQ(m.both, Timing(parameters).store + m.access);
}

TEST(Stalls, AStoreThatLeavesWaitsAsWithoutIt) {
  const Access around = {"a store around the caches", nothing, [](Chip& chip, Cpu& cpu) {
                           cpu.store<std::uint32_t>({chip.shared(1), ncm}, 1);
                           cpu.wait_for_writes();
                         }};
  const Access missing = {"a store that misses both caches", nothing, [](Chip&, Cpu& cpu) {
                            cpu.store<std::uint32_t>(cached(1 << 20), 1);
                            cpu.wait_for_writes();
                          }};
  const Access combined = {"a store that is combined", nothing, [](Chip& chip, Cpu& cpu) {
                             cpu.store<std::uint32_t>({chip.shared(1), mpbt_wb}, 1);
                           }};
  for (const Access& access : {around, missing, combined})
    EXPECT_EQ(measure(chip_named("scc", true), access).both,
              measure(chip_named("scc", false), access).both)
        << access.name;
}

// A line that leaves the combining buffer, and a change of a register, are writes as others.
TEST(Stalls, AnyWriteOfTheCoreHoldsL2Up) {
  const Program line = [](Chip& chip, Cpu& cpu) {
    const std::byte bytes[32] = {};
    cpu.write({chip.shared(0), mpbt_wb}, bytes, sizeof bytes);
  };
  const Program clear = [](Chip&, Cpu& cpu) { cpu.clear(CoreId(9)); };
  const Program miss = [](Chip&, Cpu& cpu) { cpu.store<std::uint32_t>(cached(1 << 20), 1); };
  const Parameters parameters = chip_named("scc", true);
  for (const Program& write : {line, clear, miss}) {
    const Measured m = measure(parameters, load_from_l2(), write);
    EXPECT_EQ(m.both, m.write + m.access - Timing(parameters).load);
  }
}

// The load returns when its line is there, and the line of L1 that made room for it is in L2, for
// which it waits until that of L2 is in memory.
TEST(Stalls, ALineThatLeavesL1WaitsForTheOneThatLeavesL2) {
  constexpr std::uint64_t l1_way = 4096;
  constexpr std::uint64_t l2_way = 65536;
  const auto store_to = [](Cpu& cpu, std::uint64_t at) {
    load(cpu, cached(at));
    cpu.store<std::uint32_t>(cached(at), 1);
  };
  const Access evicts = {"a load that makes changed lines leave both caches",
                         [&](Chip&, Cpu& cpu) {
                           for (std::uint64_t n = 0; n < 4; ++n) store_to(cpu, n * l2_way);
                           cpu.wbinvd();  // changed in L2, not in L1
                           for (std::uint64_t n = 1; n <= 4; ++n) store_to(cpu, n * l1_way);
                         },
                         [](Chip&, Cpu& cpu) { load(cpu, cached(8 * l2_way)); }};
  const auto access = [&](bool stalls) {
    Duration took;
    alone(chip_named("scc", stalls), [&](Chip& chip, Cpu& cpu) {
      evicts.prepare(chip, cpu);
      settle(cpu);
      const std::uint64_t written = cpu.counters().requests_written;
      took = time_of(cpu, [&] { evicts.access(chip, cpu); });
      ASSERT_EQ(cpu.counters().requests_written, written + 1);
    });
    return took;
  };
  const Parameters parameters = chip_named("scc", true);
  const Duration write = measure(parameters, load_from_l2(), [](Chip&, Cpu& cpu) {
                           cpu.store<std::uint32_t>(cached(1 << 20), 1);
                         }).write;
  EXPECT_EQ(access(true), access(false) + write - Timing(parameters).store);
}

TEST(Stalls, TheCopyEngineHoldsTheCoreUpInNothing) {
  const Program copy = [](Chip& chip, Cpu& cpu) {
    cpu.copy_by_engine({chip.shared(0), ncm}, {chip.shared(1), ncm}, 4096);
  };
  const Access access = load_from_l2();
  const auto behind = [&](bool stalls) {
    return measure(chip_named("scc-copy-engine", stalls), access, copy).both;
  };
  EXPECT_EQ(behind(true), behind(false));
}

// Runs `access` of a line that is in L2, while a write is under way, until the time that it gets,
// and another core takes the line away. Memory has 4 there.
void access_while_invalidated(const std::function<void(Chip&, Cpu&, View, Time)>& access) {
  Chip chip(chip_named("scc-remote-invalidation", true));
  const View line = {chip.shared(0), dcm};
  const Time begin = Time::after_start(chip.timing().core.cycles(100'000));
  Duration write;
  Time invalidated;
  chip.start(CoreId(0), [&](Cpu& cpu) {
    const auto post_far = [&] { cpu.store<std::uint32_t>({chip.shared(3), ncm}, 1); };
    write = time_of(cpu, [&] {
      post_far();
      cpu.wait_for_writes();
    });
    EXPECT_EQ(cpu.load<std::uint32_t>(line), 0u);
    cpu.wbinvd();
    cpu.compute(begin - cpu.now());
    post_far();
    access(chip, cpu, line, begin + write);
  });
  chip.start(CoreId(1), [&](Cpu& cpu) {
    cpu.compute_cycles(50'000);
    cpu.store<std::uint32_t>({line.first, ncm}, 4);
    cpu.wait_for_writes();
    cpu.compute(begin - cpu.now());
    cpu.compute_cycles(5);  // after the store
    cpu.invalidate_at(CoreId(0), line.first, 4);
    cpu.wait_for_writes();
    invalidated = cpu.now();
  });
  EXPECT_TRUE(chip.run().status.ok());
  EXPECT_LT(invalidated, begin + write);
}

// L2 is looked into after the wait.
TEST(Stalls, ALoadMissesALineThatWasInvalidatedWhileItWaited) {
  access_while_invalidated(
      [](Chip&, Cpu& cpu, View line, Time) { EXPECT_EQ(cpu.load<std::uint32_t>(line), 4u); });
}

TEST(Stalls, AStoreMissesALineThatWasInvalidatedWhileItWaited) {
  access_while_invalidated([](Chip& chip, Cpu& cpu, View line, Time done) {
    cpu.store<std::uint32_t>(line, 7);
    EXPECT_EQ(cpu.now(), done);  // its instruction has been counted before the wait
    cpu.wait_for_writes();
    cpu.fibre().await_turn();
    EXPECT_FALSE(cpu.in_l2(line.first));
    std::uint32_t value = 0;
    chip.peek(CoreId(0), line.first, &value, sizeof value);
    EXPECT_EQ(value, 7u);
  });
}

TEST(Stalls, AnInvalidationReachesL2) {
  const Access access = {"an invalidation", nothing,
                         [](Chip&, Cpu& cpu) { cpu.invalidate(cached(), 32); }};
  for (const bool stalls : {true, false}) {
    const Parameters parameters = chip_named("scc-invalidation", stalls);
    const Timing timing(parameters);
    const Measured m = measure(parameters, access);
    EXPECT_EQ(m.access, timing.line_operation);
    EXPECT_EQ(m.both, stalls ? m.write : timing.store + m.access);
  }
}

}  // namespace
}  // namespace tombolo::scc
