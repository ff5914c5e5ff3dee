// SPDX-License-Identifier: Apache-2.0
// The kernel's rules SK1 to SK6, one by one. random_programs_test.cpp checks SK1, SK2 and SK4 at
// large.
#include "simulator/kernel/simulation.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace tombolo::simulator {
namespace {

constexpr Address word_size{0x1000};
constexpr Duration ns(std::int64_t n) { return Duration::nanoseconds(n); }
constexpr Time at_ns(std::int64_t n) { return Time::after_start(ns(n)); }

TEST(Simulation, SK1TurnsAreTakenInOrderOfTimeThenOfCores) {
  Simulation simulation;
  std::string order;
  for (const std::int64_t first : {30, 10, 10}) {
    simulation.spawn("core", [&, first](Core& core) {
      core.advance(ns(first));
      core.await_turn();
      order += fmt::format("{}@{} ", core.id().index(), first);
      core.advance(ns(20));
      core.await_turn();
      order += fmt::format("{}@{} ", core.id().index(), first + 20);
    });
  }
  const RunResult result = simulation.run();
  EXPECT_EQ(order, "1@10 2@10 0@30 1@30 2@30 0@50 ");
  EXPECT_EQ(result.ending, Ending::finished);
  EXPECT_TRUE(result.status.ok());
  EXPECT_EQ(result.end, at_ns(50));
}

TEST(Simulation, SK1EventsComeBeforeCoresOfTheSameTimeInTheOrderOfPosting) {
  Simulation simulation;
  std::string order;
  simulation.at(at_ns(10), [&order](Time) { order += "first "; });
  simulation.spawn("core", [&](Core& core) {
    core.post(ns(10), [&order](Time) { order += "second "; });
    core.post(ns(99), [&order](Time) { order += "last "; });
    core.advance(ns(10));
    core.await_turn();
    order += "core ";
    core.post(ns(0), [&order](Time) { order += "at once "; });
    core.await_turn();
    order += "core ";
  });
  const RunResult result = simulation.run();
  EXPECT_EQ(order, "first second core at once core last ");
  EXPECT_EQ(result.end, at_ns(99));
}

TEST(Simulation, SK1AnEventMayPostAndWake) {
  Simulation simulation;
  bool stored = false;
  Time woken;
  simulation.spawn("core", [&](Core& core) {
    core.wait_until(word_size, "the event", [&] { return stored; });
    woken = core.now();
  });
  simulation.at(at_ns(5), [&](Time now) {
    simulation.at(now + ns(5), [&](Time) {
      stored = true;
      simulation.wake(word_size);
    });
  });
  EXPECT_TRUE(simulation.run().status.ok());
  EXPECT_EQ(woken, at_ns(10));
}

TEST(Simulation, SK1ACoreThatIsSpawnedInATurnBeginsThenAndIsTheLastOfItsTime) {
  Simulation simulation;
  std::string order;
  const auto note = [&](const Core& core) { order += fmt::format("{} ", core.name()); };
  simulation.spawn("first", [&](Core& core) {
    core.advance(ns(10));
    core.await_turn();
    for (int i = 0; i < 70; ++i)  // more than the tree of turns has places for
      EXPECT_EQ(simulation.spawn("late",
                                 [&](Core& late) {
                                   EXPECT_EQ(late.now(), at_ns(10));
                                   late.advance(ns(5));
                                   late.await_turn();
                                   if (late.id().index() > 70) note(late);
                                 }),
                CoreId(static_cast<std::uint32_t>(2 + i)));
    EXPECT_TRUE(core.has_turn());
    note(core);
    core.advance(ns(6));
    core.await_turn();
    note(core);
  });
  simulation.spawn("second", [&](Core& core) {
    core.advance(ns(10));
    core.await_turn();
    note(core);
  });
  const RunResult result = simulation.run();
  EXPECT_EQ(order, "first second late first ");
  EXPECT_EQ(result.end, at_ns(16));
  EXPECT_TRUE(result.status.ok());
}

TEST(Simulation, SK2OwnWorkTakesNoTurn) {
  Simulation simulation;
  std::string order;
  simulation.spawn("a", [&](Core& core) {
    for (int i = 0; i < 3; ++i) {
      core.advance(ns(1));
      order += "a";
    }
  });
  simulation.spawn("b", [&](Core& core) {
    core.advance(ns(1));
    order += "b";
  });
  simulation.run();
  EXPECT_EQ(order, "aaab");
}

struct Programs {
  std::vector<std::uint64_t> words = std::vector<std::uint64_t>(8);
  std::vector<TraceRecord> trace;

