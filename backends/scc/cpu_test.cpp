// SPDX-License-Identifier: Apache-2.0
// Purpose: the simulated cores' use of memory: the lines that each type caches, combines and leaves
// stale, those that each instruction drops or writes back, and the documented errata.
#include "backends/scc/cpu.h"

#include <gtest/gtest.h>

#include "backends/scc/chip.h"

namespace tombolo::scc {
namespace {

using enum MemoryType;

Parameters chip_named(const char* name) {
  Parameters parameters{};
  const Status status = find_parameters(name, &parameters);
  EXPECT_TRUE(status.ok()) << status.message();
  return parameters;
}

class CpuTest : public ::testing::Test {
 protected:
  // A shared word that two cores see at the same physical address.
  Address shared(Chip& chip, std::uint64_t offset = 0) { return chip.shared(0) + offset; }

  // Runs `program` on core 0 alone.
  template <class Program>
  void alone(const Parameters& parameters, Program&& program) {
    Chip chip(parameters);
    chip.start(CoreId(0), [&](Cpu& cpu) { program(chip, cpu); });
    const simulator::RunResult result = chip.run();
    EXPECT_TRUE(result.status.ok()) << result.status.message();
  }
  static std::uint32_t memory(Chip& chip, Address at) {
    std::uint32_t value = 0;
    chip.peek(CoreId(0), at, &value, sizeof value);
    return value;
  }
  static void set_memory(Chip& chip, Address at, std::uint32_t value) {
    chip.poke(CoreId(0), at, &value, sizeof value);
  }

  simulator::Duration scc_cycles(std::int64_t n) const { return Timing(scc_).core.cycles(n); }

