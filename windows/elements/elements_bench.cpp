// SPDX-License-Identifier: Apache-2.0
// Purpose: micro-benchmarks of the element operations (google-benchmark; not built by default):
//   g++ -std=c++20 -O2 -I. windows/elements/*.cpp (without _test) -lbenchmark -lpthread
// Invariants: arrays are touched before the timed loop; "shift" is the offset of the target in
// bytes.
// Thread safety: a single-threaded program.
#include <benchmark/benchmark.h>

#include <vector>

#include "windows/elements/elements.h"

namespace tombolo::windows {
namespace {

void run_combine(benchmark::State& state, Op op, Element element) {
  const auto size = static_cast<std::size_t>(state.range(0));
  const auto shift = static_cast<std::size_t>(state.range(1));
  std::vector<std::byte> target(size + 64), origin(size + 64);
  const std::size_t count = size / bytes(element);
  for (auto _ : state) {
    combine(op, element, target.data() + shift, origin.data(), count);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

void sizes(benchmark::internal::Benchmark* benchmark) {
  for (const int size : {8, 1024, 65536, 1 << 20}) {
    for (const int shift : {0, 1}) benchmark->Args({size, shift});
  }
}

void run_atomic(benchmark::State& state, Op op, Element element) {
  alignas(8) std::byte target[8]{};
  std::byte in[8]{std::byte{1}};
  std::byte old[8];
  for (auto _ : state) {
    combine_atomic(op, element, target, in, old);
    benchmark::DoNotOptimize(old);
  }
}

BENCHMARK_CAPTURE(run_combine, sum_f64, Op::sum, Element::f64)->Apply(sizes);
BENCHMARK_CAPTURE(run_combine, sum_i32, Op::sum, Element::i32)->Apply(sizes);
BENCHMARK_CAPTURE(run_combine, sum_c64, Op::sum, Element::c64)->Apply(sizes);
BENCHMARK_CAPTURE(run_combine, prod_i64, Op::prod, Element::i64)->Apply(sizes);
BENCHMARK_CAPTURE(run_combine, max_f32, Op::max, Element::f32)->Apply(sizes);
BENCHMARK_CAPTURE(run_combine, bxor_byte, Op::bxor, Element::byte)->Apply(sizes);
BENCHMARK_CAPTURE(run_combine, land_i32, Op::land, Element::i32)->Apply(sizes);
BENCHMARK_CAPTURE(run_combine, maxloc_double_int, Op::maxloc, Element::double_int)->Apply(sizes);
BENCHMARK_CAPTURE(run_combine, replace_f64, Op::replace, Element::f64)->Apply(sizes);
BENCHMARK_CAPTURE(run_atomic, sum_i64, Op::sum, Element::i64);
BENCHMARK_CAPTURE(run_atomic, sum_f64, Op::sum, Element::f64);
BENCHMARK_CAPTURE(run_atomic, replace_i64, Op::replace, Element::i64);

}  // namespace
}  // namespace tombolo::windows

BENCHMARK_MAIN();
