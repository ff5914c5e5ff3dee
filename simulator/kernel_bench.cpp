// SPDX-License-Identifier: Apache-2.0
// Purpose: how many simulated memory operations a host core runs in a second: 48 cores on a mesh of
// 6 x 4 tiles, each with a cache; misses and shared words go through the mesh and one of four
// memory controllers. The argument is how many operations in 1000 go there.
// Thread safety: -
#include <benchmark/benchmark.h>

#include <array>
#include <vector>

#include "simulator/kernel/simulation.h"
#include "simulator/parts/mesh.h"
#include "simulator/parts/server.h"
#include "simulator/parts/set_associative_cache.h"

namespace tombolo::simulator {
namespace {

constexpr std::uint32_t core_count = 48;
constexpr std::uint64_t operations = 20'000;  // of each core
constexpr LineSize line_size{32};
constexpr std::uint64_t private_bytes = std::uint64_t{64} * 1024;  // of each core in memory
constexpr std::uint64_t hot_bytes = std::uint64_t{8} * 1024;       // of these in the cache
constexpr std::uint64_t shared_words = 1024;

class Chip {
 public:
  Chip() : memory_(core_count * private_bytes), words_(shared_words) {
    const CacheShape shape{.bytes = std::size_t{16} * 1024, .ways = 4, .line_size = line_size};
    caches_.assign(core_count, SetAssociativeCache(shape));
  }

  RunResult run(std::uint64_t shared_in_1000) {
    for (std::uint32_t c = 0; c < core_count; ++c) {
      simulation_.spawn("core", [this, shared_in_1000](Core& core) {
        for (std::uint64_t i = 0; i < operations; ++i) operate(core, shared_in_1000);
      });
    }
    return simulation_.run();
  }

 private:
  void operate(Core& core, std::uint64_t shared_in_1000) {
    const std::uint64_t draw = core.random().next();
    const std::uint64_t base = core.id().index() * private_bytes;
    if (draw % 1000 >= shared_in_1000) {
      const Address address(base + (draw >> 32) % hot_bytes / 8 * 8);
      if ((draw >> 20) % 4 == 0) {
        write(core, address, draw);
      } else {
        read(core, address);
      }
    } else if ((draw >> 20) % 2 == 0) {
      read(core, Address(base + (draw >> 32) % private_bytes / 8 * 8));
    } else {
      store_word(core, (draw >> 32) % shared_words);
    }
  }

  void read(Core& core, Address address) {
    std::uint64_t value = 0;
    SetAssociativeCache& cache = caches_[core.id().index()];
    if (cache.read(address, &value, 8)) {
      core.advance(hit_);
      return;
    }
    through_memory(core);
    const Line line = line_size.line(address);
    const auto gone = cache.fill(line, 0, &memory_[line_size.first(line).byte()]);
    if (gone && gone->dirty) {
      std::memcpy(&memory_[line_size.first(gone->line).byte()], gone->bytes, line_size.bytes());
    }
  }

  void write(Core& core, Address address, std::uint64_t value) {
    if (caches_[core.id().index()].write(address, &value, 8, WritePolicy::write_back) ==
        WriteOutcome::kept) {
      core.advance(hit_);
      return;
    }
    through_memory(core);
    std::memcpy(&memory_[address.byte()], &value, 8);
  }

  void store_word(Core& core, std::uint64_t word) {
    through_memory(core);
    words_[word] += 1;
    simulation_.wake(Address(word * 8));
  }

  // There and back; the core has the turn at the time of its effect.
  void through_memory(Core& core) {
    const std::uint32_t tile = core.id().index() / 2;
    const Tile here{tile % 6, tile / 6};
    const std::size_t quarter = (here.y / 2) * 2 + here.x / 3;
    const Tile there{quarter % 2 == 0 ? 0u : 5u, quarter / 2 == 0 ? 0u : 2u};
    core.advance(issue_);
    core.await_turn();
    const Time request = mesh_.send(here, there, core.now(), flit_);
    const Time served = controllers_[quarter].serve(request, access_).end;
    const Time reply = mesh_.send(there, here, served, flit_ * 2);
    core.advance_to(reply);
    core.await_turn();
  }

  const Clock core_clock_ = Clock::megahertz(533);
  const Clock mesh_clock_ = Clock::megahertz(800);
  const Duration hit_ = core_clock_.cycles(2);
  const Duration issue_ = core_clock_.cycles(40);
  const Duration flit_ = mesh_clock_.cycles(2);
  const Duration access_ = mesh_clock_.cycles(46);
  Simulation simulation_;
  Mesh mesh_{6, 4, mesh_clock_.cycles(4)};
  std::array<Server, 4> controllers_;
  std::vector<SetAssociativeCache> caches_;
  std::vector<std::byte> memory_;
  std::vector<std::uint64_t> words_;
};

void memory_operations(benchmark::State& state) {
  const auto shared_in_1000 = static_cast<std::uint64_t>(state.range(0));
  for (auto _ : state) {
    state.PauseTiming();
    auto chip = std::make_unique<Chip>();
    state.ResumeTiming();
    const RunResult result = chip->run(shared_in_1000);
    TOMBOLO_CHECK(result.status.ok(), "{}", result.status.message());
    state.PauseTiming();
    chip.reset();
    state.ResumeTiming();
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(core_count * operations) * state.iterations());
}
BENCHMARK(memory_operations)
    ->ArgName("shared_in_1000")
    ->Arg(0)
    ->Arg(10)
    ->Arg(100)
    ->Arg(300)
    ->Arg(1000)
    ->Unit(benchmark::kMillisecond);

// Nothing but turns, each of which goes to another core.
void turns(benchmark::State& state) {
  constexpr int turn_count = 10'000;
  const auto cores = static_cast<int>(state.range(0));
  for (auto _ : state) {
    Simulation simulation;
    for (int c = 0; c < cores; ++c) {
      simulation.spawn("core", [](Core& core) {
        for (int i = 0; i < turn_count; ++i) {
          core.advance(Duration::ticks(1));
          core.await_turn();
        }
      });
    }
    simulation.run();
  }
  state.SetItemsProcessed(std::int64_t{turn_count} * cores * state.iterations());
}
BENCHMARK(turns)->ArgName("cores")->Arg(1)->Arg(2)->Arg(48)->Arg(1024)->Unit(
    benchmark::kMillisecond);

}  // namespace
}  // namespace tombolo::simulator

BENCHMARK_MAIN();
