// SPDX-License-Identifier: Apache-2.0
#include "experiments/passive_target.h"

#include "base/random.h"
#include "experiments/library.h"
#include "experiments/measure.h"
#include "experiments/rckmpi_series.h"
#include "experiments/register_locks.h"
#include "windows/window.h"

namespace tombolo::experiments {
namespace {

using machine::Home;
constexpr int kPairs = 1000;  // 001 section 6.2
constexpr int kQuickPairs = 40;

std::vector<LockScheme> schemes() {
  return {{.name = "gbh", .backoff = false, .registers = Registers::spinning},
          gbh_with_backoff(),
          {.name = "best-effort", .with_lock_all = false},
          mcs_wp()};
}

void lock_and_unlock(const Context& context, Library& mpi, scc::Cpu& cpu,
                     const machine::Attachment& at, int pairs, const LockMix& mix,
                     std::vector<double>* times) {
  Random random = Random::stream(context.seed, at.self);
  for (int i = 0; i < pairs; ++i) {
    const auto target = static_cast<Home>(random.below(at.cores));
    const bool exclusive = random.below(100) < mix.exclusive_percent;
    times->push_back(microseconds(time_of(cpu, [&] {
      mpi.lock(exclusive ? sync::Access::exclusive : sync::Access::shared, target);
      mpi.unlock(target);
    })));
  }
}

struct LockRun {
  std::uint32_t processes;
  int pairs;
  LockMix mix;
  LockScheme scheme;
};

template <class Core>
Status measure_on(const Context& context, Recorder& recorder, const LockRun& run,
                  std::vector<double>* times) {
  using Window = windows::Window<Core>;
  scc::JobShape shape;
  shape.processes = run.processes;
  shape.sync_bytes = Window::sync_bytes(run.processes);
  return run_job(context, recorder, shape, [&](const machine::Attachment& at, scc::Cpu& cpu) {
    Window window(at, {.locks = run.scheme.kind, .backoff = run.scheme.backoff});
    Library mpi(window, cpu);
    if (run.scheme.with_lock_all && at.self == 0) {
      mpi.lock_all();
      mpi.unlock_all();
    }
    mpi.barrier();
    lock_and_unlock(context, mpi, cpu, at, run.pairs, run.mix, times);
  });
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
        const int pairs = context.repetitions(kPairs, kQuickPairs);
        all.push_back({fmt::format("{}-{}-{}", mix.name, scheme.name, processes),
                       2e-5 * pairs * processes, std::uint64_t{64} << 20,
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

LockScheme gbh_with_backoff() {
  return {.name = "gbh-back-off", .registers = Registers::backing_off};
}

LockScheme mcs_wp() {
  return {.name = "mcs-wp", .kind = sync::LockKind::writer_preference, .with_lock_all = false};
}

Status measure_locks(const Context& context, Recorder& recorder, std::uint32_t processes, int pairs,
                     const LockMix& mix, const LockScheme& scheme, std::vector<double>* times) {
  const LockRun run{processes, pairs, mix, scheme};
  switch (scheme.registers) {
    case Registers::spinning:
      return measure_on<SpinningCore>(context, recorder, run, times);
    case Registers::backing_off:
      return measure_on<BackingOffCore>(context, recorder, run, times);
    default:
      return measure_on<scc::Core>(context, recorder, run, times);
  }
}

Experiment passive_target() { return {"passive-target", "Passive target synchronization", points}; }

}  // namespace tombolo::experiments
