// SPDX-License-Identifier: Apache-2.0
// Purpose: the time of a family in a process that only the host MPI reaches, created and synced at
// once, beside that MPI's own ping-pong of as many bytes, in turn.
//
//   TOMBOLO_SVP_SHARE=none TOMBOLO_SVP_WORKERS=1 mpiexec -n 2 tombolo-svp-ping-pong-X [ROUNDS]
//
// A line of JSON for each way and size: the 10th, 50th and 90th percentile in ns, there and back.
// `tombolo bench svp --mpi X` starts it.
// Thread safety: -
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "base/option_table.h"
#include "host/mpi/host.h"
#include "runtime/host_mpi/module.h"
#include "svp/api/include/tombolo/svp.hpp"

namespace tombolo::svp {
namespace {

using Clock = std::chrono::steady_clock;
using mpi::host;

constexpr int tag = 7;
constexpr int turns = 20;

void answer(In<int> rounds, InOutArray<std::byte> bytes) {
  const int n = static_cast<int>(bytes.size());
  for (int round = 0; round < rounds; ++round) {
    host().Recv(bytes.data(), n, MPI_BYTE, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    host().Send(bytes.data(), n, MPI_BYTE, 0, tag, MPI_COMM_WORLD);
  }
}
void next(In<std::int64_t> from, Out<std::int64_t> to) { *to = from + 1; }
void nothing(InOutArray<std::byte>) {}

struct Measured {
  std::string name;
  std::vector<double> ns = {};

  void once(const std::function<void()>& run) {
    const auto start = Clock::now();
    run();
    ns.push_back(std::chrono::duration<double, std::nano>(Clock::now() - start).count());
  }
  void tell(std::size_t bytes) {
    std::sort(ns.begin(), ns.end());
    const auto part = [&](std::size_t percent) { return ns[(ns.size() - 1) * percent / 100]; };
    fmt::print(
        "{{\"benchmark\": \"ping-pong\", \"bytes\": {}, \"runtime\": \"{}\", \"ns\": "
        "[{:.0f}, {:.0f}, {:.0f}]}}\n",
        bytes, name, part(10), part(50), part(90));
  }
};

void beside(const Place& there, std::size_t bytes, int rounds,
            const std::function<void()>& family) {
  std::vector<std::byte> data(bytes);
  const int n = static_cast<int>(bytes);
  Measured ours{.name = "families"};
  Measured theirs{.name = "MPI"};
  for (int turn = 0; turn < turns; ++turn) {
    for (int round = 0; round < rounds; ++round) ours.once(family);
    auto other = create(there, remote<&answer>, rounds, data);
    for (int round = 0; round < rounds; ++round)
      theirs.once([&] {
        host().Send(data.data(), n, MPI_BYTE, 1, tag, MPI_COMM_WORLD);
        host().Recv(data.data(), n, MPI_BYTE, 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      });
    other.sync().rethrow();
  }
  ours.tell(bytes);
  theirs.tell(bytes);
}

int measure(const Job& job, int rounds) {
  if (job.processes() != 2) {
    fmt::print(stderr, "this program measures two processes: mpiexec -n 2 PROGRAM\n");
    return 1;
  }
  const Place there = job.place(1);
  std::int64_t value = 0;
  beside(there, sizeof value, rounds, [&] {
    auto family = create(there, remote<&next>, value, value);
    family.sync();
  });
  for (const std::size_t bytes : {std::size_t{64} << 10, std::size_t{1} << 20}) {
    std::vector<std::byte> data(bytes);
    beside(there, bytes, std::max(1, rounds / 10), [&] {
      auto family = create(there, remote<&nothing>, data);
      family.sync();
    });
  }
  return 0;
}

Status initialize() {
  TOMBOLO_TRY(runtime::load_mpi({.user = "this program", .library = &options::svp_mpi}));
  TOMBOLO_TRY(mpi::check_host());
  int level = 0;
  TOMBOLO_HOST(Init_thread)(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level);
  return {};
}

}  // namespace
}  // namespace tombolo::svp

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 100;
  if (const tombolo::Status status = tombolo::svp::initialize(); !status.ok()) {
    fmt::print(stderr, "{}\n", status.message());
    return 1;
  }
  const int result = tombolo::svp::run(
      [rounds](tombolo::svp::Job& job) { return tombolo::svp::measure(job, rounds); });
  TOMBOLO_HOST(Finalize)();
  return result;
}
