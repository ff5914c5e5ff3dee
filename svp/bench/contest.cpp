// SPDX-License-Identifier: Apache-2.0
#include "svp/bench/contest.h"

#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#ifdef TOMBOLO_HAS_TBB
#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#endif

namespace tombolo::svp::bench {

using Clock = std::chrono::steady_clock;

Contest::Contest(const Settings& settings, std::string benchmark, double tasks)
    : settings_(settings), benchmark_(std::move(benchmark)), tasks_(tasks) {}

void Contest::add(std::string runtime, std::function<void()> run, double tasks) {
  all_.push_back({std::move(runtime), std::move(run), tasks > 0 ? tasks : tasks_});
}

void Contest::add_inside(std::string runtime, std::function<void()> run) {
  add(std::move(runtime), std::move(run));
  all_.back().inside = true;
}

void Contest::measure() {
  std::erase_if(all_,
                [&](const Contestant& one) { return !one.runtime.starts_with(settings_.runtime); });
  for (int round = 0; round < settings_.rounds; ++round)
    for (Contestant& one : all_) one.seconds.push_back(sample(one));
  for (const Contestant& one : all_) {
    const nlohmann::ordered_json line = {{"benchmark", benchmark_},
                                         {"runtime", one.runtime},
                                         {"workers", settings_.workers},
                                         {"tasks", one.tasks},
                                         {"seconds", one.seconds}};
    std::puts(line.dump().c_str());
  }
  std::fflush(stdout);
}

double Contest::sample(const Contestant& one) const {
  if (!one.inside) return timed(one);
  double seconds = 0;
  in_families(settings_, [&] { seconds = timed(one); });
  return seconds;
}

// The seconds of a run: of so many that threads of the contestant before, which may poll for a
// while, do not matter. The first run of all wakes workers, and touches memory.
double Contest::timed(const Contestant& one) const {
  const double least_s = settings_.quick ? 0.002 : 0.1;
  if (one.seconds.empty()) one.run();
  const auto start = Clock::now();
  double seconds = 0;
  int runs = 0;
  do {
    one.run();
    ++runs;
    seconds = std::chrono::duration<double>(Clock::now() - start).count();
  } while (seconds < least_s);
  return seconds / runs;
}

void in_families(const Settings& settings, const std::function<void()>& body) {
  if (Worker::here() != nullptr) return body();
  // The stacks of the other run-times' threads have that size: a tree is 1,252 levels deep.
  static const LocalPlace place(
      PoolSettings{.workers = settings.workers, .stack_bytes = std::size_t{8} << 20});
  auto family = create(place, [&] { body(); });
  family.sync().rethrow();
}

#ifdef TOMBOLO_HAS_TBB
void in_tbb(const Settings& settings, const std::function<void()>& body) {
  static const tbb::global_control limit(tbb::global_control::max_allowed_parallelism,
                                         settings.workers);
  static tbb::task_arena arena(settings.threads());
  arena.execute(body);
}
#endif

#ifdef _OPENMP
void in_openmp(const Settings& settings, const std::function<void()>& body) {
#pragma omp parallel num_threads(settings.threads())
#pragma omp single
  body();
}
#endif

}  // namespace tombolo::svp::bench
