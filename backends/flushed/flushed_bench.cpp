// SPDX-License-Identifier: Apache-2.0
// Purpose: the cost of `flushed` beside that of the bare instructions, one thread, memory of one
// segment.
//
//   ninja -C build/release backends_flushed_flushed_bench
//   backends_flushed_flushed_bench --benchmark_enable_random_interleaving=true
//       --benchmark_repetitions=9 --benchmark_report_aggregates_only=true
//
// Compare put/ours with the least of put/copy+... and put/stream, publish/ours with publish/...,
// get/ours with get/clflushopt, region/whole (all lines of a region) with region/written (those
// that were written to, of which the rows behind it store one word in each of so many pages): goal
// at most 1.2 from 4 KiB on, and 0.3 us for a put of 8 bytes. The bare baselines are x86
// instructions; on other processors only our own rows are there.
#include <benchmark/benchmark.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "backends/flushed/flushed.h"
#include "base/check.h"
#include "host/segments/segment.h"

namespace tombolo::flushed {
namespace {

using namespace host::flush;

using machine::Atomics;
constexpr std::size_t region_bytes = 4 << 20;
constexpr machine::DataPlace place{1, 4096};

template <class C>
class Fixture {
 public:
  explicit Fixture(std::size_t bytes_each = region_bytes) {
    const std::size_t sync_bytes = 4096;
    const Status made =
        host::Segment::create_anonymous(2 * (sync_bytes + bytes_each), "flushed_bench", segment_);
    TOMBOLO_CHECK(made.ok(), "{}", made.message());
    std::memset(segment_.data(), 0, segment_.bytes());
    machine::Attachment at;
    at.cores = 2;
    at.sync = segment_.data();
    at.sync_bytes_per_home = sync_bytes;
    for (std::size_t home = 0; home < 2; ++home) {
      machine::DataRegion region;
      region.memory = segment_.data() + 2 * sync_bytes + home * bytes_each;
      region.bytes = bytes_each;
      at.data.push_back(region);
    }
    core_ = std::make_unique<C>(at);
    local_.resize(region_bytes, std::byte{1});
  }
  C& core() { return *core_; }
  std::byte* memory() { return core_->view(place); }
  std::byte* local() { return local_.data(); }

