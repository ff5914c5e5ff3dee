// SPDX-License-Identifier: Apache-2.0
// Purpose: the time of a family in another process of this host, created and synced at once.
// `tombolo bench svp` starts it; by itself:
//
//   tombolo-svp 2 tombolo-svp-remote-bench [--workers N] [--rounds N] [--quick] [--ways]
//
//   remote, polling             8 bytes there and back, while the other process polls, once each
//                               has a processor; beside it a cache line there and back between the
//                               two: the limit (coherent memory alone)
//   remote, asleep              the same after a pause in which the other process has gone to
//                               sleep; beside it a process that sleeps in the kernel's bare futex
//                               and answers by a store: the limit (likewise)
//   remote, 1 MiB by address    an array in shared memory, in turn with the first row
//   remote, WAY, N bytes        with --ways: an array there and back; remap: in shared memory
//
// A line of JSON for each, as contest.h has them: a sample is the median of a batch. Each process
// has the workers that TOMBOLO_SVP_WORKERS says; --workers is the number in the lines.
// Thread safety: -
#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/options.h"
#include "machine/waiting.h"
#include "runtime/engines/engines.h"
#include "runtime/options/options.h"
#include "svp/api/include/tombolo/svp.hpp"

namespace tombolo::svp {
namespace {

using Clock = std::chrono::steady_clock;

struct Choices {
  std::uint64_t workers = 1;
  std::uint64_t rounds = 3;
  bool quick = false;
  bool ways = false;

  unsigned sleeps() const { return quick ? 5 : 100; }
};

struct Measured {
  std::string benchmark;
  std::string runtime;
  std::function<void()> run;
  std::vector<double> seconds = {};  // of the batch
  std::vector<double> medians = {};

