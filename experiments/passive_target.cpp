// SPDX-License-Identifier: Apache-2.0
#include "experiments/passive_target.h"

#include "base/random.h"
#include "experiments/library.h"
#include "experiments/measure.h"
#include "windows/window.h"

namespace tombolo::experiments {
namespace {

using machine::Home;
using Window = windows::Window<scc::Core>;

constexpr int kPairs = 1000;  // 001 section 6.2
constexpr int kQuickPairs = 40;

std::vector<LockScheme> schemes() {
  LockScheme without = gbh_with_backoff();
  without.name = "gbh";
  without.backoff = false;
  LockScheme own = gbh_with_backoff();
  own.name = "best-effort";
  own.with_lock_all = false;
  return {without, gbh_with_backoff(), own, mcs_wp()};
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
  return all;
}

}  // namespace

const std::vector<LockMix>& lock_mixes() {
  static const std::vector<LockMix> mixes = {{"shared", 0}, {"mixed", 50}, {"exclusive", 100}};
  return mixes;
}

LockScheme gbh_with_backoff() { return {"gbh-back-off", sync::LockKind::best_effort, true, true}; }

LockScheme mcs_wp() { return {"mcs-wp", sync::LockKind::writer_preference, true, false}; }

Status measure_locks(const Context& context, Recorder& recorder, std::uint32_t processes, int pairs,
                     const LockMix& mix, const LockScheme& scheme, std::vector<double>* times) {
  scc::JobShape shape;
  shape.processes = processes;
  shape.sync_bytes = Window::sync_bytes(processes);
  return run_job(context, recorder, shape, [&](const machine::Attachment& at, scc::Cpu& cpu) {
    Window window(at, {.locks = scheme.kind, .backoff = scheme.backoff});
    Library mpi(window, cpu);
    if (scheme.with_lock_all && at.self == 0) {
      mpi.lock_all();
      mpi.unlock_all();
    }
    mpi.barrier();
    lock_and_unlock(context, mpi, cpu, at, pairs, mix, times);
  });
}

Experiment passive_target() { return {"passive-target", "Passive target synchronization", points}; }

}  // namespace tombolo::experiments
