// SPDX-License-Identifier: Apache-2.0
#include "experiments/passive_target/passive_target.h"

#include "base/random.h"
#include "experiments/common/measure.h"
#include "experiments/common/rckmpi_series.h"

namespace tombolo::experiments {
namespace {

using machine::Home;
constexpr int pair_count = 1000;  // 001 section 6.2
constexpr int quick_pairs = 40;

std::vector<LockScheme> schemes() {
  return {gbh(),    gbh_with_backoff(), gbh_with_backoff_as_printed(),
          mcs_wp(), our_best_effort(),  our_writer_preference()};
}

std::vector<std::uint32_t> numbers_of_processes(const Context& context) {
  std::vector<std::uint32_t> numbers = {2, 4, 6, 8, 12, 16, 24, 32, 40, 48};
  if (context.quick) numbers = {2, 4, 12, 24, 48};
  std::erase_if(numbers, [&](std::uint32_t n) { return n > context.chip.cores(); });
  return numbers;
}

std::vector<Point> points(const Context& context) {
  std::vector<Point> all;
  for (const LockMix& mix : lock_mixes())
    for (const LockScheme& scheme : schemes())
      for (const std::uint32_t processes : numbers_of_processes(context)) {
        const std::string series = mix.name + "/" + scheme.name;
        const int pairs = context.repetitions(pair_count, quick_pairs);
        all.push_back({fmt::format("{}-{}-{}", mix.name, scheme.name, processes),
                       2e-5 * pairs * processes, memory_of_chip(processes),
                       [=](const Context& c, Recorder& r) -> Status {
                         std::vector<double> times;
                         TOMBOLO_TRY(measure_locks(c, r, processes, pairs, mix, scheme, &times));
                         r.row(row_of(series, processes, times, "us"));
                         return {};
                       }});
      }
  for (Point& point : rckmpi_passive_target_points(context)) all.push_back(std::move(point));
  return all;
}

}  // namespace

const std::vector<LockMix>& lock_mixes() {
  static const std::vector<LockMix> mixes = {{"shared", 0}, {"mixed", 50}, {"exclusive", 100}};
  return mixes;
}

Status measure_locks(const Context& context, Recorder& recorder, std::uint32_t processes, int pairs,
                     const LockMix& mix, const LockScheme& scheme, std::vector<double>* times) {
  scc::JobShape shape;
  shape.processes = processes;
  return run_with_locks(context, recorder, shape, scheme, [&](auto& core, auto& mpi) {
    Random random = Random::stream(context.seed, core.self());
    Progress progress(recorder);
    for (int i = 0; i < pairs; ++i) {
      const auto target = static_cast<Home>(random.below(processes));
      const bool exclusive = random.below(100) < mix.exclusive_percent;
      times->push_back(microseconds(time_of(core.cpu(), [&] {
        mpi.lock(exclusive ? sync::Access::exclusive : sync::Access::shared, target);
        mpi.unlock(target);
      })));
      if (core.self() == 0) progress.at(double(i + 1) / pairs);
    }
  });
}

Experiment passive_target() { return {"passive-target", "Passive target synchronization", points}; }

}  // namespace tombolo::experiments
