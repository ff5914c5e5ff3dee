// SPDX-License-Identifier: Apache-2.0
// Purpose: the time of a family in another process, created and synced at once.
//
//   tombolo-svp 2 svp_job_remote_bench [ROUNDS]
//
//   line       there and back of a cache line between the two processes: the limit (coherent
//              memory alone)
//   scalar     8 bytes there and back, while the other process polls
//   asleep     the same after a pause in which the other process has gone to sleep
//   address    an array of 1 MiB in shared memory, by its address
//   stream, direct, buffer, remap
//              an array there and back, 8 bytes to 4 MiB; remap: in shared memory
//
// Each line: name, bytes, and the 10th, 50th and 90th percentile in ns. Ways of one size are
// measured in turn.
// Thread safety: -
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "machine/waiting.h"
#include "runtime/engines/engines.h"
#include "runtime/options/options.h"
#include "svp/svp.h"

namespace tombolo::svp {
namespace {

using Clock = std::chrono::steady_clock;

struct Measured {
  std::string name;
  std::size_t bytes = 0;
  std::function<void()> run;
  std::vector<double> ns = {};

  void once() {
    const auto start = Clock::now();
    run();
    ns.push_back(std::chrono::duration<double, std::nano>(Clock::now() - start).count());
  }
  void tell() {
    std::sort(ns.begin(), ns.end());
    const auto part = [&](std::size_t percent) { return ns[(ns.size() - 1) * percent / 100]; };
    fmt::print("{:8} {:8} {:12.0f} {:12.0f} {:12.0f}\n", name, bytes, part(10), part(50), part(90));
  }
};

void in_turn(std::vector<Measured> all, int rounds) {
  for (int round = 0; round < rounds; ++round)
    for (Measured& one : all) one.once();
  for (Measured& one : all) one.tell();
}

using Words = std::atomic_ref<std::uint64_t>;
void answer(InOutArray<std::uint64_t> words, In<std::uint64_t> rounds) {
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    while (Words(words[0]).load() != round) machine::relax_processor();
    Words(words[8]).store(round);
  }
}
void next(In<std::int64_t> from, Out<std::int64_t> to) { *to = from + 1; }
void nothing(InOutArray<std::int32_t>) {}

void ping_pong(const Place& there, std::uint64_t rounds) {
  SharedArray<std::uint64_t> words(16);
  auto family = create(there, remote<&answer>, std::span<std::uint64_t>(words), rounds);
  std::uint64_t round = 0;
  Measured line{.name = "line", .bytes = 8, .run = [&] {
                  Words(words[0]).store(++round);
                  while (Words(words[8]).load() != round) machine::relax_processor();
                }};
  while (round < rounds) line.once();
  family.sync().rethrow();
  line.tell();
}

void scalars(const Place& there, int rounds) {
  std::int64_t value = 0;
  const auto once = [&] {
    auto family = create(there, remote<&next>, value, value);
    family.sync();
  };
  SharedArray<std::int32_t> large(std::size_t{1} << 18);
  std::vector<Measured> all;
  all.push_back({.name = "scalar", .bytes = 8, .run = once});
  all.push_back({.name = "address", .bytes = large.size() * 4, .run = [&] {
                   auto family = create(there, remote<&nothing>, std::span<std::int32_t>(large));
                   family.sync();
                 }});
  in_turn(std::move(all), rounds);
  Measured asleep{.name = "asleep", .bytes = 8, .run = once};
  for (int round = 0; round < std::min(rounds, 300); ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    asleep.once();
  }
  asleep.tell();
}

void ways(const Job& job, int rounds) {
  for (std::size_t bytes = 8; bytes <= std::size_t{4} << 20; bytes *= 8) {
    std::vector<std::int32_t> plain(bytes / 4);
    SharedArray<std::int32_t> shared(bytes / 4);
    std::vector<Measured> all;
    for (const Carriage way :
         {Carriage::stream, Carriage::direct, Carriage::buffer, Carriage::remap}) {
      const std::span<std::int32_t> data =
          way == Carriage::remap ? std::span(shared.data(), shared.size()) : std::span(plain);
      all.push_back({.name = std::string(carriage_names[static_cast<std::size_t>(way)]),
                     .bytes = bytes,
                     .run = [&job, way, data] {
                       auto family = create(job.place(1, way), remote<&nothing>, data);
                       family.sync();
                     }});
    }
    in_turn(std::move(all), std::max(20, rounds / (1 + static_cast<int>(bytes >> 14))));
  }
}

int measure(const Job& job, int rounds) {
  if (job.processes() < 2) {
    fmt::print(stderr, "this program measures two processes: tombolo-svp 2 PROGRAM\n");
    return 1;
  }
  const runtime::Options options = runtime::read_environment();
  if (runtime::served({options.machine, options.native_atomics}).traits().coherent)
    ping_pong(job.place(1), static_cast<std::uint64_t>(rounds));
  scalars(job.place(1), rounds);
  ways(job, rounds);
  return 0;
}

}  // namespace
}  // namespace tombolo::svp

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 5000;
  return tombolo::svp::run(
      [rounds](tombolo::svp::Job& job) { return tombolo::svp::measure(job, rounds); });
}
