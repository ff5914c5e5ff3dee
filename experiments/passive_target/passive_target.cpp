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

// An access keeps its bank busy for 100 ns: twelve processes that use one then take as long for
// the queue's pairs as in 001 Table 2.
scc::Parameters with_busy_banks(scc::Parameters chip) {
  chip.path.bank_busy_memory_cycles = chip.clocks.memory_megahertz / 10;
  return chip;
}

Point point_of(const Context& context, const LockMix& mix, const LockScheme& scheme,
               std::uint32_t processes, bool busy_banks = false) {
  const int pairs = context.repetitions(pair_count, quick_pairs);
  const std::string series = (busy_banks ? "busy-banks/" : "") + mix.name + "/" + scheme.name;
  return {
      fmt::format("{}{}-{}-{}", busy_banks ? "busy-banks-" : "", mix.name, scheme.name, processes),
      2e-5 * pairs * processes, memory_of_chip(processes),
      [=](const Context& c, Recorder& r) -> Status {
        Context chosen = c;
        if (busy_banks) chosen.chip = with_busy_banks(c.chip);
        std::vector<double> times;
        TOMBOLO_TRY(measure_locks(chosen, r, processes, pairs, mix, scheme, &times));
        r.row(row_of(series, processes, times, "us"));
        return {};
      }};
}

// How much of the queue's time banks account for.
std::vector<Point> busy_bank_points(const Context& context) {
  std::vector<Point> all;
  const auto add = [&](const LockMix& mix, const LockScheme& scheme, std::uint32_t processes) {
    if (processes <= context.chip.cores())
      all.push_back(point_of(context, mix, scheme, processes, true));
  };
  const LockMix& shared = lock_mixes().front();
  for (const LockMix& mix : lock_mixes()) add(mix, mcs_wp(), 48);
  add(shared, gbh(), 48);
  if (context.quick) return all;
  for (const std::uint32_t processes : {6, 8, 24, 32}) add(shared, mcs_wp(), processes);
  return all;
}

std::vector<Point> points(const Context& context) {
  std::vector<Point> all;
  for (const LockMix& mix : lock_mixes())
    for (const LockScheme& scheme : schemes())
      for (const std::uint32_t processes : numbers_of_processes(context))
        all.push_back(point_of(context, mix, scheme, processes));
  for (Point& point : busy_bank_points(context)) all.push_back(std::move(point));
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
