// SPDX-License-Identifier: Apache-2.0
#include "experiments/gats/gats.h"

#include <numeric>

#include "experiments/common/library.h"
#include "experiments/common/measure.h"
#include "experiments/common/rckmpi_series.h"
#include "experiments/published/match_vector_gats.h"
#include "experiments/published/spinning_registers.h"
#include "windows/window.h"

namespace tombolo::experiments {
namespace {

using machine::Home;
using simulator::Duration;

constexpr int iteration_count = 1001;  // 000 section 3.5.3
constexpr int quick_iterations = 21;

// A machine, and the time of its last atomic: of the register, and of the word under it.
template <class Core>
class Timed : public Core {
 public:
  using Core::Core;
  std::uint64_t fetch_add(typename Core::Word word, std::uint64_t v) {
    std::uint64_t before = 0;
    atomic_ = time_of(Core::cpu(), [&] { before = Core::fetch_add(word, v); });
    return before;
  }
  Duration atomic() const { return atomic_; }

 private:
  Duration atomic_;
};

using OurCore = Timed<scc::Core>;
using PublishedCore = Timed<published::SpinningCore>;
using Window = windows::Window<OurCore>;
using Prototype = published::MatchVectorGats<PublishedCore>;

// From one post to the next of a target, where all post at once: longer than an iteration takes.
Duration time_of_round(Home targets) {
  return Duration::nanoseconds(20'000 + 10'000 * std::int64_t{targets});
}

double mean(double sum, int count) { return sum / count; }

template <class Mpi>
void origin(Mpi& mpi, scc::Cpu& cpu, Home targets, int iterations, Recorder& recorder,
            GatsTimes* times) {
  Progress progress(recorder);
  std::vector<Home> group(targets);
  std::iota(group.begin(), group.end(), Home{1});
  for (int i = 0; i < iterations; ++i) {
    times->start.push_back(microseconds(time_of(cpu, [&] { mpi.start(group); })));
    times->complete.push_back(microseconds(time_of(cpu, [&] { mpi.complete(); })));
    progress.at(double(i + 1) / iterations);
  }
}

// The same time for all targets, by the clock that all cores of the chip share.
void await_round(scc::Cpu& cpu, Home targets, int number) {
  const simulator::Time begin = simulator::Time() + time_of_round(targets) * (number + 1);
  TOMBOLO_CHECK(cpu.now() <= begin, "round {} of {} targets: core {} is late", number, targets,
                cpu.id().index());
  cpu.fibre().advance_to(begin);
}

template <class Mpi, class Core>
void target(Mpi& mpi, Core& core, Gats gats, int iterations, GatsTimes* times) {
  const Home group[] = {0};
  scc::Cpu& cpu = core.cpu();
  double tests = 0;
  double modification = 0;
  for (int i = 0; i < iterations; ++i) {
    if (gats == Gats::at_once) await_round(cpu, core.cores() - 1, i);
    const std::uint64_t tests_before = cpu.counters().tests;
    times->post.push_back(microseconds(time_of(cpu, [&] { mpi.post(group); })));
    tests += static_cast<double>(cpu.counters().tests - tests_before);
    modification += microseconds(core.atomic());
    times->wait.push_back(microseconds(time_of(cpu, [&] { mpi.wait(); })));
  }
  times->loops.push_back(mean(tests, iterations));
  times->modification.push_back(mean(modification, iterations));
}

template <class Engine, class Core>
void take_part(Engine& engine, Core& core, Gats gats, int iterations, Recorder& recorder,
               GatsTimes* times) {
  LibraryOf<Engine> mpi(engine, core.cpu());
  if (core.self() == 0) {
    origin(mpi, core.cpu(), core.cores() - 1, iterations, recorder, times);
  } else {
    target(mpi, core, gats, iterations, times);
  }
}

// 1 to 31 in the figures, 47 in Table 3.4.
std::vector<std::uint32_t> numbers_of_targets(const Context& context) {
  std::vector<std::uint32_t> numbers = {1, 2, 4, 8, 10, 16, 24, 31, 47};
  if (context.quick) numbers = {1, 4, 10, 31, 47};
  std::erase_if(numbers, [&](std::uint32_t k) { return k >= context.chip.cores(); });
  return numbers;
}

// `suffix`: of the names of the series.
using Report = void (*)(const Context&, Recorder&, const std::string& suffix, std::uint32_t targets,
                        const GatsTimes&);

constexpr const char* suffixes[] = {"", "tombolo", "at-once"};  // as Gats

std::vector<Point> points_for(const Context& context, std::initializer_list<Gats> all_gats,
                              Report report) {
  std::vector<Point> all;
  for (const Gats gats : all_gats)
    for (const std::uint32_t targets : numbers_of_targets(context)) {
      const int iterations = context.repetitions(iteration_count, quick_iterations);
      const double seconds = 0.1 + 1e-5 * iterations * targets * targets;
      const std::string name = suffixes[static_cast<std::size_t>(gats)];
      const std::string suffix = name.empty() ? "" : "/" + name;
      all.push_back({fmt::format("targets-{}{}", targets, name.empty() ? "" : "-" + name), seconds,
                     memory_of_chip(targets + 1), [=](const Context& c, Recorder& r) -> Status {
                       GatsTimes times;
                       TOMBOLO_TRY(measure_gats(c, r, gats, targets, iterations, &times));
                       report(c, r, suffix, targets, times);
                       return {};
                     }});
    }
  return all;
}

void report_calls(const Context&, Recorder& recorder, const std::string& suffix,
                  std::uint32_t targets, const GatsTimes& times) {
  const double x = targets;
  const Row start = row_of("start" + suffix, x, times.start, "us");
  const Row complete = row_of("complete" + suffix, x, times.complete, "us");
  const Row post = row_of("post" + suffix, x, times.post, "us");
  const Row wait = row_of("wait" + suffix, x, times.wait, "us");
  for (const Row& row : {start, complete, post, wait}) recorder.row(row);
  const std::string by = suffix.empty() ? "/scosco" : suffix;
  recorder.row({"origin" + by, x, start.value + complete.value, "us", {}, {}, {}});
  recorder.row({"target" + by, x, post.value + wait.value, "us", {}, {}, {}});
}

void report_registers(const Context& context, Recorder& recorder, const std::string& suffix,
                      std::uint32_t targets, const GatsTimes& times) {
  const double x = targets;
  recorder.row(row_of("acquisition-loops" + suffix, x, times.loops, ""));
  recorder.row(row_of("vector-modification" + suffix, x, times.modification, "us"));
  if (suffix == "/at-once") return;  // nothing else is another than in the benchmark
  recorder.row(row_of("start" + suffix, x, times.start, "us"));
  if (!suffix.empty()) return;  // the same library
  const Duration conversion = Library::conversion(scc::Timing(context.chip), targets);
  recorder.row({"rank-conversion", x, microseconds(conversion), "us", {}, {}, {}});
}

// Parts of the chip that could make posts come in bunches, each changed by itself.
struct Changed {
  const char* name;
  void (*change)(scc::Parameters& chip);
};
constexpr Changed all_changed[] = {
    {"no-banks", [](scc::Parameters& chip) { chip.layout.memory_model = scc::MemoryKind::plain; }},
    {"busy-banks", [](scc::Parameters& chip) { chip.path.bank_busy_memory_cycles *= 2; }},
    {"busy-registers", [](scc::Parameters& chip) { chip.path.register_busy.halves *= 2; }},
};

// Attempts alone, with the largest number of targets.
std::vector<Point> points_of_changed_chips(const Context& context) {
  std::vector<Point> all;
  const std::vector<std::uint32_t> numbers = numbers_of_targets(context);
  if (numbers.empty()) return all;
  const std::uint32_t targets = numbers.back();
  for (const Changed& changed : all_changed)
    all.push_back(
        {fmt::format("targets-{}-{}", targets, changed.name), 10.0, memory_of_chip(targets + 1),
         [=](const Context& c, Recorder& r) -> Status {
           Context chosen = c;
           changed.change(chosen.chip);
           const int iterations = c.repetitions(iteration_count, quick_iterations);
           GatsTimes times;
           TOMBOLO_TRY(measure_gats(chosen, r, Gats::published, targets, iterations, &times));
           r.row(
               row_of(fmt::format("acquisition-loops/{}", changed.name), targets, times.loops, ""));
           return {};
         }});
  return all;
}

}  // namespace

Status measure_gats(const Context& context, Recorder& recorder, Gats gats, std::uint32_t targets,
                    int iterations, GatsTimes* times) {
  const Home processes = targets + 1;
  scc::JobShape shape;
  shape.processes = processes;
  if (gats == Gats::ours) {
    shape.sync_bytes = Window::sync_bytes(processes);
    return run_job(context, recorder, shape, [&](const scc::Attachment& at, scc::Cpu&) {
      Window window(at, {});
      take_part<windows::Engine>(window, window.core(), gats, iterations, recorder, times);
    });
  }
  machine::SyncLayout sync(PublishedCore::reserved_sync_bytes(processes));
  const Prototype::Layout layout = Prototype::take(sync, processes);
  shape.sync_bytes = sync.bytes();
  return run_job(context, recorder, shape, [&](const scc::Attachment& at, scc::Cpu&) {
    PublishedCore core(at);
    Prototype prototype(core, layout);
    take_part(prototype, core, gats, iterations, recorder, times);
  });
}

Experiment gats() {
  return {
      "gats", "General active target synchronization", [](const Context& context) {
        std::vector<Point> all = points_for(context, {Gats::published, Gats::ours}, report_calls);
        for (Point& point : rckmpi_gats_points(context)) all.push_back(std::move(point));
        return all;
      }};
}

Experiment gats_registers() {
  return {"gats-registers", "The test-and-set register during post", [](const Context& context) {
            std::vector<Point> all =
                points_for(context, {Gats::published, Gats::ours, Gats::at_once}, report_registers);
            for (Point& point : points_of_changed_chips(context)) all.push_back(std::move(point));
            return all;
          }};
}

}  // namespace tombolo::experiments