  RunResult run(std::uint64_t seed, bool traced = false) {
    Options options{.seed = seed};
    if (traced) options.tracer = [this](const TraceRecord& r) { trace.push_back(r); };
    Simulation simulation(options);
    for (int c = 0; c < 6; ++c) {
      simulation.spawn("core", [this, &simulation](Core& core) {
        for (int i = 0; i < 200; ++i) {
          core.advance(ns(static_cast<std::int64_t>(core.random().below(50))));
          core.await_turn();
          const std::uint64_t word = core.random().below(words.size());
          core.note(++words[word]);
          simulation.wake(Address(word * 8));
        }
      });
    }
    return simulation.run();
  }
};

TEST(Simulation, SK3TheSameSeedGivesTheSameRunAndAnotherOneAnother) {
  const RunResult a = Programs().run(7);
  const RunResult b = Programs().run(7);
  const RunResult c = Programs().run(8);
  EXPECT_EQ(a.digest, b.digest);
  EXPECT_EQ(a.events, b.events);
  EXPECT_EQ(a.end, b.end);
  EXPECT_NE(a.digest, c.digest);
}

TEST(Simulation, SK3TheDigestIsThatOfEveryHost) {
  // A change of the order of events or of the events that the digest covers changes this number.
  EXPECT_EQ(Programs().run(7).digest, 9316415108716796983u);
}

TEST(Simulation, SK3ATracerSeesAllEventsInOrderAndDoesNotChangeThem) {
  Programs programs;
  const RunResult traced = programs.run(7, true);
  EXPECT_EQ(traced.digest, Programs().run(7).digest);
  EXPECT_EQ(programs.trace.size(), traced.events);
  Digest again;
  Time last;
  for (const TraceRecord& r : programs.trace) {
    again.add(r);
    EXPECT_GE(r.time, last);
    last = r.time;
  }
  EXPECT_EQ(again.value(), traced.digest);
}

TEST(Simulation, SK4AParkedCoreGoesOnAtTheTimeOfTheStore) {
  Simulation simulation;
  std::uint64_t word = 0;
  Time seen;
  Duration idle;
  simulation.spawn("waiter", [&](Core& core) {
    core.advance(ns(3));
    EXPECT_TRUE(core.wait_until(word_size, "the word", [&] { return word == 2; }));
    seen = core.now();
    idle = core.idle();
  });
  simulation.spawn("writer", [&](Core& core) {
    for (int i = 0; i < 2; ++i) {
      core.advance(ns(10));
      core.await_turn();
      ++word;
      simulation.wake(word_size);
    }
  });
  EXPECT_TRUE(simulation.run().status.ok());
  EXPECT_EQ(seen, at_ns(20));
  EXPECT_EQ(idle, ns(17));
}

TEST(Simulation, SK4AStoreOfManyBytesWakesThoseAtItsWordsOnly) {
  Simulation simulation;
  std::string woken;
  for (const std::uint64_t offset : {0u, 12u, 31u, 32u}) {
    simulation.spawn("waiter", [&, offset](Core& core) {
      core.await_turn();
      if (core.park(word_size + offset, "the line", at_ns(100)))
        woken += fmt::format("{} ", offset);
    });
  }
  simulation.spawn("writer", [&](Core& core) {
    core.advance(ns(1));
    core.await_turn();
    simulation.wake(word_size, 32, core.now() + ns(5));
  });
  EXPECT_TRUE(simulation.run().status.ok());
  EXPECT_EQ(woken, "0 12 31 ");
}

TEST(Simulation, SK4ADeadlineEndsAWait) {
  Simulation simulation;
  Time end;
  simulation.spawn("waiter", [&](Core& core) {
    EXPECT_FALSE(core.wait_until(
        word_size, "no store", [] { return false; }, at_ns(40)));
    end = core.now();
  });
  EXPECT_TRUE(simulation.run().status.ok());
  EXPECT_EQ(end, at_ns(40));
}

TEST(Simulation, SK4ADeadlockNamesEachWaitingCoreAndItsReason) {
  Simulation simulation;
  simulation.spawn("finishes", [](Core&) {});
  simulation.spawn("left", [](Core& core) {
    core.advance(ns(7));
    core.wait_until(word_size, "the lock of right", [] { return false; });
  });
  simulation.spawn("right", [](Core& core) {
    core.wait_until(word_size + 8, "the lock of left", [] { return false; });
  });
  const RunResult result = simulation.run();
  EXPECT_EQ(result.ending, Ending::deadlock);
  EXPECT_EQ(result.status.code(), Code::stopped);
  EXPECT_EQ(result.status.message(),
            "deadlock: 2 of 3 cores wait for ever:\n"
            "  core 1 (left) since 0.007000 us for the lock of right at 0x1000\n"
            "  core 2 (right) since 0.000000 us for the lock of left at 0x1008");
  EXPECT_EQ(result.end, at_ns(7));
}

TEST(Simulation, SK5AnExceptionEndsTheRunWithTheNameOfItsCore) {
  Simulation simulation;
  std::uint64_t steps = 0;
  simulation.spawn("works", [&](Core& core) {
    while (true) {
      core.advance(ns(1));
      core.await_turn();
      ++steps;
    }
  });
  simulation.spawn("fails", [](Core& core) {
    core.advance(ns(10));
    core.await_turn();
    throw std::runtime_error("out of luck");
  });
  const RunResult result = simulation.run();
  EXPECT_EQ(result.ending, Ending::exception);
  EXPECT_EQ(result.status.message(), "core 1 (fails) at 0.010000 us threw: out of luck");
  EXPECT_EQ(steps, 10u) << "the work of the others so far stays";
}

TEST(Simulation, SK5AnExceptionInAnEventIsNotBlamedOnACore) {
  Simulation simulation;
  simulation.spawn("waits", [](Core& core) { core.advance(ns(20)); });
  simulation.at(at_ns(10), [](Time) { throw 1; });
  const RunResult result = simulation.run();
  EXPECT_EQ(result.ending, Ending::exception);
  EXPECT_EQ(result.status.message(),
            "an event at 0.010000 us threw: something that is no std::exception");
}

TEST(Simulation, SK5TheTimeLimitEndsProgramsThatNeverDoAndThoseThatTakeNoTurns) {
  for (const bool turns : {true, false}) {
    Simulation simulation({.time_limit = Time::after_start(Duration::milliseconds(5))});
    Time other;
    simulation.spawn("never ends", [&](Core& core) {
      while (true) {
        core.advance(ns(100));
        if (turns) core.await_turn();
      }
    });
    simulation.spawn("ends", [&](Core& core) {
      core.advance(Duration::milliseconds(4));
      core.await_turn();
      other = core.now();
    });
    const RunResult result = simulation.run();
    EXPECT_EQ(result.ending, Ending::time_limit);
    EXPECT_EQ(result.status.message(), "the limit of 5000.000000 us of virtual time was reached");
    EXPECT_EQ(other, Time::after_start(Duration::milliseconds(4)));
  }
}

TEST(Simulation, SK5TheEventLimitEndsALoopInWhichNoTimePasses) {
  Simulation simulation({.event_limit = 5000});
  std::uint64_t turns = 0;
  simulation.spawn("spins", [&](Core& core) {
    while (true) {
      core.await_turn();
      ++turns;
    }
  });
  const RunResult result = simulation.run();
  EXPECT_EQ(result.ending, Ending::event_limit);
  EXPECT_EQ(result.events, 5001u);
  EXPECT_EQ(turns, 5001u);
}

TEST(Simulation, SK5AnInterruptionKeepsAllThatWasDone) {
  for (const bool turns : {true, false}) {
    std::atomic<bool> interrupt{false};
    Simulation simulation({.interrupt = &interrupt});
    std::uint64_t done = 0;
    simulation.spawn("works", [&](Core& core) {
      while (true) {
        if (++done == 1000) interrupt = true;
        core.advance(ns(50));
        if (turns) core.await_turn();
      }
    });
    const RunResult result = simulation.run();
    EXPECT_EQ(result.ending, Ending::interrupted);
    EXPECT_EQ(result.status.code(), Code::stopped);
    EXPECT_GE(done, 1000u);
    EXPECT_LT(done, 100'000u);
  }
}

TEST(Simulation, SK5MissingStacksEndTheRun) {
  Simulation simulation({.stack_bytes = std::size_t{1} << 60});
  simulation.spawn("core", [](Core&) {});
  const RunResult result = simulation.run();
  EXPECT_EQ(result.ending, Ending::no_memory);
  EXPECT_EQ(result.status.code(), Code::no_memory);
}

// While it lives, this process gets so many further bytes of addresses.
class AddressLimit {
 public:
  explicit AddressLimit(std::uint64_t bytes) {
    std::uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    getrlimit(RLIMIT_AS, &before_);
    rlimit limit = before_;
    limit.rlim_cur = pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) + bytes;
    setrlimit(RLIMIT_AS, &limit);
  }
  ~AddressLimit() { setrlimit(RLIMIT_AS, &before_); }

 private:
  rlimit before_{};
};

TEST(Simulation, SK5AMissingStackOfACoreThatIsSpawnedInATurnEndsTheRun) {
  constexpr std::size_t stack = std::size_t{1} << 30;
  Simulation simulation({.stack_bytes = stack});
  std::uint64_t spawned = 0;
  simulation.spawn("core", [&](Core& core) {
    while (true) {
      core.await_turn();
      simulation.spawn("another", [](Core&) {});
      ++spawned;
    }
  });
  const AddressLimit limit(2 * stack + stack / 2);
  const RunResult result = simulation.run();
  EXPECT_EQ(result.ending, Ending::no_memory);
  EXPECT_EQ(result.status.code(), Code::no_memory);
  EXPECT_EQ(spawned, 1u);
}

TEST(Simulation, SK5AMissingStackInADestructorThatUnwindsIsNoCore) {
  constexpr std::size_t stack = std::size_t{1} << 30;
  struct Spawns {
    Simulation& simulation;
    ~Spawns() noexcept(false) {
      EXPECT_EQ(simulation.spawn("another", [](Core&) {}), no_core);
    }
  };
  Simulation simulation({.stack_bytes = stack});
  simulation.spawn("core", [&](Core&) {
    const Spawns at_the_end{simulation};
    throw std::runtime_error("an error");
  });
  const AddressLimit limit(stack + stack / 2);
  EXPECT_EQ(simulation.run().ending, Ending::no_memory);
}

TEST(Simulation, SK6UnfinishedProgramsAreUnwoundAndTheirCallsDoNothing) {
  struct Guard {
    Simulation& simulation;
    Core& core;
    std::shared_ptr<int> held;
    ~Guard() noexcept(false) {
      core.advance(ns(1));
      core.pause(Core::longest_advance);
      core.await_turn();
      core.park(word_size, "nothing");
      core.wait_until(word_size, "nothing", [] { return false; });
      core.post(ns(1), [](Time) {});
      core.note(1);
      simulation.wake(word_size);
      EXPECT_EQ(simulation.spawn("nothing", [](Core&) { FAIL(); }), no_core);
    }
  };
  auto held = std::make_shared<int>();
  Simulation simulation;
  for (int i = 0; i < 3; ++i) {
    simulation.spawn("core", [&, i](Core& core) {
      const Guard guard{simulation, core, held};
      core.advance(ns(i));
      core.wait_until(word_size, "no store", [] { return false; });
    });
  }
  const RunResult result = simulation.run();
  EXPECT_EQ(result.ending, Ending::deadlock);
  EXPECT_EQ(result.end, at_ns(2));
  EXPECT_EQ(held.use_count(), 1);
}

TEST(Simulation, SK6AnAbandonedRunLeavesItsStacksAsTheyAre) {
  struct Guard {
    bool* gone;
    ~Guard() { *gone = true; }
  };
  bool gone = false;
  Simulation simulation({.unfinished = Unfinished::abandon});
  simulation.spawn("core", [&](Core& core) {
    const Guard guard{&gone};
    core.wait_until(word_size, "no store", [] { return false; });
  });
  EXPECT_EQ(simulation.run().ending, Ending::deadlock);
  EXPECT_FALSE(gone);
}

TEST(Simulation, AThousandCoresRun) {
  Simulation simulation({.stack_bytes = std::size_t{32} * 1024});
  std::uint64_t sum = 0;
  for (int i = 0; i < 1024; ++i) {
    simulation.spawn("core", [&](Core& core) {
      for (int k = 0; k < 10; ++k) {
        core.advance(ns(static_cast<std::int64_t>(core.random().below(9))));
        core.await_turn();
        ++sum;
      }
    });
  }
  EXPECT_TRUE(simulation.run().status.ok());
  EXPECT_EQ(sum, 10240u);
}

TEST(Simulation, NoCoresAndNoEventsIsARunThatEndsAtOnce) {
  Simulation simulation;
  const RunResult result = simulation.run();
  EXPECT_EQ(result.ending, Ending::finished);
  EXPECT_EQ(result.end, Time());
}

TEST(SimulationDeathTest, MisuseStopsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto run = [](auto program) {
    Simulation simulation;
    simulation.spawn("first", [](Core& core) { core.advance(ns(1)); });
    simulation.spawn("culprit", [&](Core& core) { program(simulation, core); });
    simulation.run();
  };
  EXPECT_DEATH(run([](Simulation&, Core& core) { core.advance(ns(-1)); }), "culprit: advance by");
  EXPECT_DEATH(run([](Simulation& s, Core& core) {
                 core.advance(ns(5));
                 s.at(core.now(), [](Time) {});
               }),
               "core 1 \\(culprit\\) at 0.005000 us calls at\\(\\) without having the turn");
  EXPECT_DEATH(run([](Simulation& s, Core& core) {
                 core.advance(ns(5));
                 s.wake(word_size);
               }),
               "calls wake\\(\\) without having the turn");
  EXPECT_DEATH(run([](Simulation& s, Core& core) {
                 core.await_turn();
                 s.at(Time() - ns(1), [](Time) {});
               }),
               "an event for -0.001000 us");
  EXPECT_DEATH(run([](Simulation& s, Core& core) {
                 core.advance(ns(5));
                 s.spawn("hasty", [](Core&) {});
               }),
               "calls spawn\\(\\) without having the turn");
  EXPECT_DEATH(
      {
        Simulation simulation;
        simulation.run();
        simulation.spawn("late", [](Core&) {});
      },
      "spawn\\(\"late\"\\) after run");
}

}  // namespace
}  // namespace tombolo::simulator
