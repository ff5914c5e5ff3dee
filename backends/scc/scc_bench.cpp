// SPDX-License-Identifier: Apache-2.0
// Purpose: how many memory operations of the simulated SCC (loads and stores of 4 bytes, by 48
// cores at once) one core of the host runs in a second.
// Thread safety: -
#include <benchmark/benchmark.h>

#include "backends/scc/chip.h"
#include "backends/scc/cpu.h"

namespace tombolo::scc {
namespace {

constexpr std::uint32_t core_count = 48;
constexpr int operations = 20'000;  // of each core

const Parameters& chip_parameters() {
  static const Parameters parameters = [] {
    Parameters p{};
    const Status status = find_parameters("scc", &p);
    TOMBOLO_CHECK(status.ok(), "{}", status.message());
    return p;
  }();
  return parameters;
}

// Every core goes its own way through `bytes` of its private memory (DCM), three loads to a store;
// `shared_in_1000` of its accesses are of uncached words that all use.
void operate(Cpu& cpu, std::uint64_t bytes, std::uint64_t shared_in_1000) {
  Random& random = cpu.fibre().random();
  const Address shared = cpu.chip().shared(cpu.chip().controller_of(cpu.id()));
  for (int i = 0; i < operations; ++i) {
    const std::uint64_t draw = random.next();
    const bool is_shared = draw % 1000 < shared_in_1000;
    const View view = is_shared ? View{shared + (draw >> 40) % 1024 * 4, MemoryType::ncm}
                                : View{Address((draw >> 32) % bytes / 4 * 4), MemoryType::dcm};
    if ((draw >> 20) % 4 == 0) {
      cpu.store<std::uint32_t>(view, 1);
    } else {
      cpu.load<std::uint32_t>(view);
    }
  }
}

void memory_operations(benchmark::State& state) {
  for (auto _ : state) {
    state.PauseTiming();
    auto chip = std::make_unique<Chip>(chip_parameters());
    for (std::uint32_t core = 0; core < core_count; ++core)
      chip->start(CoreId(core), [&](Cpu& cpu) {
        operate(cpu, static_cast<std::uint64_t>(state.range(0)),
                static_cast<std::uint64_t>(state.range(1)));
      });
    state.ResumeTiming();
    const simulator::RunResult result = chip->run();
    TOMBOLO_CHECK(result.status.ok(), "{}", result.status.message());
    state.PauseTiming();
    chip.reset();
    state.ResumeTiming();
  }
  state.SetItemsProcessed(std::int64_t{core_count} * operations * state.iterations());
}
// Within L1, within L2, beyond both; then with words that are shared.
BENCHMARK(memory_operations)
    ->ArgNames({"bytes", "shared_in_1000"})
    ->Args({8 << 10, 0})
    ->Args({128 << 10, 0})
    ->Args({4 << 20, 0})
    ->Args({8 << 10, 10})
    ->Args({8 << 10, 100})
    ->Args({8 << 10, 1000})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tombolo::scc

BENCHMARK_MAIN();
