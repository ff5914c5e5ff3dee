// SPDX-License-Identifier: Apache-2.0
// Windows as a whole: several at once, several threads in a process, memory that is not mapped.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <thread>
#include <type_traits>
#include <vector>

#include "windows/testing/process_on.h"

namespace tombolo::windows::testing {
namespace {

template <class C>
class WindowTest : public ::testing::Test {};
TYPED_TEST_SUITE(WindowTest, MachinesOfThreads, MachineNames);

TYPED_TEST(WindowTest, TwoWindowsAtOnceDoNotMeet) {
  const World world{.processes = 3};
  for (const Weather& weather : every_weather<TypeParam>()) {
    const std::string where = describe<TypeParam>(world, weather);
    Watch watch(world.seconds);
    Processes<TypeParam> a(shape_of<TypeParam>(world, weather, watch));
    Processes<TypeParam> b(shape_of<TypeParam>(world, weather, watch));
    const auto program = [&](Process& p) {
      Process& q = b.core(p.self());
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
    a.run([&](Process& p) { run_one(p, program, where, watch); });
    expect_nothing_lost<TypeParam>(a);
    expect_nothing_lost<TypeParam>(b);
    if (this->HasFailure()) return;
  }
}

TYPED_TEST(WindowTest, SeveralThreadsOfAProcessCommunicateInOneEpoch) {
  if (TypeParam::properties.native_atomics != machine::Atomics::full)
    GTEST_SKIP() << "a core of this machine serves one thread at a time";
  constexpr int threads = 3, rounds = 20;
  const World world{.processes = 2, .options = {.threads = true}};
  run<TypeParam>(world, [&](Process& p) {
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
TYPED_TEST(WindowTest, CloseReportsPutsThatWereNeverFlushed) {
  run_once<TypeParam>({.processes = 3, .may_lose = true}, {}, [](Process& p) {
    p.window().set_site(4711);
    p.lock_all();
    if (p.self() == 0) p.put(2, 0, 1);
    p.barrier();
    if (p.self() == 1) p.store(0, 1);
    p.window().close();
    p.barrier();
    if (p.self() != 0) return;
    const auto losses = p.window().take_losses();
    ASSERT_EQ(losses.size(), tells_losses<TypeParam> ? 1u : 0u);
    if (losses.empty()) return;
    EXPECT_EQ(losses[0].loss, machine::Loss::undrained);
    EXPECT_EQ(losses[0].culprit, (machine::Writer{0, 4711}));
    EXPECT_EQ(losses[0].home, 2u);
    EXPECT_EQ(losses[0].bytes, 4u);
  });
}

// Memory that only its own process has mapped; the others reach it through the kernel.
template <class C>
class ProcessWithoutMapping final : public ProcessOn<C> {
 public:
  explicit ProcessWithoutMapping(machine::AttachmentOf<C> at) : ProcessOn<C>(unmapped(at)) {}

 private:
  static const machine::AttachmentOf<C>& unmapped(machine::AttachmentOf<C>& at) {
    for (machine::DataRegion& region : at.data) {
      region.foreign_address = reinterpret_cast<std::uint64_t>(region.memory);
      region.pid = getpid();
      region.memory = nullptr;
    }
    return at;
  }
};

template <class C>
void run_without_mapping(const World& world, const Program& program) {
  if (std::is_same_v<C, machine::example::Core>)
    GTEST_SKIP() << "the example knows mapped memory only";
  for (const Weather& weather : every_weather<C>()) {
    const std::string where = describe<C>(world, weather);
    Watch watch(world.seconds);
    machine::testing::Ensemble<ProcessWithoutMapping<C>> processes(
        shape_of<C>(world, weather, watch));
    processes.run([&](Process& p) { run_one(p, program, where, watch); });
    if (::testing::Test::HasFailure()) return;
  }
}

TYPED_TEST(WindowTest, MovesDataWithoutAMapping) {
  run_without_mapping<TypeParam>({.processes = 2}, [](Process& p) {
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

TYPED_TEST(WindowTest, NoUpdateIsLostWithoutAMapping) {
  constexpr int updates = 300;
  std::atomic<int> done, by_owner;
  for (const std::uint64_t granularity : {0, 1}) {
    const World world{.processes = 3, .options = {.atomic_bytes = granularity}};
    run_without_mapping<TypeParam>(world, [&](Process& p) {
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
