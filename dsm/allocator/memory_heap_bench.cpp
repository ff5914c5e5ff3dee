// SPDX-License-Identifier: Apache-2.0
// Purpose: the heap beside the C library's: the time of malloc and free by one thread, from one
// thread to another, and the memory that programs need at their peak for each byte that is live
// then. Names read allocator/operation/size.
//
//   dsm_allocator_memory_heap_bench
//   dsm_allocator_memory_heap_bench --benchmark_filter=c_library/peak_growing
//
// The C library keeps memory of earlier benchmarks: its peaks are right in a process of their own.
//
// Thread safety: -
#include <benchmark/benchmark.h>
#include <malloc.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "dsm/allocator/testing/plain_memory.h"

namespace tombolo::dsm {
namespace {

using testing::PlainMemory;
using testing::PlainProgram;
using Clock = std::chrono::steady_clock;

constexpr std::size_t heap_bytes = std::size_t{512} << 20;

// The heap of one thread of a program.
class Ours {
 public:
  static PlainProgram make(Thread threads) {
    return PlainProgram({.threads = threads, .bytes = heap_bytes});
  }
  Ours(PlainProgram& program, Thread self) : memory_(program, self) {
    const Status opened = heap_.open(memory_, memory_.memory(), 0);
    TOMBOLO_CHECK(opened.ok(), "heap benchmark: {}", opened.message());
  }
  void* malloc(std::size_t bytes) { return heap_.malloc(bytes); }
  void* realloc(void* block, std::size_t bytes) { return heap_.realloc(block, bytes); }
  void free(void* block) { heap_.free(block); }
  std::size_t held() const { return heap_.figures().in_use * chunk_bytes; }

 private:
  PlainMemory memory_;
  MemoryHeap heap_;
};

class TheirsInC {
 public:
  struct Nothing {};
  static Nothing make(Thread) { return {}; }
  TheirsInC(Nothing&, Thread) : before_(taken()) {}
  void* malloc(std::size_t bytes) { return std::malloc(bytes); }
  void* realloc(void* block, std::size_t bytes) { return std::realloc(block, bytes); }
  void free(void* block) { std::free(block); }
  std::size_t held() const { return taken() - before_; }

