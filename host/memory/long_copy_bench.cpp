// SPDX-License-Identifier: Apache-2.0
// Purpose: copies of a quarter of a megabyte to 64 MiB by memcpy and as strings: the same memory
// again and again, or other memory each time; both on a line, or the target 24 or 200 bytes after
// one. copy_long takes the string where it pays: not at 24 bytes.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "host/memory/long_copy.h"

namespace tombolo::host {
namespace {

constexpr std::int64_t room = std::int64_t{128} << 20;

void copies(benchmark::State& state, void (*copy)(void*, const void*, std::size_t)) {
  const std::int64_t bytes = state.range(0);
  const std::int64_t step = state.range(1) != 0 ? bytes : 0;
  std::vector<char> source(room + 256, 1);
  std::vector<char> target(room + 256, 2);
  std::int64_t at = 0;
  for (auto _ : state) {
    copy(target.data() + at + state.range(2), source.data() + at, static_cast<std::size_t>(bytes));
    benchmark::ClobberMemory();
    at = at + 2 * step <= room ? at + step : 0;
  }
  state.SetBytesProcessed(state.iterations() * bytes);
}

void by_memcpy(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }

void arguments(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"bytes", "fresh", "past_line"});
  for (const std::int64_t bytes : {1 << 18, 1 << 19, 1 << 20, 1 << 22, 1 << 24, 1 << 26})
    for (const std::int64_t fresh : {0, 1})
      for (const std::int64_t past_line : {0, 24, 200}) bench->Args({bytes, fresh, past_line});
}

BENCHMARK_CAPTURE(copies, memcpy, by_memcpy)->Apply(arguments);
BENCHMARK_CAPTURE(copies, string, copy_as_string)->Apply(arguments);
BENCHMARK_CAPTURE(copies, long, copy_long)->Apply(arguments);

}  // namespace
}  // namespace tombolo::host

BENCHMARK_MAIN();
