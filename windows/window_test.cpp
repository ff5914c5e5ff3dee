// SPDX-License-Identifier: Apache-2.0
// Windows as a whole: several at once, several threads in a process, memory that is not mapped.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "windows/testing/processes.h"

namespace tombolo::windows::testing {
namespace {

class WindowTest : public OnEachMachine {};
INSTANTIATE_TEST_SUITE_P(On, WindowTest, ::testing::ValuesIn(test_machines_of_threads()),
                         name_of_machine);

TEST_P(WindowTest, TwoWindowsAtOnceDoNotMeet) {
  const World world{.processes = 3};
  for (const Weather& weather : GetParam().weathers) {
    const std::string where = describe(GetParam(), world, weather);
    Watch watch(world.seconds);
    const auto a = make_processes(GetParam(), world, weather, watch);
    const auto b = make_processes(GetParam(), world, weather, watch);
    const auto program = [&](Process& p) {
      Process& q = b->process(p.self());
      for (int round = 1; round <= 10; ++round) {
        p.fence();
        p.put(p.right(), 0, round);
        q.lock_all();
        q.put(q.right(), 0, -round);
        p.fence({.no_succeed = true});
        EXPECT_EQ(p.load(0), round);
        q.fetch_add(0, 8, 1);
        q.unlock_all();
        p.post({p.right(1)});
        q.lock_shared(q.right());
        p.start({p.right(2)});
        EXPECT_EQ(p.get(p.right(2), 0), round);
        EXPECT_EQ(q.get(q.right(), 0), -round);
        p.complete();
        q.unlock(q.right());
        p.wait();
        q.barrier();
      }
      q.lock_shared(0);
      EXPECT_EQ(q.get(0, 8), 30);
      q.unlock(0);
    };
    a->run([&](Process& p) { run_one(p, program, where, watch); });
    a->expect_nothing_lost();
    b->expect_nothing_lost();
    if (HasFailure()) return;
  }
}

TEST_P(WindowTest, SeveralThreadsOfAProcessCommunicateInOneEpoch) {
  if (GetParam().properties.native_atomics != machine::Atomics::full)
    GTEST_SKIP() << "a core of this machine serves one thread at a time";
  constexpr int threads = 3, rounds = 20;
  const World world{.processes = 2, .options = {.threads = true}};
  run(GetParam(), world, [&](Process& p) {
    p.lock_all();
    std::vector<std::thread> team;
    for (int t = 0; t < threads; ++t) {
      team.emplace_back([&p, t] {
        const Offset own = 64 + 4 * (static_cast<Offset>(t) * p.processes() + p.self());
        for (int i = 1; i <= rounds; ++i) {
          p.fetch_add(0, 0, 1);
          p.put(0, own, i);
          p.flush(0);
          EXPECT_EQ(p.get(0, own), i);
        }
      });
    }
    for (std::thread& thread : team) thread.join();
    p.barrier();
    EXPECT_EQ(p.get(0, 0), 2 * threads * rounds);
    p.unlock_all();
  });
}

// A put that was not flushed is lost to its target until then. A store that was not published is
// not: the memory goes away, and only a program that breaks the rules looks for it.
TEST_P(WindowTest, CloseReportsPutsThatWereNeverFlushed) {
  run_once(GetParam(), {.processes = 3, .may_lose = true}, {}, [](Process& p) {
    p.window().set_site(4711);
    p.lock_all();
    if (p.self() == 0) p.put(2, 0, 1);
    p.barrier();
    if (p.self() == 1) p.store(0, 1);
    p.window().close();
    p.barrier();
    if (p.self() != 0) return;
    const auto losses = p.window().take_losses();
    ASSERT_EQ(losses.size(), GetParam().losses ? 1u : 0u);
    if (losses.empty()) return;
    EXPECT_EQ(losses[0].loss, machine::Loss::undrained);
    EXPECT_EQ(losses[0].culprit, (machine::Writer{0, 4711}));
    EXPECT_EQ(losses[0].home, 2u);
    EXPECT_EQ(losses[0].bytes, 4u);
  });
}

// Memory that only its own process has mapped.
void run_without_mapping(const TestMachine& machine, World world, const Program& program) {
  if (machine.properties.name == machine::example::Core::properties.name)
    GTEST_SKIP() << "the example knows mapped memory only";
  world.mapped = false;
  run(machine, world, program);
}

TEST_P(WindowTest, MovesDataWithoutAMapping) {
  run_without_mapping(GetParam(), {.processes = 2}, [](Process& p) {
    EXPECT_EQ(p.memory(p.right()), nullptr);
    for (int round = 1; round <= 10; ++round) {
      p.fence();
      p.put(p.right(), 0, round);
      p.fence();
      EXPECT_EQ(p.load(0), round);
      EXPECT_EQ(p.get(p.right(), 0), round);
      p.fence({.no_succeed = true});
      p.store(8, round);
      p.lock_all();
      p.unlock_all();
      p.barrier();
      p.lock_all();
      EXPECT_EQ(p.get(p.right(), 8), round);
      p.unlock_all();
      p.barrier();
    }
  });
}

TEST_P(WindowTest, NoUpdateIsLostWithoutAMapping) {
  constexpr int updates = 300;
  std::atomic<int> done, by_owner;
  for (const std::uint64_t granularity : {0, 1}) {
    const World world{.processes = 3, .options = {.atomic_bytes = granularity}};
    run_without_mapping(GetParam(), world, [&](Process& p) {
      done = by_owner = 0;
      p.barrier();
      p.lock_all();
      if (p.self() == 0) {
        // As long as the others, which are slower.
        for (; done < 2; ++by_owner) p.fetch_add(0, 128, 1);
      } else {
        for (int i = 0; i < updates; ++i) p.fetch_add(0, 128, 1);
        ++done;
      }
      p.barrier();
      EXPECT_EQ(p.fetch_add(0, 128, 0), 2 * updates + by_owner);
      p.unlock_all();
    });
  }
}

}  // namespace
}  // namespace tombolo::windows::testing
