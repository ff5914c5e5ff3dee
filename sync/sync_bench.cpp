// SPDX-License-Identifier: Apache-2.0
// Purpose: one benchmark driver for all of sync: time per operation of every lock, barrier and
// epoch protocol on every machine, with threads as cores. Names read
// machine/algorithm/operation/cores. Not built by default:
//
//   g++ -std=c++20 -O2 -DFMT_HEADER_ONLY -I. sync/sync_bench.cpp -o sync_bench
//       $(ls backends/*/*.cpp | grep -v _test) -lbenchmark -lpthread       (one line)
//   ./sync_bench --benchmark_filter=coherent
//
// Thread safety: -
#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <type_traits>
#include <vector>

#include "backends/machines.h"
#include "base/random.h"
#include "machine/testing/ensemble.h"
#include "sync/barriers/centralized_barrier.h"
#include "sync/barriers/dissemination_barrier.h"
#include "sync/epochs/active_target.h"
#include "sync/locks/bakery_lock.h"
#include "sync/locks/families.h"
#include "sync/locks/mcs_lock.h"
#include "sync/locks/mutex.h"

namespace tombolo::sync {
namespace {

using machine::Home;
using machine::testing::Ensemble;
using Clock = std::chrono::steady_clock;

void must(const Status& s) { TOMBOLO_CHECK(s.ok(), "sync benchmark: {}", s.message()); }

// Steps of an iteration: fewer where each takes a bakery.
template <class C>
constexpr int steps_with(bool atomics) {
  return atomics && C::properties.native_atomics == machine::Atomics::full ? 20000 : 1000;
}
template <class C, class Object>
constexpr int steps = steps_with<C>(!std::is_same_v<Object, BakeryMutexes<C>>);

// Runs body(core, object) once on each core of a fresh ensemble, after a barrier. An iteration is
// one step of core 0, which takes `count` of them.
template <class C, class Object, class Make, class Body>
void measure(benchmark::State& state, int count, Make&& make, Body&& body) {
  const auto cores = static_cast<Home>(state.range(0));
  machine::SyncLayout layout(C::reserved_sync_bytes(cores));
  const auto at = Object::take(layout, cores);
  const auto barrier_at = DisseminationBarrier<C>::take(layout, cores);
  for (auto _ : state) {
    Ensemble<C> ensemble({.cores = cores, .sync_bytes = layout.bytes(), .data_bytes = 64});
    double seconds = 0;
    ensemble.run([&](C& core) {
      Object object = make(core, at);
      DisseminationBarrier<C> barrier(core, barrier_at);
      must(barrier.arrive_and_wait());
      const auto start = Clock::now();
      body(core, object);
      if (core.self() == 0) seconds = std::chrono::duration<double>(Clock::now() - start).count();
      must(barrier.arrive_and_wait());
    });
    state.SetIterationTime(seconds / count);
  }
}

struct Mix {
  const char* name;
  std::uint64_t exclusive_one_in;  // 0: never
  std::uint64_t lock_all_one_in;
};
constexpr Mix mixes[] = {{"shared", 0, 0},
                         {"exclusive", 1, 0},
                         {"one_in_8_exclusive", 8, 0},
                         {"one_in_4_lock_all", 8, 4}};

// lock + unlock of a random target.
template <class C, class Family>
void lock_family(benchmark::State& state, Mix mix) {
  using Locks = typename Family::template Locks<C>;
  constexpr int steps = steps_with<C>(Family::traits.atomics);
  measure<C, Locks>(
      state, steps, [](C& core, auto at) { return Locks(core, at, LockOptions{}); },
      [mix](C& core, Locks& locks) {
        Random random(core.self());
        for (int step = 0; step < steps; ++step) {
          if (random.one_in(mix.lock_all_one_in)) {
            must(locks.lock_all());
            locks.unlock_all();
            continue;
          }
          const auto target = static_cast<Home>(random.below(core.cores()));
          const Access access =
              random.one_in(mix.exclusive_one_in) ? Access::exclusive : Access::shared;
          must(locks.lock(access, target));
          locks.unlock(access, target);
        }
      });
}

// Table 2 of 001 in small: all cores but core 0 read home 0 in a loop, core 0 writes. The time is
// that of a write; counters tell how many readers entered between the writer's call and its entry.
template <class C, class Family>
void starvation(benchmark::State& state) {
  using Locks = typename Family::template Locks<C>;
  constexpr int writes = steps_with<C>(Family::traits.atomics) / 100;
  std::vector<std::uint64_t> passed;
  std::atomic<std::uint64_t> entries{0};
  std::atomic<bool> over{false};
  measure<C, Locks>(
      state, writes, [](C& core, auto at) { return Locks(core, at, LockOptions{}); },
      [&](C& core, Locks& locks) {
        if (core.self() == 0) {
          over = false;
          for (int step = 0; step < writes; ++step) {
            const std::uint64_t before = entries;
            must(locks.lock(Access::exclusive, 0));
            passed.push_back(entries - before);
            locks.unlock(Access::exclusive, 0);
          }
          over = true;
          return;
        }
        while (!over) {
          must(locks.lock(Access::shared, 0));
          entries.fetch_add(1, std::memory_order_relaxed);  // only counted
          locks.unlock(Access::shared, 0);
        }
      });
  std::sort(passed.begin(), passed.end());
  if (passed.empty()) return;
  state.counters["passed_median"] = static_cast<double>(passed[passed.size() / 2]);
  state.counters["passed_99"] = static_cast<double>(passed[passed.size() * 99 / 100]);
  state.counters["passed_max"] = static_cast<double>(passed.back());
}

template <class C>
struct SpinAtHomeZero {
  struct Layout {
    machine::Offset word = 0;
  };
  static Layout take(machine::SyncLayout& layout, Home) { return {layout.take_lines(1)}; }
  SpinAtHomeZero(C& core, Layout at) : mutex(core), word(core.word({0, at.word})) {}
  Status acquire(Home) { return mutex.acquire(word); }
  void release(Home) { mutex.release(word); }
  SpinMutex<C> mutex;
  typename C::Word word;
};

template <class C, class Mutex>
void mutex(benchmark::State& state) {
  measure<C, Mutex>(
      state, steps<C, Mutex>, [](C& core, auto at) { return Mutex(core, at); },
      [](C&, Mutex& m) {
        for (int step = 0; step < steps<C, Mutex>; ++step) {
          must(m.acquire(0));
          if constexpr (std::is_same_v<decltype(m.release(0)), Status>)
            must(m.release(0));
          else
            m.release(0);
        }
      });
}

template <class C, class Barrier>
void barrier(benchmark::State& state) {
  measure<C, Barrier>(
      state, steps<C, Barrier>, [](C& core, auto at) { return Barrier(core, at); },
      [](C&, Barrier& b) {
        for (int step = 0; step < steps<C, Barrier>; ++step) must(b.arrive_and_wait());
      });
}

// A whole cycle of post, complete and wait: `ring` with both neighbours, else core 0 exposes and
// core 1 accesses while the others do nothing.
template <class C>
void epochs(benchmark::State& state, bool ring) {
  measure<C, ActiveTarget<C>>(
      state, steps<C, ActiveTarget<C>>, [](C& core, auto at) { return ActiveTarget<C>(core, at); },
      [ring](C& core, ActiveTarget<C>& active) {
        const Home n = core.cores();
        const Home self = core.self();
        std::vector<Home> group{(self + 1) % n};
        if (n > 2) group.push_back((self + n - 1) % n);
        const std::vector<Home> peer{self == 0 ? 1u : 0u};
        for (int step = 0; step < steps<C, ActiveTarget<C>>; ++step) {
          if (ring) {
            active.post(group);
            must(active.complete(group));
            must(active.wait());
          } else if (self == 0) {
            active.post(peer);
            must(active.wait());
          } else if (self == 1) {
            must(active.complete(peer));
          }
        }
      });
}

template <class C>
void add(const std::string& what, void (*body)(benchmark::State&)) {
  const std::string name = MachineNames::GetName<C>(0) + "/" + what;
  for (const int cores : {1, 2, 8}) {
    if (cores == 1 && what.find("epochs") != std::string::npos) continue;
    benchmark::RegisterBenchmark(name.c_str(), body)->Arg(cores)->UseManualTime()->Iterations(5);
  }
}

template <class C, class Family>
void add_family() {
  std::string name(Family::traits.name);
  std::ranges::replace(name, '-', '_');
  // One function for each mix, as a benchmark's body is a plain function here.
  add<C>(name + "/" + mixes[0].name, [](auto& s) { lock_family<C, Family>(s, mixes[0]); });
  add<C>(name + "/" + mixes[1].name, [](auto& s) { lock_family<C, Family>(s, mixes[1]); });
  add<C>(name + "/" + mixes[2].name, [](auto& s) { lock_family<C, Family>(s, mixes[2]); });
  add<C>(name + "/" + mixes[3].name, [](auto& s) { lock_family<C, Family>(s, mixes[3]); });
  add<C>(name + "/starvation", [](auto& s) { starvation<C, Family>(s); });
}

template <class C>
void add_machine() {
  EveryLockFamily::for_each([]<class Family>() { add_family<C, Family>(); });
  add<C>("mutex/spin", mutex<C, SpinAtHomeZero<C>>);
  add<C>("mutex/mcs", mutex<C, McsLock<C>>);
  add<C>("mutex/bakery", mutex<C, BakeryMutexes<C>>);
  add<C>("barrier/dissemination", barrier<C, DisseminationBarrier<C>>);
  add<C>("barrier/centralized", barrier<C, CentralizedBarrier<C>>);
  add<C>("epochs/one_origin", [](auto& s) { epochs<C>(s, false); });
  add<C>("epochs/ring", [](auto& s) { epochs<C>(s, true); });
}

template <class... Machines>
void add_machines(TypeList<Machines...>) {
  (add_machine<Machines>(), ...);
}

}  // namespace
}  // namespace tombolo::sync

int main(int argc, char** argv) {
  tombolo::sync::add_machines(tombolo::AllMachines{});
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