  void once() {
    const auto start = Clock::now();
    run();
    seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  void end_batch() {
    const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
    std::nth_element(seconds.begin(), middle, seconds.end());
    medians.push_back(*middle);
    seconds.clear();
  }
  void tell(const Choices& choices) const {
    const nlohmann::ordered_json line = {{"benchmark", benchmark},
                                         {"runtime", runtime},
                                         {"workers", choices.workers},
                                         {"tasks", 1},
                                         {"seconds", medians}};
    std::puts(line.dump().c_str());
  }
};

// Each `batch` times in turn.
void in_turn(std::vector<Measured> all, const Choices& choices, std::uint64_t batch) {
  for (std::uint64_t round = 0; round < choices.rounds; ++round) {
    for (std::uint64_t i = 0; i < batch; ++i)
      for (Measured& one : all) one.once();
    for (Measured& one : all) one.end_batch();
  }
  for (const Measured& one : all) one.tell(choices);
}

constexpr const char* ours = "families";
constexpr std::chrono::milliseconds settling{300};

using Words = std::atomic_ref<std::uint64_t>;
void answer(InOutArray<std::uint64_t> words, In<std::uint64_t> rounds) {
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    while (Words(words[0]).load() != round) machine::relax_processor();
    Words(words[8]).store(round);
  }
}
using Futexes = std::atomic_ref<std::uint32_t>;
void answer_asleep(InOutArray<std::uint32_t> words, In<std::uint32_t> rounds) {
  for (std::uint32_t round = 1; round <= rounds; ++round) {
    while (Futexes(words[0]).load() != round)
      syscall(SYS_futex, &words[0], FUTEX_WAIT, round - 1, nullptr, nullptr, 0);
    Futexes(words[16]).store(round);
  }
}
void next(In<std::int64_t> from, Out<std::int64_t> to) { *to = from + 1; }
void nothing(InOutArray<std::int32_t>) {}

void ping_pong(const Place& there, const Choices& choices, std::uint64_t batch) {
  SharedArray<std::uint64_t> words(16);
  const std::uint64_t rounds = choices.rounds * batch;
  auto family = create(there, remote<&answer>, std::span<std::uint64_t>(words), rounds);
  std::uint64_t round = 0;
  const auto once = [&] {
    Words(words[0]).store(++round);
    while (Words(words[8]).load() != round) machine::relax_processor();
  };
  in_turn({{.benchmark = "remote, polling", .runtime = "a cache line", .run = once}}, choices,
          batch);
  family.sync().rethrow();
}

// So many batches of calls behind a pause in which the other process falls asleep.
void after_pauses(Measured one, const Choices& choices) {
  for (std::uint64_t round = 0; round < choices.rounds; ++round) {
    for (unsigned i = 0; i < choices.sleeps(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
      one.once();
    }
    one.end_batch();
  }
  one.tell(choices);
}

void wakes(const Place& there, const Choices& choices) {
  SharedArray<std::uint32_t> words(32);
  const auto rounds = static_cast<std::uint32_t>(choices.rounds * choices.sleeps());
  auto family = create(there, remote<&answer_asleep>, std::span<std::uint32_t>(words), rounds);
  std::uint32_t round = 0;
  const auto once = [&] {
    Futexes(words[0]).store(++round);
    syscall(SYS_futex, &words[0], FUTEX_WAKE, 1, nullptr, nullptr, 0);
    while (Futexes(words[16]).load() != round) machine::relax_processor();
  };
  after_pauses({.benchmark = "remote, asleep", .runtime = "a futex", .run = once}, choices);
  family.sync().rethrow();
}

void scalars(const Place& there, const Choices& choices) {
  std::int64_t value = 0;
  const auto once = [&] {
    auto family = create(there, remote<&next>, value, value);
    family.sync();
  };
  SharedArray<std::int32_t> large(std::size_t{1} << 18);
  const auto by_address = [&] {
    auto family = create(there, remote<&nothing>, std::span<std::int32_t>(large));
    family.sync();
  };
  // The kernel may leave both processes on one processor for the first tenth of a second.
  if (!choices.quick)
    for (const auto start = Clock::now(); Clock::now() - start < settling;) once();
  in_turn({{.benchmark = "remote, polling", .runtime = ours, .run = once},
           {.benchmark = "remote, 1 MiB by address", .runtime = ours, .run = by_address}},
          choices, choices.quick ? 200u : 2000u);
  after_pauses({.benchmark = "remote, asleep", .runtime = ours, .run = once}, choices);
}

void ways(const Job& job, const Choices& choices) {
  for (std::size_t bytes = 8; bytes <= std::size_t{4} << 20; bytes *= 8) {
    std::vector<std::int32_t> plain(bytes / 4);
    SharedArray<std::int32_t> shared(bytes / 4);
    std::vector<Measured> all;
    for (const Transport way :
         {Transport::stream, Transport::direct, Transport::buffer, Transport::remap}) {
      const std::span<std::int32_t> data =
          way == Transport::remap ? std::span(shared.data(), shared.size()) : std::span(plain);
      const auto name = transport_names[static_cast<std::size_t>(way)];
      all.push_back({.benchmark = fmt::format("remote, {}, {} bytes", name, bytes),
                     .runtime = ours,
                     .run = [&job, way, data] {
                       auto family = create(job.place(1, way), remote<&nothing>, data);
                       family.sync();
                     }});
    }
    in_turn(std::move(all), choices, std::max<std::size_t>(20, 2000 / (1 + (bytes >> 14))));
  }
}

int measure(const Job& job, const Choices& choices) {
  if (job.processes() < 2) {
    fmt::print(stderr, "this program measures two processes: tombolo-svp 2 PROGRAM\n");
    return 1;
  }
  const runtime::Options options = runtime::read_environment();
  if (runtime::served({options.machine, options.native_atomics()}).traits().coherent) {
    ping_pong(job.place(1), choices, choices.quick ? 200u : 2000u);
    wakes(job.place(1), choices);
  }
  scalars(job.place(1), choices);
  if (choices.ways) ways(job, choices);
  std::fflush(stdout);
  return 0;
}

bool read(int argc, char** argv, Choices& out) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    if (option == "--quick" || option == "--ways") {
      (option == "--quick" ? out.quick : out.ways) = true;
      continue;
    }
    if (++i == argc || (option != "--workers" && option != "--rounds")) return false;
    const auto number = number_in(argv[i]);
    if (!number || *number == 0) return false;
    (option == "--workers" ? out.workers : out.rounds) = *number;
  }
  return true;
}

}  // namespace
}  // namespace tombolo::svp

int main(int argc, char** argv) {
  tombolo::svp::Choices choices;
  if (!tombolo::svp::read(argc, argv, choices)) {
    fmt::print(stderr,
               "usage: tombolo-svp-remote-bench [--workers N] [--rounds N] [--quick] [--ways]\n");
    return 2;
  }
  return tombolo::svp::run(
      [&choices](tombolo::svp::Job& job) { return tombolo::svp::measure(job, choices); });
}
