// SPDX-License-Identifier: Apache-2.0
#include "experiments/dht/dht.h"

#include <numeric>

#include "experiments/common/lock_schemes.h"
#include "experiments/common/measure.h"

namespace tombolo::experiments {
namespace {

using scc::CoreId;

constexpr int write_count = 101;  // 001 section 6.4
constexpr int quick_writes = 9;
constexpr std::uint64_t largest = 1024;

std::vector<std::uint32_t> range(std::uint32_t first, std::uint32_t last) {
  std::vector<std::uint32_t> cores(last - first + 1);
  std::iota(cores.begin(), cores.end(), first);
  return cores;
}

std::vector<std::uint32_t> both(std::vector<std::uint32_t> a, const std::vector<std::uint32_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

template <class Mpi>
void write(Mpi& mpi, scc::detail::Base& core, std::uint64_t bytes, int writes,
           std::vector<double>* times) {
  scc::Cpu& cpu = core.cpu();
  const std::byte* const entry = core.allocate(largest);
  for (int i = 0; i < writes; ++i) {
    mpi.barrier();
    mpi.lock(sync::Access::exclusive, 0);
    mpi.barrier();  // the readers set out
    times->push_back(microseconds(time_of(cpu, [&] {
      mpi.put(0, 0, entry, bytes);
      mpi.unlock(0);
    })));
  }
}

template <class Mpi>
void read(Mpi& mpi, scc::detail::Base& core, std::uint64_t bytes, int writes) {
  std::byte* const entry = core.allocate(largest);
  for (int i = 0; i < writes; ++i) {
    mpi.barrier();
    mpi.barrier();
    mpi.lock(sync::Access::shared, 0);
    mpi.get(0, 0, entry, bytes);
    mpi.unlock(0);
  }
}

Status measure(const Context& context, Recorder& recorder, const LockScheme& scheme,
               const DhtReaders& readers, std::uint64_t bytes, std::vector<double>* times) {
  const int writes = context.repetitions(write_count, quick_writes);
  scc::JobShape shape;
  shape.processes = static_cast<std::uint32_t>(readers.cores.size()) + 1;
  shape.cores = {CoreId(0)};
  for (const std::uint32_t core : readers.cores) shape.cores.emplace_back(core);
  shape.data_bytes = largest;
  shape.placement.own = scc::MemoryType::ncm;
  shape.placement.peers = scc::MemoryType::ncm;
  return run_with_locks(context, recorder, shape, scheme, [&](auto& core, auto& mpi) {
    if (core.self() == 0) {
      write(mpi, core, bytes, writes, times);
    } else {
      read(mpi, core, bytes, writes);
    }
  });
}

std::vector<Point> points(const Context& context) {
  std::vector<Point> all;
  for (const LockScheme& scheme :
       {gbh_with_backoff(), mcs_wp(), our_best_effort(), our_writer_preference()})
    for (const DhtReaders& readers : dht_readers())
      for (const std::uint64_t bytes : {32u, 512u, 1024u}) {
        const std::string series = scheme.name + "/" + readers.name;
        all.push_back({fmt::format("{}-{}-{}", scheme.name, readers.name, bytes),
                       context.quick ? 0.1 : 0.02 * (1 + double(readers.cores.size())),
                       memory_of_chip(48), [=](const Context& c, Recorder& r) -> Status {
                         std::vector<double> times;
                         TOMBOLO_TRY(measure(c, r, scheme, readers, bytes, &times));
                         r.row(row_of(series, double(bytes), times, "us"));
                         return {};
                       }});
      }
  return all;
}

}  // namespace

std::vector<DhtReaders> dht_readers() {
  return {{"0", {}},
          {"1-close", {1}},
          {"1-distant", {6}},
          {"11-close", both(range(1, 5), range(12, 17))},
          {"11-distant", both(range(6, 11), range(18, 22))},
          {"47", range(1, 47)}};
}

Experiment dht() {
  return {"dht", "A writer of a distributed hash table among waiting readers", points};
}

}  // namespace tombolo::experiments
