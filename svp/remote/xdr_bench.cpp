// SPDX-License-Identifier: Apache-2.0
// Purpose: the conversion of arrays to XDR, as the stream transport does it, beside a copy of as
// many bytes and a conversion of one value after the other.
#include <benchmark/benchmark.h>

#include <cstring>
#include <vector>

#include "svp/remote/xdr.h"

namespace tombolo::svp {
namespace {

template <class T>
void at_once(const void* elements, std::size_t count, std::byte* to) {
  xdr_form<T>.encode(elements, count, to);
}
template <class T>
void one_by_one(const void* elements, std::size_t count, std::byte* to) {
  const auto* const values = static_cast<const T*>(elements);
  for (std::size_t i = 0; i < count; ++i) XdrForm<T>::encode(values[i], to + i * XdrForm<T>::bytes);
}
template <class T>
void copied(const void* elements, std::size_t count, std::byte* to) {
  std::memcpy(to, elements, count * sizeof(T));
}

void rows(benchmark::State& state, std::size_t element_bytes,
          void (*convert)(const void*, std::size_t, std::byte*)) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const std::vector<std::byte> from(bytes, std::byte{1});
  std::vector<std::byte> to(bytes);
  for (auto _ : state) {
    convert(from.data(), bytes / element_bytes, to.data());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

void sizes(benchmark::internal::Benchmark* bench) {
  bench->ArgName("bytes")->Arg(1 << 12)->Arg(1 << 16)->Arg(1 << 22);
}

BENCHMARK_CAPTURE(rows, int32_at_once, 4, at_once<std::int32_t>)->Apply(sizes);
BENCHMARK_CAPTURE(rows, int32_one_by_one, 4, one_by_one<std::int32_t>)->Apply(sizes);
BENCHMARK_CAPTURE(rows, double_at_once, 8, at_once<double>)->Apply(sizes);
BENCHMARK_CAPTURE(rows, double_one_by_one, 8, one_by_one<double>)->Apply(sizes);
BENCHMARK_CAPTURE(rows, copied, 8, copied<double>)->Apply(sizes);

}  // namespace
}  // namespace tombolo::svp

BENCHMARK_MAIN();