 private:
  host::Segment segment_;
  std::unique_ptr<C> core_;
  std::vector<std::byte> local_;
};

using Full = Core<Atomics::full>;
using None = Core<Atomics::none>;

template <class C>
Fixture<C>& fixture() {
  static Fixture<C> only;
  return only;
}

std::size_t size_of(const benchmark::State& state) {
  return static_cast<std::size_t>(state.range(0));
}

void put_ours(benchmark::State& state) {
  auto& f = fixture<Full>();
  const std::size_t bytes = size_of(state);
  for (auto _ : state) {
    (void)f.core().write_through(place, f.local(), bytes).ok();
    f.core().drain();
  }
}

void publish_ours(benchmark::State& state) {
  auto& f = fixture<Full>();
  const std::size_t bytes = size_of(state);
  for (auto _ : state) {
    (void)f.core().write(place, f.local(), bytes).ok();
    f.core().publish(place, bytes);
  }
}

void get_ours(benchmark::State& state) {
  auto& f = fixture<Full>();
  const std::size_t bytes = size_of(state);
  for (auto _ : state) {
    f.core().refresh(place, bytes);
    (void)f.core().read(place, f.local(), bytes).ok();
    benchmark::ClobberMemory();
  }
}

// The cost of a synchronization call for the program's own stores to a region of state.range(0)
// bytes, of which it has written one word in each of state.range(1) pages.
template <bool whole>
void region(benchmark::State& state) {
  const std::size_t bytes = size_of(state);
  const auto pages = static_cast<std::size_t>(state.range(1));
  Fixture<Full> f(bytes);
  std::byte* memory = f.core().view({1, 0});
  std::uint8_t value = 0;
  for (auto _ : state) {
    ++value;
    for (std::size_t i = 0; i < pages; ++i) std::memset(memory + i * 4096, value, 1);
    benchmark::ClobberMemory();
    if (whole) {
      f.core().publish({1, 0}, bytes);
    } else {
      f.core().publish_written(1);
    }
  }
}

// The baselines: a hand-written loop with nothing around it.
void copy_and(benchmark::State& state, const cpu::LineOperation& operation) {
  auto& f = fixture<Full>();
  const std::size_t bytes = size_of(state);
  for (auto _ : state) {
    std::memcpy(f.memory(), f.local(), bytes);
    operation.apply(f.memory(), f.memory() + bytes);
    cpu::write_back_fence();
  }
}

void stream(benchmark::State& state, const cpu::CopyLines& lines) {
  auto& f = fixture<Full>();
  const std::size_t bytes = size_of(state);
  for (auto _ : state) {
    if (bytes < line_bytes) {
      cpu::stream_word(f.memory(), f.local());
    } else {
      lines.copy(f.memory(), f.local(), bytes);
    }
    cpu::write_back_fence();
  }
}

void drop_and_copy(benchmark::State& state, const cpu::LineOperation& operation) {
  auto& f = fixture<Full>();
  const std::size_t bytes = size_of(state);
  for (auto _ : state) {
    operation.apply(f.memory(), f.memory() + bytes);
    cpu::invalidate_fence();
    std::memcpy(f.local(), f.memory(), bytes);
    benchmark::ClobberMemory();
  }
}

// Sync words, without contention.
template <class C>
void word_load(benchmark::State& state) {
  auto& core = fixture<C>().core();
  const auto word = core.word({1, 2048});
  for (auto _ : state) benchmark::DoNotOptimize(core.load(word));
}
template <class C>
void word_store(benchmark::State& state) {
  auto& core = fixture<C>().core();
  const auto word = core.word({1, 2048});
  for (auto _ : state) core.store(word, 1);
}
template <class C>
void word_fetch_add(benchmark::State& state) {
  auto& core = fixture<C>().core();
  const auto word = core.word({1, 2048});
  for (auto _ : state) benchmark::DoNotOptimize(core.fetch_add(word, 1));
}

void sizes(benchmark::internal::Benchmark* b) {
  for (const int bytes : {8, 4 << 10, 64 << 10, 1 << 20}) b->Arg(bytes);
}

void regions(benchmark::internal::Benchmark* b) {
  for (const int bytes : {16 << 10, 64 << 10, 1 << 20, 16 << 20})
    for (const int pages : {0, 1, 4, bytes / 4096}) b->Args({bytes, pages});
}

void register_all() {
  using benchmark::RegisterBenchmark;
  RegisterBenchmark("region/whole", region<true>)->Apply(regions);
  RegisterBenchmark("region/written", region<false>)->Apply(regions);
  RegisterBenchmark("put/ours", put_ours)->Apply(sizes);
  RegisterBenchmark("publish/ours", publish_ours)->Apply(sizes);
  RegisterBenchmark("get/ours", get_ours)->Apply(sizes);
  for (const auto& operation : cpu::write_backs)
    if (operation.exists() && std::string(operation.name) != "clflush")  // some 20 times slower
      RegisterBenchmark((std::string("put/copy+") + operation.name).c_str(),
                        [&operation](benchmark::State& s) { copy_and(s, operation); })
          ->Apply(sizes);
  for (const auto& lines : cpu::streams)
    if (lines.exists())
      RegisterBenchmark((std::string("put/stream-") + lines.name).c_str(),
                        [&lines](benchmark::State& s) { stream(s, lines); })
          ->Apply(sizes);
  const cpu::LineOperation drop = cpu::invalidates[0];
  if (drop.exists())
    RegisterBenchmark((std::string("get/") + drop.name).c_str(), [drop](benchmark::State& s) {
      drop_and_copy(s, drop);
    })->Apply(sizes);
  RegisterBenchmark("load/full", word_load<Full>);
  RegisterBenchmark("load/none", word_load<None>);
  RegisterBenchmark("store/full", word_store<Full>);
  RegisterBenchmark("store/none", word_store<None>);
  RegisterBenchmark("fetch_add/full", word_fetch_add<Full>);
  RegisterBenchmark("fetch_add/none", word_fetch_add<None>);
}

}  // namespace
}  // namespace tombolo::flushed

int main(int argc, char** argv) {
  const tombolo::Status usable = tombolo::host::flush::available();
  if (!usable.ok()) {
    std::fprintf(stderr, "%s\n", usable.message().c_str());
    return 1;
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::AddCustomContext("policy", tombolo::host::flush::describe());
  tombolo::flushed::register_all();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
