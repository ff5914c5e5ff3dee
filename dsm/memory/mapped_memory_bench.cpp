// SPDX-License-Identifier: Apache-2.0
// Purpose: the costs of locks and words of a memory that all processes map, as programs of Pthreads
// on one host use them.
//
//   lock/free        a lock that no other thread wants: acquire and release
//   word/...         an operation on a word for which no thread waits
//   lock/wanted/n    n threads that each take one lock again and again
//   word/turns       two threads that wait for each other by a word
//
// Thread safety: -
#include <benchmark/benchmark.h>

#include "base/check.h"
#include "dsm/testing/mapped_threads.h"

namespace tombolo::dsm {
namespace {

constexpr MemoryPlan plan_of(Thread threads) {
  return {.threads = threads, .locks = 8, .words = 64};
}

void must(const Status& status) { TOMBOLO_CHECK(status.ok(), "{}", status.message()); }

void free_lock(benchmark::State& state) {
  testing::MappedThreads threads(plan_of(1));
  ProgramMemory& memory = threads[0];
  for (auto _ : state) {
    must(memory.acquire(3));
    must(memory.release(3));
  }
}

template <class Operation>
void word(benchmark::State& state, Operation operation) {
  testing::MappedThreads threads(plan_of(1));
  ProgramMemory& memory = threads[0];
  std::uint64_t i = 0;
  for (auto _ : state) benchmark::DoNotOptimize(operation(memory, i++));
}

void wanted_lock(benchmark::State& state) {
  constexpr int times = 2000;
  const auto number = static_cast<Thread>(state.range(0));
  testing::MappedThreads threads(plan_of(number));
  for (auto _ : state)
    threads.run([](ProgramMemory& memory) {
      for (int i = 0; i < times; ++i) {
        must(memory.acquire(3));
        must(memory.release(3));
      }
    });
  state.SetItemsProcessed(state.iterations() * times * number);
}

void turns(benchmark::State& state) {
  constexpr std::uint64_t times = 500;
  testing::MappedThreads threads(plan_of(2));
  std::uint64_t first = 0;
  for (auto _ : state) {
    threads.run([first](ProgramMemory& memory) {
      for (std::uint64_t turn = first + memory.self(); turn < first + times; turn += 2) {
        while (memory.load(5) != turn) must(memory.pause());
        memory.paused_enough();
        memory.store(5, turn + 1);
      }
    });
    first += times;
  }
  state.SetItemsProcessed(state.iterations() * times);
}

void add_words() {
  const auto add = [](const char* name, auto operation) {
    benchmark::RegisterBenchmark(name, [=](benchmark::State& state) { word(state, operation); });
  };
  add("word/load", [](ProgramMemory& memory, std::uint64_t) { return memory.load(9); });
  add("word/store", [](ProgramMemory& memory, std::uint64_t i) { return memory.store(9, i), i; });
  add("word/exchange",
      [](ProgramMemory& memory, std::uint64_t i) { return memory.exchange(9, i); });
  add("word/fetch_add",
      [](ProgramMemory& memory, std::uint64_t) { return memory.fetch_add(9, 1); });
  add("word/compare_exchange",
      [](ProgramMemory& memory, std::uint64_t i) { return memory.compare_exchange(9, i, i + 1); });
}

}  // namespace
}  // namespace tombolo::dsm

int main(int argc, char** argv) {
  using namespace tombolo::dsm;
  benchmark::RegisterBenchmark("lock/free", &free_lock);
  add_words();
  benchmark::RegisterBenchmark("lock/wanted", &wanted_lock)
      ->Arg(2)
      ->Arg(8)
      ->UseRealTime()
      ->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("word/turns", &turns)->UseRealTime()->Unit(benchmark::kMillisecond);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
