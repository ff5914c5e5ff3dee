// SPDX-License-Identifier: Apache-2.0
// Purpose: the costs of a page store by faults, by each mechanism, for a page of 4 KiB, in one
// thread, whose "home" is a buffer in its cache.
//
//   floor/...            a copy of a page, and a fault that the kernel resolves by itself
//
//   for each mechanism:
//     read_miss/again    the page is not cached, and its memory is still there; in random order
//     read_miss/new      a page that was never there, into a cache that is not full
//     read_miss/evicts   likewise, in the place of another page
//     write_miss/...     likewise
//     first_write        the page is readable: the twin is made
//     invalidate/n       n scattered pages, one by one
//     invalidate_all/n   within one call of the runtime
//     forbid/n, forbid_all/n   likewise, for writable pages
//   written/n            the list of 64 written pages among n cached ones
//
// Thread safety: -
#include <benchmark/benchmark.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "dsm/pages/fault_pages.h"
#include "dsm/protocol/page_diff.h"

namespace tombolo::dsm {
namespace {

using host::FaultMechanism;
using Clock = std::chrono::steady_clock;

constexpr std::size_t page_bytes = 4096;
constexpr Page many = 4096;

double seconds_of(const auto& body) {
  const auto start = Clock::now();
  body();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Fetches from a buffer.
class FromBuffer : public MissHandler {
 public:
  explicit FromBuffer(FaultPages& pages) : pages_(pages), home_(page_bytes, std::byte{1}) {}
  Status read_miss(Page page) override {
    if (pages_.full()) pages_.invalidate(pages_.victim());
    pages_.install(page, home_);
    return {};
  }
  Status write_miss(Page page) override {
    if (pages_.lookup(page) == nullptr) TOMBOLO_TRY(read_miss(page));
    pages_.make_twin(page);
    pages_.allow_writes(page);
    return {};
  }

 private:
  FaultPages& pages_;
  PageBytes home_;
};

class Fixture {
 public:
  Fixture(FaultMechanism mechanism, Page pages, std::uint32_t cached_pages) : order_(pages) {
    const Status made =
        FaultPages::create({.pages = pages, .page_bytes = page_bytes, .cached_pages = cached_pages},
                           {.mechanism = mechanism}, pages_);
    TOMBOLO_CHECK(made.ok(), "benchmark: {}", made.message());
    handler_ = std::make_unique<FromBuffer>(*pages_);
    pages_->on_miss(*handler_);
    std::iota(order_.begin(), order_.end(), Page{0});
  }
  void shuffle() {
    Random random = Random::stream(1, 1);
    for (std::size_t i = order_.size(); i > 1; --i)
      std::swap(order_[i - 1], order_[random.below(i)]);
  }
  FaultPages& pages() { return *pages_; }
  const std::vector<Page>& order() const { return order_; }
  volatile char& at(Page page) {
    return *reinterpret_cast<char*>(pages_->memory().data() + page * page_bytes);
  }
  void load_all() {
    for (const Page page : order_) benchmark::DoNotOptimize(static_cast<char>(at(page)));
  }
  void store_all() {
    for (const Page page : order_) at(page) = 1;
  }
  void drop_all() {
    const FaultPages::RuntimeCall call(*pages_);
    for (const Page page : pages_->cached()) pages_->invalidate(page);
  }

 private:
  std::unique_ptr<FaultPages> pages_;
  std::unique_ptr<FromBuffer> handler_;
  std::vector<Page> order_;
};

void report(benchmark::State& state, double operations) {
  state.counters["page"] =
      benchmark::Counter(operations * static_cast<double>(state.iterations()),
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

// ---- Misses -------------------------------------------------------------------------------------

enum class How { again, fresh, evicts };

void miss(benchmark::State& state, FaultMechanism mechanism, bool write, How how) {
  const auto access = [write](Fixture& on) { write ? on.store_all() : on.load_all(); };
  const std::uint32_t cached = how == How::evicts ? many / 4 : 2 * many;
  auto fixture = std::make_unique<Fixture>(mechanism, many, cached);
  if (how == How::again) fixture->shuffle();
  if (how != How::fresh) access(*fixture);
  for (auto _ : state) {
    if (how == How::again) fixture->drop_all();
    if (how == How::fresh) {
      fixture.reset();
      fixture = std::make_unique<Fixture>(mechanism, many, cached);
    }
    state.SetIterationTime(seconds_of([&] { access(*fixture); }));
  }
  report(state, many);
}

void first_write(benchmark::State& state, FaultMechanism mechanism) {
  Fixture fixture(mechanism, many, 2 * many);
  fixture.shuffle();
  fixture.store_all();
  for (auto _ : state) {
    {
      const FaultPages::RuntimeCall call(fixture.pages());
      for (const Page page : fixture.order()) fixture.pages().forbid_writes(page);
    }
    state.SetIterationTime(seconds_of([&] { fixture.store_all(); }));
  }
  report(state, many);
}

// ---- Changes ------------------------------------------------------------------------------------

// n pages of which no two are neighbours.
void change(benchmark::State& state, FaultMechanism mechanism, bool together,
            void (FaultPages::*operation)(Page)) {
  const auto n = static_cast<Page>(state.range(0));
  Fixture fixture(mechanism, many, 2 * many);
  fixture.shuffle();
  for (auto _ : state) {
    fixture.store_all();
    state.SetIterationTime(seconds_of([&] {
      std::unique_ptr<FaultPages::RuntimeCall> call;
      if (together) call = std::make_unique<FaultPages::RuntimeCall>(fixture.pages());
      Page left = n;
      for (const Page page : fixture.order()) {
        if (page % 2 == 0) continue;
        if (left-- == 0) break;
        (fixture.pages().*operation)(page);
      }
    }));
  }
  report(state, static_cast<double>(n));
}

void list_written(benchmark::State& state) {
  const auto n = static_cast<Page>(state.range(0));
  Fixture fixture(FaultMechanism::automatic, n, static_cast<std::uint32_t>(2 * n));
  fixture.load_all();
  for (Page page = 0; page < 64; ++page) fixture.at(page * (n / 64)) = 1;
  for (auto _ : state) benchmark::DoNotOptimize(fixture.pages().written());
}

// ---- Floors -------------------------------------------------------------------------------------

void copy_page(benchmark::State& state) {
  PageBytes from(page_bytes, std::byte{1});
  PageBytes to(page_bytes);
  for (auto _ : state) {
    copy(from, to);
    benchmark::DoNotOptimize(to.data());
    benchmark::ClobberMemory();
  }
}

// The page is in the file, and not in the page table.
void native_fault(benchmark::State& state) {
  const int file = memfd_create("floor", MFD_CLOEXEC);
  TOMBOLO_CHECK(ftruncate(file, many * page_bytes) == 0, "benchmark: ftruncate");
  auto* const at = static_cast<volatile char*>(
      mmap(nullptr, many * page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
  madvise(const_cast<char*>(at), many * page_bytes, MADV_RANDOM);
  for (Page page = 0; page < many; ++page) at[page * page_bytes] = 1;
  for (auto _ : state) {
    madvise(const_cast<char*>(at), many * page_bytes, MADV_DONTNEED);
    state.SetIterationTime(seconds_of([&] {
      for (Page page = 0; page < many; ++page) at[page * page_bytes] = 2;
    }));
  }
  munmap(const_cast<char*>(at), many * page_bytes);
  close(file);
  report(state, many);
}

// ---- Rows ---------------------------------------------------------------------------------------

template <class Body>
auto* row(const std::string& name, Body&& body) {
  return benchmark::RegisterBenchmark(name.c_str(), std::forward<Body>(body))->UseManualTime();
}

void rows_of(FaultMechanism mechanism) {
  const std::string prefix = std::string(host::name_of(mechanism)) + "/";
  for (const bool write : {false, true})
    for (const auto& [how, name] : {std::pair{How::again, "again"}, std::pair{How::fresh, "new"},
                                    std::pair{How::evicts, "evicts"}})
      row(prefix + (write ? "write_miss/" : "read_miss/") + name,
          [=, how = how](auto& state) { miss(state, mechanism, write, how); });
  row(prefix + "first_write", [=](auto& state) { first_write(state, mechanism); });
  for (const bool together : {false, true}) {
    const std::string all = together ? "_all" : "";
    row(prefix + "invalidate" + all,
        [=](auto& state) { change(state, mechanism, together, &FaultPages::invalidate); })
        ->Arg(1)
        ->Arg(512);
    row(prefix + "forbid" + all,
        [=](auto& state) { change(state, mechanism, together, &FaultPages::forbid_writes); })
        ->Arg(1)
        ->Arg(512);
  }
}

}  // namespace
}  // namespace tombolo::dsm

int main(int argc, char** argv) {
  using namespace tombolo::dsm;
  benchmark::Initialize(&argc, argv);
  benchmark::RegisterBenchmark("floor/copy_page", copy_page);
  row("floor/native_fault", native_fault);
  for (const auto mechanism : {FaultMechanism::userfault, FaultMechanism::protection})
    if (tombolo::host::available(mechanism).ok()) rows_of(mechanism);
  benchmark::RegisterBenchmark("written", list_written)->Arg(1024)->Arg(65536);
  benchmark::RunSpecifiedBenchmarks();
}
