// SPDX-License-Identifier: Apache-2.0
// Purpose: the processes of one window as threads, for tests: on every machine, under every weather
// that the machine knows, with nothing that can hang.
//
//   TYPED_TEST(Fence, ShowsPutsToPlainLoads) {
//     run<TypeParam>({.processes = 2}, [](Process& p) {
//       p.fence();
//       if (p.self() == 0) p.put(1, 8, 4711);
//       p.fence();
//       if (p.self() == 1) EXPECT_EQ(p.load(8), 4711);
//     });
//   }
//
// Every call of Process fails the test and ends the thread unless it succeeds; the calls of
// Process::window() return their Status. A machine that records losses (stale) is asked at the end,
// and anything lost fails the test unless World::may_lose.
// Thread safety: run() from one thread at a time.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <typeindex>
#include <vector>

#include "machine/contract.h"
#include "machine/optional.h"
#include "machine/testing/ensemble.h"
#include "sync/locks/families.h"
#include "windows/engine.h"
#include "windows/testing/machines.h"

namespace tombolo::windows::testing {

using sync::Access;
using sync::LockKind;

inline constexpr auto every_lock_kind = [] {
  std::array<LockKind, sync::WindowLockFamilies::size> kinds{};
  for (std::size_t place = 0; place < kinds.size(); ++place) kinds[place] = LockKind(place);
  return kinds;
}();

// Machines that lose unpublished data and name the process that lost it.
template <class C>
inline constexpr bool tells_losses = machine::TellsLosses<C>;

struct Weather {
  std::uint64_t seed = 1;
  std::uint64_t evictions = 0;      // one in so many operations; 0: never
  std::uint32_t configuration = 0;  // of the machine, if it has several
};

template <class C>
std::vector<Weather> every_weather() {
  if constexpr (requires { machine::testing::Host<C>::configurations; }) {
    std::vector<Weather> all;
    for (std::uint32_t n = 0; n < machine::testing::Host<C>::configurations; ++n)
      all.push_back({n + 1, 0, n});
    return all;
  }
  if constexpr (!tells_losses<C>) return {{}};
  return {{1, 0}, {2, 50}, {3, 7}, {4, 3}, {5, 50}, {6, 7}, {7, 3}};
}

// After so long a test that hangs fails. TOMBOLO_TEST_SECONDS sets it, for tests made to hang.
inline int seconds_of_a_test() {
  const char* seconds = std::getenv("TOMBOLO_TEST_SECONDS");
  return seconds != nullptr ? std::atoi(seconds) : 60;
}

struct World {
  Home processes = 2;
  std::size_t bytes = 4096;  // of each region
  EngineOptions options = {};
  bool may_lose = false;  // the program breaks a rule, and something may be lost
  bool mapped = true;     // else only its own process has mapped a region
  int seconds = seconds_of_a_test();
};

// Ends all waiting when the time is over or a process has stopped.
class Watch final : public machine::IdleHook {
 public:
  explicit Watch(int seconds) : end_(Clock::now() + std::chrono::seconds(seconds)) {}
  void stop() { stopped_ = true; }
  Status idle() override {
    if (stopped_) return Status::io("another process of the test has stopped");
    if (Clock::now() > end_) return Status::io("the time of the test is over");
    return {};
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point end_;
  std::atomic<bool> stopped_ = false;
};

struct Stopped {};

inline void must(const Status& status, const char* call) {
  if (status.ok()) return;
  ADD_FAILURE() << call << ": " << status.message();
  throw Stopped();
}

// A process of a window on some machine.
class Process {
 public:
  Process(Home self, Home processes) : self_(self), processes_(processes) {}
  virtual ~Process() = default;

  Home self() const { return self_; }
  Home processes() const { return processes_; }
  Home right(Home steps = 1) const { return (self_ + steps) % processes_; }
  virtual Engine& window() = 0;

  void fence(Assertions promise = {}) { must(window().fence(promise), "fence"); }
  void post(const std::vector<Home>& origins, Assertions promise = {}) {
    must(window().post(origins, promise), "post");
  }
  void start(const std::vector<Home>& targets, Assertions promise = {}) {
    must(window().start(targets, promise), "start");
  }
  void complete() { must(window().complete(), "complete"); }
  void wait() { must(window().wait(), "wait"); }
  bool test() {
    bool done = false;
    must(window().test(done), "test");
    return done;
  }
  void lock(Access access, Home target, Assertions promise = {}) {
    must(window().lock(access, target, promise), "lock");
  }
  void lock_shared(Home target) { lock(Access::shared, target); }
  void lock_exclusive(Home target) { lock(Access::exclusive, target); }
  void unlock(Home target) { must(window().unlock(target), "unlock"); }
  void lock_all(Assertions promise = {}) { must(window().lock_all(promise), "lock_all"); }
  void unlock_all() { must(window().unlock_all(), "unlock_all"); }
  void flush(Home target) { must(window().flush(target), "flush"); }
  void flush_all() { must(window().flush_all(), "flush_all"); }
  void flush_local(Home target) { must(window().flush_local(target), "flush_local"); }
  void flush_local_all() { must(window().flush_local_all(), "flush_local_all"); }
  void sync() { must(window().sync(), "sync"); }
  // Tells the others nothing but that this process came here.
  void barrier() { must(window().barrier(), "barrier"); }
  // Lets others run; ends when the test does.
  virtual void pause() = 0;