  const Parameters scc_ = chip_named("scc");
  const Parameters repaired_ = chip_named("scc-repaired");
};

// A line that was read stays as it was; uncached reads see memory.
TEST_F(CpuTest, CachedReadsGoStale) {
  for (const MemoryType type : {dcm, mpbt_wb, ncm}) {
    alone(scc_, [&](Chip& chip, Cpu& cpu) {
      const View view{shared(chip), type};
      set_memory(chip, view.first, 1);
      EXPECT_EQ(cpu.load<std::uint32_t>(view), 1u);
      set_memory(chip, view.first, 2);
      EXPECT_EQ(cpu.load<std::uint32_t>(view), type == ncm ? 2u : 1u) << name_of(type);
      EXPECT_EQ(cpu.in_l1(view.first), type != ncm);
      EXPECT_EQ(cpu.in_l2(view.first), type == dcm);
    });
  }
}

TEST_F(CpuTest, WriteThroughReadsAreUncachedByTheErratum) {
  for (const bool erratum : {true, false}) {
    alone(erratum ? scc_ : repaired_, [&](Chip& chip, Cpu& cpu) {
      const View view{shared(chip), mpbt_wt};
      cpu.load<std::uint32_t>(view);
      set_memory(chip, view.first, 2);
      EXPECT_EQ(cpu.load<std::uint32_t>(view), erratum ? 2u : 0u);
      EXPECT_EQ(cpu.in_l1(view.first), !erratum);
    });
  }
}

// 002 section 4.3.1.
TEST_F(CpuTest, UncachedReadsOfMpbtPagesReturnTheFirstWordByTheErratum) {
  for (const bool erratum : {true, false}) {
    alone(erratum ? scc_ : repaired_, [&](Chip& chip, Cpu& cpu) {
      for (std::uint32_t word = 0; word < 8; ++word)
        set_memory(chip, shared(chip, word * 4), 100 + word);
      const View view{shared(chip), ncm_wcb};
      EXPECT_EQ(cpu.load<std::uint32_t>(view + 4), 101u);
      EXPECT_EQ(cpu.load<std::uint32_t>(view + 20), erratum ? 101u : 105u);
    });
  }
}

// No allocation on a write miss; a hit stays in the cache.
TEST_F(CpuTest, WritesMissAroundTheCachesAndHitInThem) {
  alone(scc_, [&](Chip& chip, Cpu& cpu) {
    const View view{shared(chip), dcm};
    cpu.store<std::uint32_t>(view, 1);
    cpu.wait_for_writes();
    cpu.fibre().await_turn();
    EXPECT_FALSE(cpu.in_l1(view.first));
    EXPECT_EQ(memory(chip, view.first), 1u);
    cpu.load<std::uint32_t>(view);
    cpu.store<std::uint32_t>(view, 2);
    cpu.wait_for_writes();
    cpu.fibre().await_turn();
    EXPECT_EQ(memory(chip, view.first), 1u);
    EXPECT_EQ(cpu.load<std::uint32_t>(view), 2u);
  });
}

// A store in the combining buffer is in memory only when the buffer is full, taken by another line,
// or emptied.
TEST_F(CpuTest, TheCombiningBufferHoldsStoresBack) {
  alone(scc_, [&](Chip& chip, Cpu& cpu) {
    const View view{shared(chip), mpbt_wb};
    const auto settled = [&] {
      cpu.wait_for_writes();
      cpu.fibre().await_turn();
    };
    cpu.store<std::uint32_t>(view + 4, 1);
    settled();
    EXPECT_EQ(memory(chip, view.first + 4), 0u);
    cpu.store<std::uint32_t>(view + 64, 2);  // another line
    settled();
    EXPECT_EQ(memory(chip, view.first + 4), 1u);
    EXPECT_EQ(memory(chip, view.first + 64), 0u);
    cpu.flush_combined();
    settled();
    EXPECT_EQ(memory(chip, view.first + 64), 2u);
    for (std::uint32_t word = 0; word < 8; ++word)
      cpu.store<std::uint32_t>(view + 128 + word * 4, word);
    settled();
    EXPECT_EQ(memory(chip, view.first + 156), 7u);
  });
}

// CU4: one's own order holds across the buffer.
TEST_F(CpuTest, ALoadSeesOnesOwnCombinedStore) {
  for (const MemoryType type : {mpbt_wb, mpbt_wt}) {
    alone(scc_, [&](Chip& chip, Cpu& cpu) {
      const View view{shared(chip), type};
      cpu.store<std::uint32_t>(view, 5);
      EXPECT_EQ(cpu.load<std::uint32_t>(view), 5u) << name_of(type);
    });
  }
}

TEST_F(CpuTest, TheBufferWritesNoByteThatWasNotStored) {
  alone(scc_, [&](Chip& chip, Cpu& cpu) {
    for (std::uint32_t word = 0; word < 8; ++word) set_memory(chip, shared(chip, word * 4), ~0u);
    cpu.store<std::uint8_t>({shared(chip, 5), mpbt_wb}, 0);
    cpu.flush_combined();
    cpu.wait_for_writes();
    cpu.fibre().await_turn();
    EXPECT_EQ(memory(chip, shared(chip)), ~0u);
    EXPECT_EQ(memory(chip, shared(chip, 4)), 0xffff00ffu);
    EXPECT_EQ(memory(chip, shared(chip, 8)), ~0u);
  });
}

// CL1INVMB takes MPBT lines alone, and stores that hit them are lost.
TEST_F(CpuTest, Cl1invmbDropsChangedMpbtLinesAlone) {
  alone(scc_, [&](Chip& chip, Cpu& cpu) {
    const View message{shared(chip), mpbt_wb};
    const View normal{shared(chip, 4096), dcm};
    cpu.load<std::uint32_t>(message);
    cpu.load<std::uint32_t>(normal);
    cpu.store<std::uint32_t>(message, 1);
    cpu.store<std::uint32_t>(normal, 2);
    cpu.cl1invmb();
    EXPECT_FALSE(cpu.in_l1(message.first));
    EXPECT_TRUE(cpu.in_l1(normal.first));
    EXPECT_EQ(cpu.load<std::uint32_t>(message), 0u);
    EXPECT_EQ(cpu.load<std::uint32_t>(normal), 2u);
  });
}

// WBINVD and INVD: L1 alone; the line in L2 keeps the bytes that WBINVD wrote back, memory does not
// get it.
TEST_F(CpuTest, WbinvdWritesIntoL2AndInvdDrops) {
  for (const bool writes_back : {true, false}) {
    alone(scc_, [&](Chip& chip, Cpu& cpu) {
      const View view{shared(chip), dcm};
      cpu.load<std::uint32_t>(view);
      cpu.store<std::uint32_t>(view, 3);
      writes_back ? cpu.wbinvd() : cpu.invd();
      cpu.fibre().await_turn();
      EXPECT_FALSE(cpu.in_l1(view.first));
      EXPECT_TRUE(cpu.in_l2(view.first));
      EXPECT_EQ(memory(chip, view.first), 0u);
      EXPECT_EQ(cpu.load<std::uint32_t>(view), writes_back ? 3u : 0u);
    });
  }
}

// 002 section 2.3.4: with two blocks in turn, every line leaves L2 each time.
TEST_F(CpuTest, TheKernelsFlushEmptiesL2EveryTime) {
  alone(scc_, [&](Chip& chip, Cpu& cpu) {
    const View view{shared(chip), dcm};
    for (std::uint32_t round = 1; round <= 4; ++round) {
      for (std::uint64_t at = 0; at < 300'000; at += 32)
        cpu.store<std::uint32_t>(view + at, round + cpu.load<std::uint32_t>(view + at) * 0);
      cpu.wbinvd();
      cpu.flush_l2();
      cpu.fibre().await_turn();
      for (std::uint64_t at = 0; at < 300'000; at += 32) {
        ASSERT_FALSE(cpu.in_l2(view.first + at)) << at;
        ASSERT_EQ(memory(chip, view.first + at), round) << at;
      }
    }
  });
}

// A set that is half empty is emptied as well.
TEST_F(CpuTest, TheKernelsFlushEmptiesSetsThatHaveRoom) {
  for (std::uint64_t lines = 1; lines <= 4; ++lines) {
    alone(scc_, [&](Chip& chip, Cpu& cpu) {
      const View view{shared(chip), dcm};
      const std::uint64_t same_set = static_cast<std::uint64_t>(scc_.caches.l2_bytes / 4);
      for (std::uint64_t n = 0; n < lines; ++n) cpu.load<std::uint32_t>(view + n * same_set);
      cpu.store<std::uint32_t>(view, 7);
      cpu.wbinvd();
      cpu.flush_l2();
      cpu.fibre().await_turn();
      EXPECT_EQ(memory(chip, view.first), 7u) << lines << " lines in the set";
      for (std::uint64_t n = 0; n < lines; ++n)
        EXPECT_FALSE(cpu.in_l2(view.first + n * same_set)) << n << " of " << lines;
    });
  }
}

TEST_F(CpuTest, InvalidationKeepsStoresToTheRestOfALine) {
  Parameters chip_with_it = chip_named("scc-invalidation");
  alone(chip_with_it, [&](Chip& chip, Cpu& cpu) {
    const View view{shared(chip), dcm};
    cpu.load<std::uint32_t>(view);
    cpu.store<std::uint32_t>(view, 9);
    cpu.invalidate(view + 8, 4);
    cpu.fibre().await_turn();
    EXPECT_EQ(cpu.load<std::uint32_t>(view), 9u);
  });
}

TEST_F(CpuTest, TheCopyEngineOverwritesWhatTheCoreStoredBefore) {
  alone(chip_named("scc-copy-engine"), [&](Chip& chip, Cpu& cpu) {
    const View from{Address(4096), dcm};
    const View to{shared(chip, 8192), mpbt_wb};
    for (std::uint32_t at = 0; at < 512; at += 4) cpu.store<std::uint32_t>(from + at, 5);
    cpu.load<std::uint32_t>(to);
    cpu.store<std::uint32_t>(to, 1);       // in L1
    cpu.store<std::uint32_t>(to + 64, 1);  // in the combining buffer
    cpu.copy_by_engine(from, to, 512);
    cpu.flush_combined();
    cpu.wait_for_writes();
    EXPECT_EQ(cpu.load<std::uint32_t>(to), 5u);
    EXPECT_EQ(cpu.load<std::uint32_t>(to + 64), 5u);
  });
}

// 000 section 2.2.2: caches hold physical addresses, so a line that is read before an entry changes
// is read after it as well, and a changed line is written to the new place.
TEST_F(CpuTest, LinesSurviveARemap) {
  alone(scc_, [&](Chip& chip, Cpu& cpu) {
    const std::uint32_t entry = chip.first_free_entry();
    const auto map = [&](CoreId owner) {
      cpu.set_lut(CoreId(0), entry, chip.public_page(owner, 0));
      cpu.wait_for_writes();
    };
    const View window{chip.page(entry), dcm};
    map(CoreId(1));
    std::uint32_t one = 1, two = 2;
    chip.poke(CoreId(1), chip.public_memory(), &one, 4);
    chip.poke(CoreId(2), chip.public_memory(), &two, 4);
    EXPECT_EQ(cpu.load<std::uint32_t>(window), 1u);
    map(CoreId(2));
    EXPECT_EQ(cpu.load<std::uint32_t>(window), 1u);  // stale
    cpu.store<std::uint32_t>(window, 7);
    cpu.wbinvd();
    cpu.flush_l2();
    cpu.fibre().await_turn();
    chip.peek(CoreId(1), chip.public_memory(), &one, 4);
    chip.peek(CoreId(2), chip.public_memory(), &two, 4);
    EXPECT_EQ(one, 1u);
    EXPECT_EQ(two, 7u);
  });
}

TEST_F(CpuTest, AMessageBufferWrapsAround) {
  alone(scc_, [&](Chip& chip, Cpu& cpu) {
    const View buffer{chip.page(static_cast<std::uint32_t>(scc_.layout.mpb_lut_entry) + 3), ncm};
    cpu.store<std::uint32_t>(buffer + 16, 42);
    EXPECT_EQ(cpu.load<std::uint32_t>(buffer + (16 + 16384)), 42u);
    EXPECT_EQ(cpu.load<std::uint32_t>(buffer + (16 + 5 * 16384)), 42u);
    EXPECT_EQ(chip.mpb(CoreId(7)).byte(), buffer.first.byte() + 8192);  // the tile's second core
  });
}

TEST_F(CpuTest, ATestAndSetRegisterHasOneHolder) {
  Chip chip(scc_);
  int inside = 0;
  int entries = 0;
  for (std::uint32_t core = 0; core < 48; ++core) {
    chip.start(CoreId(core), [&](Cpu& cpu) {
      for (int i = 0; i < 10; ++i) {
        while (!cpu.test_and_set(CoreId(5))) {
        }
        EXPECT_EQ(++inside, 1);
        cpu.compute_cycles(50);
        cpu.fibre().await_turn();
        --inside;
        ++entries;
        cpu.clear(CoreId(5));
      }
    });
  }
  const simulator::RunResult result = chip.run();
  EXPECT_TRUE(result.status.ok()) << result.status.message();
  EXPECT_EQ(entries, 480);
}

// One write outstanding: the second waits for the first, a load as well, work does not.
TEST_F(CpuTest, OneWriteIsOutstanding) {
  alone(scc_, [&](Chip& chip, Cpu& cpu) {
    const View view{shared(chip), ncm};
    const auto cycles = [&](auto&& what) {
      const Time begin = cpu.now();
      what();
      return static_cast<double>((cpu.now() - begin).in_ticks()) /
             static_cast<double>(chip.timing().core.period().in_ticks());
    };
    cpu.load<std::uint32_t>(view);
    EXPECT_LT(cycles([&] { cpu.store<std::uint32_t>(view, 1); }), 5);
    EXPECT_GT(cycles([&] { cpu.store<std::uint32_t>(view, 1); }), 80);
    cpu.compute_cycles(500);
    EXPECT_LT(cycles([&] { cpu.store<std::uint32_t>(view, 1); }), 5);
    EXPECT_GT(cycles([&] { cpu.load<std::uint32_t>(view); }), 150);
  });
}

// Controllers queue: many cores read more slowly than one.
TEST_F(CpuTest, AControllerServesOneAtATime) {
  const auto slowest = [&](std::uint32_t cores) {
    Chip chip(scc_);
    for (std::uint32_t core = 0; core < cores; ++core)
      chip.start(CoreId(core), [&](Cpu& cpu) {
        for (int i = 0; i < 200; ++i) cpu.load<std::uint32_t>({shared(chip, i * 64), ncm});
      });
    return chip.run().end.since_start().in_nanoseconds();
  };
  EXPECT_GT(slowest(48), 2.5 * slowest(1));
}

TEST_F(CpuTest, SelectiveOperationsTouchTheirRangeAlone) {
  Parameters chip_with_both = chip_named("scc-write-back");
  chip_with_both.extensions.selective_invalidation = true;
  alone(chip_with_both, [&](Chip& chip, Cpu& cpu) {
    const View view{shared(chip), dcm};
    for (const std::uint64_t at : {0, 32, 64}) {
      cpu.load<std::uint32_t>(view + at);
      cpu.store<std::uint32_t>(view + at, 9);
    }
    cpu.write_back(view + 32, 4);
    cpu.fibre().await_turn();
    EXPECT_EQ(memory(chip, view.first), 0u);
    EXPECT_EQ(memory(chip, view.first + 32), 9u);
    EXPECT_EQ(memory(chip, view.first + 64), 0u);
    cpu.invalidate(view + 64, 32);
    EXPECT_EQ(cpu.load<std::uint32_t>(view), 9u);
    EXPECT_EQ(cpu.load<std::uint32_t>(view + 64), 0u);
  });
}

TEST_F(CpuTest, RemoteInvalidationTakesLinesFromAnotherCore) {
  Chip chip(chip_named("scc-remote-invalidation"));
  const View view{shared(chip), mpbt_wb};
  chip.start(CoreId(0), [&](Cpu& cpu) {
    EXPECT_EQ(cpu.load<std::uint32_t>(view), 0u);
    cpu.compute_cycles(10'000);
    EXPECT_EQ(cpu.load<std::uint32_t>(view), 4u);
  });
  chip.start(CoreId(20), [&](Cpu& cpu) {
    cpu.compute_cycles(2000);
    cpu.store<std::uint32_t>(view, 4);
    cpu.flush_combined();
    cpu.wait_for_writes();
    cpu.invalidate_at(CoreId(0), view.first, 4);
  });
  EXPECT_TRUE(chip.run().status.ok());
}

TEST_F(CpuTest, TheCopyEngineMovesBytesWhileTheCoreGoesOn) {
  alone(chip_named("scc-copy-engine"), [&](Chip& chip, Cpu& cpu) {
    const View from{Address(4096), dcm};
    const View to{shared(chip, 8192), ncm};
    for (std::uint32_t at = 0; at < 4096; at += 4) cpu.store<std::uint32_t>(from + at, at);
    const Time begin = cpu.now();
    cpu.copy_by_engine(from, to, 4096);
    const Time free = cpu.now();
    cpu.wait_for_writes();
    const Time done = cpu.now();
    EXPECT_GT((done - free).in_ticks(), 10 * (free - begin).in_ticks());
    cpu.fibre().await_turn();
    for (std::uint32_t at = 0; at < 4096; at += 4) ASSERT_EQ(memory(chip, to.first + at), at);
  });
}

// It reads and writes in bursts: source and target at one controller cost no turn for each line.
TEST_F(CpuTest, TheCopyEngineTurnsNoBus) {
  const auto time_of_copy = [&](std::int64_t turn) {
    Parameters chip_with_engine = chip_named("scc-copy-engine");
    chip_with_engine.path.write_to_read_memory_cycles = turn;
    chip_with_engine.path.read_to_write_memory_cycles = turn;
    Duration took;
    alone(chip_with_engine, [&](Chip& chip, Cpu& cpu) {
      const Time begin = cpu.now();
      cpu.copy_by_engine({shared(chip, 65536), ncm}, {shared(chip, 8192), ncm}, 4096);
      cpu.wait_for_writes();
      took = cpu.now() - begin;
    });
    return took;
  };
  EXPECT_EQ(time_of_copy(0).in_ticks(), time_of_copy(40).in_ticks());
}

// Its writes are handed in between its reads and ahead of their time: reads take the gaps before.
TEST_F(CpuTest, TheCopyEngineWaitsForItsBanks) {
  Parameters slow_banks = chip_named("scc-copy-engine");
  slow_banks.path.bank_busy_memory_cycles = 100;
  alone(slow_banks, [&](Chip& chip, Cpu& cpu) {
    const Parameters::Layout& layout = slow_banks.layout;
    const auto other = static_cast<std::uint32_t>(layout.shared_lut_entry) + 1;
    const std::int64_t bank_bytes =
        (layout.controller_megabytes << 20) / layout.banks_per_controller;
    chip.set_lut(CoreId(0), other, {DeviceKind::dram, 0, static_cast<std::uint64_t>(bank_bytes)});
    const Time begin = cpu.now();
    cpu.copy_by_engine({shared(chip, 0), ncm}, {chip.shared(1), ncm}, 4096);
    cpu.wait_for_writes();
    EXPECT_GE(cpu.now() - begin, chip.timing().bank_busy * 127);
  });
}

// The same seed and parameters give the same run.
TEST_F(CpuTest, RunsAreRepeated) {
  const auto run = [&](std::uint64_t seed) {
    Chip chip(scc_, {.seed = seed});
    for (std::uint32_t core = 0; core < 8; ++core)
      chip.start(CoreId(core), [&](Cpu& cpu) {
        for (int i = 0; i < 300; ++i) {
          const View view{shared(chip, cpu.fibre().random().below(1024) * 4),
                          cpu.fibre().random().one_in(2) ? mpbt_wb : ncm};
          if (cpu.fibre().random().one_in(2))
            cpu.store<std::uint32_t>(view, i);
          else
            cpu.load<std::uint32_t>(view);
        }
      });
    return chip.run().digest;
  };
  EXPECT_EQ(run(3), run(3));
  EXPECT_NE(run(3), run(4));
}

// ---- Interrupts and lookup tables of other cores
// -------------------------------------------------

TEST_F(CpuTest, AnInterruptEndsAWait) {
  Chip chip(scc_);
  Time sent;
  chip.start(CoreId(0), [&](Cpu& cpu) {
    cpu.compute_cycles(1000);
    sent = cpu.now();
    cpu.interrupt(CoreId(9));
  });
  chip.start(CoreId(9), [&](Cpu& cpu) {
    EXPECT_FALSE(cpu.take_interrupt());
    EXPECT_FALSE(cpu.wait_for_interrupt(cpu.now() + scc_cycles(10)));
    EXPECT_TRUE(cpu.wait_for_interrupt());
    EXPECT_GT(cpu.now(), sent);
    EXPECT_FALSE(cpu.take_interrupt());
  });
  const simulator::RunResult result = chip.run();
  EXPECT_TRUE(result.status.ok()) << result.status.message();
}

TEST_F(CpuTest, AnInterruptStaysUntilItIsTaken) {
  Chip chip(scc_);
  chip.start(CoreId(0), [&](Cpu& cpu) { cpu.interrupt(CoreId(9)); });
  chip.start(CoreId(9), [&](Cpu& cpu) {
    cpu.compute_cycles(10000);
    EXPECT_TRUE(cpu.take_interrupt());
    EXPECT_FALSE(cpu.take_interrupt());
  });
  EXPECT_TRUE(chip.run().status.ok());
}

TEST_F(CpuTest, ReadsEntriesOfOtherCores) {
  Chip chip(scc_);
  const LutEntry entry{DeviceKind::dram, 2, 64 << 20};
  chip.set_lut(CoreId(9), 140, entry);
  chip.start(CoreId(0), [&](Cpu& cpu) {
    const Time begin = cpu.now();
    EXPECT_EQ(cpu.read_lut(CoreId(9), 140), entry);
    EXPECT_GT(cpu.now(), begin);
  });
  EXPECT_TRUE(chip.run().status.ok());
}

// Two fibres that share a core, one after the other: its caches stay.
TEST_F(CpuTest, AnotherFibreGoesOnWithTheSameCaches) {
  Chip chip(scc_);
  const Address word = shared(chip);
  const Address turn(chip.page(200).byte());
  bool first_done = false;
  set_memory(chip, word, 1);
  chip.start(CoreId(0), [&](Cpu& cpu) {
    EXPECT_EQ(cpu.load<std::uint32_t>({word, dcm}), 1u);
    cpu.fibre().await_turn();
    set_memory(chip, word, 2);
    first_done = true;
    chip.simulation().wake(turn);
  });
  chip.simulation().spawn("second", [&](simulator::Core& fibre) {
    fibre.wait_until(turn, "the core", [&] { return first_done; });
    Cpu& cpu = chip.cpu(CoreId(0));
    cpu.run_on(fibre);
    EXPECT_EQ(cpu.load<std::uint32_t>({word, dcm}), 1u) << "the line was not in the cache";
  });
  EXPECT_TRUE(chip.run().status.ok());
}

}  // namespace
}  // namespace tombolo::scc
