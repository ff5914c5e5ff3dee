// SPDX-License-Identifier: Apache-2.0
#include "experiments/dht.h"

#include <numeric>

#include "experiments/library.h"
#include "experiments/measure.h"
#include "experiments/passive_target.h"
#include "windows/window.h"

namespace tombolo::experiments {
namespace {

using machine::Home;
using scc::CoreId;
using simulator::Duration;
using Window = windows::Window<scc::Core>;

constexpr int kWrites = 101;  // 001 section 6.4
constexpr int kQuickWrites = 9;
constexpr std::uint64_t kLargest = 1024;
// Between the readers' start and the put: that all of them wait by then. The paper does not say how
// it ensures it.
constexpr std::int64_t kHeadStartMicroseconds = 100;

struct Readers {
  std::string name;
  std::vector<std::uint32_t> cores;
};

std::vector<std::uint32_t> range(std::uint32_t first, std::uint32_t last) {
  std::vector<std::uint32_t> cores(last - first + 1);
  std::iota(cores.begin(), cores.end(), first);
  return cores;
}

std::vector<std::uint32_t> both(std::vector<std::uint32_t> a, const std::vector<std::uint32_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Close: in the domain of the writer's controller.
std::vector<Readers> all_readers() {
  return {{"0", {}},
          {"1-close", {1}},
          {"1-distant", {6}},
          {"11-close", both(range(1, 5), range(12, 17))},
          {"11-distant", both(range(6, 11), range(18, 22))},
          {"47", range(1, 47)}};
}

void write(Library& mpi, Window& window, std::uint64_t bytes, int writes,
           std::vector<double>* times) {
  scc::Cpu& cpu = window.core().cpu();
  const std::byte* const entry = window.core().allocate(kLargest);
  for (int i = 0; i < writes; ++i) {
    mpi.barrier();
    mpi.lock(sync::Access::exclusive, 0);
    mpi.barrier();  // the readers set out
    cpu.compute(Duration::microseconds(kHeadStartMicroseconds));
    times->push_back(microseconds(time_of(cpu, [&] {
      mpi.put(0, 0, entry, bytes);
      mpi.unlock(0);
    })));
  }
}

void read(Library& mpi, Window& window, std::uint64_t bytes, int writes) {
  std::byte* const entry = window.core().allocate(kLargest);
  for (int i = 0; i < writes; ++i) {
    mpi.barrier();
    mpi.barrier();
    mpi.lock(sync::Access::shared, 0);
    mpi.get(0, 0, entry, bytes);
    mpi.unlock(0);
  }
}

Status measure(const Context& context, Recorder& recorder, const LockScheme& scheme,
               const Readers& readers, std::uint64_t bytes, std::vector<double>* times) {
  const int writes = context.repetitions(kWrites, kQuickWrites);
  scc::JobShape shape;
  shape.processes = static_cast<std::uint32_t>(readers.cores.size()) + 1;
  shape.cores = {CoreId(0)};
  for (const std::uint32_t core : readers.cores) shape.cores.emplace_back(core);
  shape.sync_bytes = Window::sync_bytes(shape.processes);
  shape.data_bytes = kLargest;
  shape.placement.own = scc::MemoryType::ncm;
  shape.placement.peers = scc::MemoryType::ncm;
  return run_job(context, recorder, shape, [&](const machine::Attachment& at, scc::Cpu& cpu) {
    Window window(at, {.locks = scheme.kind, .backoff = scheme.backoff});
    Library mpi(window, cpu);
    if (scheme.with_lock_all && at.self == 0) {
      mpi.lock_all();
      mpi.unlock_all();
    }
    if (at.self == 0) {
      write(mpi, window, bytes, writes, times);
    } else {
      read(mpi, window, bytes, writes);
    }
  });
}

std::vector<Point> points(const Context& context) {
  std::vector<Point> all;
  for (const LockScheme& scheme : {gbh_with_backoff(), mcs_wp()})
    for (const Readers& readers : all_readers())
      for (const std::uint64_t bytes : {32u, 512u, 1024u}) {
        const std::string series = scheme.name + "/" + readers.name;
        all.push_back({fmt::format("{}-{}-{}", scheme.name, readers.name, bytes),
                       context.quick ? 0.1 : 0.02 * (1 + double(readers.cores.size())),
                       std::uint64_t{64} << 20, [=](const Context& c, Recorder& r) -> Status {
                         std::vector<double> times;
                         TOMBOLO_TRY(measure(c, r, scheme, readers, bytes, &times));
                         r.row(row_of(series, double(bytes), times, "us"));
                         return {};
                       }});
      }
  return all;
}

}  // namespace

Experiment dht() {
  return {"dht", "A writer of a distributed hash table among waiting readers", points};
}

}  // namespace tombolo::experiments