  void put_bytes(Home target, Offset at, const void* from, std::size_t bytes) {
    must(window().put(target, at, from, bytes), "put");
  }
  void get_bytes(Home target, Offset at, void* to, std::size_t bytes) {
    must(window().get(target, at, to, bytes), "get");
  }
  void put(Home target, Offset at, int value) { put_bytes(target, at, &value, sizeof value); }
  int get(Home target, Offset at) {
    int value = 0;
    get_bytes(target, at, &value, sizeof value);
    return value;
  }
  void accumulate(Home target, Offset at, Op op, Element element, const void* from,
                  std::size_t count) {
    must(window().accumulate(target, at, op, element, from, count), "accumulate");
  }
  void get_accumulate(Home target, Offset at, Op op, Element element, const void* from,
                      void* result, std::size_t count) {
    must(window().get_accumulate(target, at, op, element, from, result, count), "get_accumulate");
  }
  void accumulate_runs(Home target, std::span<const ElementRun> runs, Op op, Element element,
                       const void* from, void* result) {
    must(window().accumulate_runs(target, runs, op, element, from, result), "accumulate_runs");
  }
  int fetch_add(Home target, Offset at, int by) {
    int before = 0;
    get_accumulate(target, at, Op::sum, Element::i32, &by, &before, 1);
    return before;
  }
  int compare_and_swap(Home target, Offset at, int compare, int desired) {
    int before = 0;
    must(window().compare_and_swap(target, at, Element::i32, &compare, &desired, &before),
         "compare_and_swap");
    return before;
  }

  // The program's own plain loads and stores; on a machine without views, its reads and writes.
  std::byte* memory(Home home) { return window().view(home); }
  virtual void store_bytes(Home home, Offset at, const void* from, std::size_t bytes) {
    std::memcpy(memory(home) + at, from, bytes);
  }
  virtual void load_bytes(Home home, Offset at, void* to, std::size_t bytes) {
    std::memcpy(to, memory(home) + at, bytes);
  }
  template <class T>
  void store_at(Home home, Offset at, const T& value) {
    store_bytes(home, at, &value, sizeof value);
  }
  template <class T>
  T load_at(Home home, Offset at) {
    T value;
    load_bytes(home, at, &value, sizeof value);
    return value;
  }
  void store(Offset at, int value) { store_at(self_, at, value); }
  int load(Offset at) { return load_at<int>(self_, at); }

 private:
  Home self_;
  Home processes_;
};

using Program = std::function<void(Process&)>;

// On the machine of that type, one of those in processes.cpp: there the engine is compiled once for
// each, and not in every test.
void run_once_on(std::type_index machine, const World& world, const Weather& weather,
                 const Program& program);

template <class C>
void run_once(const World& world, const Weather& weather, const Program& program) {
  run_once_on(typeid(C), world, weather, program);
}

// A machine of the list, chosen at run time: tests that need no more of it are compiled once, and
// not for each (TEST_P with OnEachMachine).
struct TestMachine {
  machine::Properties properties;
  bool views;   // a program loads from and stores into the regions
  bool losses;  // tells_losses
  std::type_index type;
  std::vector<Weather> weathers;
};

// Of Machines and of MachinesOfThreads.
const std::vector<TestMachine>& test_machines();
const std::vector<TestMachine>& test_machines_of_threads();
inline void PrintTo(const TestMachine& machine, std::ostream* out) {
  *out << machine.properties.name;
}

class OnEachMachine : public ::testing::TestWithParam<TestMachine> {};

// In the names of tests.
inline std::string name_of_machine(const ::testing::TestParamInfo<TestMachine>& info) {
  std::string name(info.param.properties.name);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

// The processes of a window, to be driven in any way.
class ProcessGroup {
 public:
  virtual ~ProcessGroup() = default;
  virtual Process& process(Home self) = 0;
  // Calls the program for each process, in a thread for each or as the machine runs them.
  virtual void run(const Program& program) = 0;
  virtual void expect_nothing_lost() = 0;
};
std::unique_ptr<ProcessGroup> make_processes(const TestMachine& machine, const World& world,
                                             const Weather& weather, machine::IdleHook& watch);

std::string describe(const TestMachine& machine, const World& world, const Weather& weather);
// Calls program(process), in the thread of the process.
void run_one(Process& process, const Program& program, const std::string& where, Watch& watch);

inline void run_once(const TestMachine& machine, const World& world, const Weather& weather,
                     const Program& program) {
  run_once_on(machine.type, world, weather, program);
}
// In every weather, until one fails.
void run(const TestMachine& machine, const World& world, const Program& program);
// The same with every kind of lock.
void run_with_each_lock(const TestMachine& machine, World world, const Program& program);

template <class C>
void run(const World& world, const Program& program) {
  for (const Weather& weather : every_weather<C>()) {
    run_once<C>(world, weather, program);
    if (::testing::Test::HasFailure()) return;
  }
}

// The same with every kind of lock.
template <class C>
void run_with_each_lock(World world, const Program& program) {
  for (const LockKind kind : every_lock_kind) {
    world.options.locks = kind;
    run<C>(world, program);
    if (::testing::Test::HasFailure()) return;
  }
}

// 0 .. n-1 without `self`.
inline std::vector<Home> others(Home n, Home self) {
  std::vector<Home> homes;
  for (Home home = 0; home < n; ++home)
    if (home != self) homes.push_back(home);
  return homes;
}

}  // namespace tombolo::windows::testing