 private:
  static std::size_t taken() {
    malloc_trim(0);
    const auto info = mallinfo2();
    return info.arena + info.hblkhd;
  }
  std::size_t before_;
};

template <class Heap>
void pair(benchmark::State& state) {
  auto program = Heap::make(1);
  Heap heap(program, 0);
  const auto bytes = static_cast<std::size_t>(state.range(0));
  for (auto _ : state) {
    void* const block = heap.malloc(bytes);
    benchmark::DoNotOptimize(block);
    heap.free(block);
  }
}

// Fifty blocks, then the end of all: none comes back at once. The time is of one block.
template <class Heap>
void fifty(benchmark::State& state) {
  auto program = Heap::make(1);
  Heap heap(program, 0);
  const auto bytes = static_cast<std::size_t>(state.range(0));
  std::array<void*, 50> blocks;
  while (state.KeepRunningBatch(blocks.size())) {
    for (void*& block : blocks) benchmark::DoNotOptimize(block = heap.malloc(bytes));
    for (void* block : blocks) heap.free(block);
  }
}

// Blocks of 64 bytes from one thread to another, through a queue of 1024. The time is of one block.
template <class Heap>
void hand_on(benchmark::State& state) {
  constexpr std::size_t blocks = 500'000;
  for (auto _ : state) {
    auto program = Heap::make(2);
    std::vector<std::atomic<void*>> queue(1024);
    const auto start = Clock::now();
    std::thread consumer([&] {
      Heap heap(program, 1);
      for (std::size_t i = 0; i < blocks; ++i) {
        void* block = nullptr;
        while ((block = queue[i % queue.size()].load(std::memory_order_acquire)) == nullptr)
          std::this_thread::yield();
        queue[i % queue.size()].store(nullptr, std::memory_order_release);
        heap.free(block);
      }
    });
    Heap heap(program, 0);
    for (std::size_t i = 0; i < blocks; ++i) {
      void* const block = heap.malloc(64);
      while (queue[i % queue.size()].load(std::memory_order_acquire) != nullptr)
        std::this_thread::yield();
      queue[i % queue.size()].store(block, std::memory_order_release);
    }
    consumer.join();
    state.SetIterationTime(std::chrono::duration<double>(Clock::now() - start).count() / blocks);
  }
}

struct Peaks {
  std::size_t live = 0;
  std::size_t held = 0;
  void look(std::size_t live_now, std::size_t held_now) {
    live = std::max(live, live_now);
    held = std::max(held, held_now);
  }
  void report(benchmark::State& state) const {
    state.counters["live_MB"] = static_cast<double>(live) / 1e6;
    state.counters["held_MB"] = static_cast<double>(held) / 1e6;
    state.counters["live_to_held"] = static_cast<double>(live) / static_cast<double>(held);
  }
};

// Blocks of 16 bytes to `most`, as many of each power of two; 64 MB of them live, and replaced at
// random.
template <class Heap>
void peak_random(benchmark::State& state, std::size_t most) {
  constexpr std::size_t target = 64'000'000;
  for (auto _ : state) {
    auto program = Heap::make(1);
    Heap heap(program, 0);
    Random random(5);
    Peaks peaks;
    std::size_t live = 0;
    std::vector<std::pair<void*, std::size_t>> blocks;
    for (int step = 0; step < 1'000'000; ++step) {
      while (live > target) {
        std::swap(blocks[random.below(blocks.size())], blocks.back());
        heap.free(blocks.back().first);
        live -= blocks.back().second;
        blocks.pop_back();
      }
      const std::uint64_t bits = 4 + random.below(std::bit_width(most) - 4);
      const std::size_t bytes = (std::size_t{1} << bits) / 2 + random.below(std::size_t{1} << bits);
      blocks.emplace_back(heap.malloc(bytes), bytes);
      live += bytes;
      if (step % 1000 == 0) peaks.look(live, heap.held());
    }
    peaks.look(live, heap.held());
    for (const auto& block : blocks) heap.free(block.first);
    peaks.report(state);
  }
}

// Eight arrays that grow by half, one after the other, from 64 bytes to 8 MB.
template <class Heap>
void peak_growing(benchmark::State& state) {
  for (auto _ : state) {
    auto program = Heap::make(1);
    Heap heap(program, 0);
    Peaks peaks;
    std::array<void*, 8> arrays{};
    std::size_t before = 0;
    for (std::size_t bytes = 64; bytes < 8'000'000; before = bytes, bytes += bytes / 2)
      for (std::size_t i = 0; i < arrays.size(); ++i) {
        arrays[i] = heap.realloc(arrays[i], bytes);
        peaks.look((i + 1) * bytes + (arrays.size() - i - 1) * before, heap.held());
      }
    for (void* array : arrays) heap.free(array);
    peaks.report(state);
  }
}

template <class Heap>
void add_all(const std::string& name) {
  const auto sizes = {16, 256, 4096, 65536, 4 << 20};
  for (const int bytes : sizes) {
    benchmark::RegisterBenchmark((name + "/pair").c_str(), pair<Heap>)->Arg(bytes);
    benchmark::RegisterBenchmark((name + "/fifty").c_str(), fifty<Heap>)->Arg(bytes);
  }
  benchmark::RegisterBenchmark((name + "/hand_on").c_str(), hand_on<Heap>)
      ->UseManualTime()
      ->Iterations(5);
  for (const std::size_t most : {std::size_t{1024}, std::size_t{262144}})
    benchmark::RegisterBenchmark((name + "/peak_random/" + std::to_string(most)).c_str(),
                                 peak_random<Heap>, most)
        ->Iterations(1);
  benchmark::RegisterBenchmark((name + "/peak_growing").c_str(), peak_growing<Heap>)->Iterations(1);
}

}  // namespace
}  // namespace tombolo::dsm

int main(int argc, char** argv) {
  tombolo::dsm::add_all<tombolo::dsm::Ours>("tombolo");
  tombolo::dsm::add_all<tombolo::dsm::TheirsInC>("c_library");
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
}
