// SPDX-License-Identifier: Apache-2.0
#include "experiments/automaton/automaton.h"

#include "experiments/automaton/automaton_messages.h"
#include "experiments/automaton/automaton_windows.h"
#include "experiments/common/measure.h"

namespace tombolo::experiments {
namespace {

using simulator::Duration;

constexpr int step_count = 100;  // of the paper
constexpr int pattern_steps = 50;
constexpr std::uint32_t process_counts[] = {1, 2, 4, 8, 12, 16, 24, 32, 40, 48};
constexpr std::uint32_t all_cores = 48;
constexpr std::uint32_t pattern_processes = 32;
constexpr double kibibyte = 1 << 10;

using Run = std::function<Status(const Context&, const AutomatonField&, const AutomatonPlan&,
                                 Recorder&, AutomatonOutcome*)>;

// A way to bring boundary lines to the neighbours.
struct Variant {
  const char* name;   // of its series
  const char* point;  // of its points
  Run run;
};

Run by_messages(AutomatonMessages messages) {
  return [messages](const Context& context, const AutomatonField& field, const AutomatonPlan& plan,
                    Recorder& recorder, AutomatonOutcome* outcome) {
    return run_automaton_by_messages(context, field, plan, messages, recorder, outcome);
  };
}

const std::vector<Variant>& variants() {
  static const std::vector<Variant> all = {
      {"scosco-dcm", "dcm", run_automaton},
      {"rckmpi-two-sided", "rckmpi-two-sided", by_messages(AutomatonMessages::two_sided)},
      {"rckmpi-one-sided", "rckmpi-one-sided", by_messages(AutomatonMessages::one_sided)}};
  return all;
}

double seconds(Duration d) { return d.in_nanoseconds() * 1e-9; }

// A run of fewer steps than the paper's, or of a narrower field.
struct Size {
  std::uint32_t bytes_in_line = AutomatonField{}.bytes_in_line;
  AutomatonPlan plan;

  AutomatonField field(const Context& context, std::uint32_t processes) const {
    return {.processes = processes, .bytes_in_line = bytes_in_line, .seed = context.seed};
  }
  // The time of one of its steps in the paper's field.
  double whole(Duration step) const {
    return seconds(step) * AutomatonField{}.cells_in_line() / (bytes_in_line - 2);
  }
  // And of as many steps as the paper's.
  double scaled(Duration steps) const { return whole(steps) * step_count / plan.steps; }
  std::string note() const {
    const std::string steps = fmt::format("of {} steps, scaled to {}", plan.steps, step_count);
    if (bytes_in_line == AutomatonField{}.bytes_in_line) return steps;
    return fmt::format("{}; of {} bytes of a line", steps, bytes_in_line);
  }
};

// ---- One process --------------------------------------------------------------------------------

Status serial(const Context& context, const Size& like, std::uint32_t lines, Recorder& recorder,
              double* result) {
  Size size = like;
  size.plan = {.serial = true, .steps = context.repetitions(2, 1)};
  AutomatonField field = size.field(context, 1);
  field.lines = lines;
  AutomatonOutcome outcome;
  TOMBOLO_TRY(run_automaton(context, field, size.plan, recorder, &outcome));
  if (outcome.wrong_cells != 0) return Status::stopped("the serial program computed wrong cells");
  *result = size.scaled(outcome.longest);
  return {};
}

// The serial program's time, from fewer lines: they fill the caches many times over.
Status serial_time(const Context& context, const Size& like, Recorder& recorder, double* result) {
  constexpr std::uint32_t part_width = 20;
  TOMBOLO_TRY(serial(context, like, AutomatonField{}.lines / part_width, recorder, result));
  *result *= part_width;
  return {};
}

Status serial_point(const Context& context, Recorder& recorder) {
  double time = 0;
  const Size size{.plan = {.steps = context.repetitions(2, 1)}};
  std::string note = size.note();
  if (context.quick) {
    TOMBOLO_TRY(serial_time(context, size, recorder, &time));
    note += "; of a twentieth of the lines";
  } else {
    TOMBOLO_TRY(serial(context, size, AutomatonField{}.lines, recorder, &time));
  }
  recorder.row({"serial", std::string("serial"), time, "s", {}, {}, note});
  return {};
}

// ---- Many ---------------------------------------------------------------------------------------

void report_wrong_cells(Recorder& recorder, const std::string& variant, std::uint32_t processes,
                        const AutomatonPlan& plan, const AutomatonOutcome& outcome) {
  recorder.row({"wrong-cells/" + variant,
                double(processes),
                double(outcome.wrong_cells),
                "",
                {},
                {},
                fmt::format("after {} steps", plan.all_steps())});
}

// 000 Figure B.1: the bytes that each process has sent to each other, as they came through the
// message passing buffers.
void report_pattern(Recorder& recorder, const AutomatonPlan& plan,
                    const AutomatonOutcome& outcome) {
  const double exchanges = 1 + plan.all_steps();
  for (std::size_t to = 0; to < outcome.received.size(); ++to)
    for (std::size_t from = 0; from < outcome.received[to].size(); ++from)
      if (const std::uint64_t bytes = outcome.received[to][from]; bytes > 0)
        recorder.row({fmt::format("data/{}", from),
                      double(to),
                      static_cast<double>(bytes) / exchanges * pattern_steps / kibibyte,
                      "KiB",
                      {},
                      {},
                      fmt::format("of {} exchanges, scaled to {}", exchanges, pattern_steps)});
}

// Speedup, computation and exchange.
Status parallel(const Context& context, const Variant& variant, const Size& size,
                std::uint32_t processes, Recorder& recorder, AutomatonOutcome* outcome) {
  double alone = 0;
  TOMBOLO_TRY(serial_time(context, size, recorder, &alone));
  Progress progress(recorder);
  outcome->progress = &progress;
  TOMBOLO_TRY(variant.run(context, size.field(context, processes), size.plan, recorder, outcome));
  const auto row = [&](const char* series, double value, const char* unit) {
    recorder.row({fmt::format("{}/{}", series, variant.name),
                  double(processes),
                  value,
                  unit,
                  {},
                  {},
                  size.note()});
  };
  row("speedup", alone / size.scaled(outcome->longest), "");
  row("computation", size.scaled(outcome->computation[0]), "s");
  row("exchange", size.scaled(outcome->exchange[0]), "s");
  return {};
}

Status few_steps(const Context& context, const Variant& variant, std::uint32_t processes,
                 Recorder& recorder) {
  // The quick one is as narrow as lets a process's lines of an array exceed the second level.
  const Size size{
      .bytes_in_line = context.quick ? 6144 : AutomatonField{}.bytes_in_line,
      .plan = {.warm_up = context.repetitions(1, 0), .steps = context.repetitions(2, 1)}};
  AutomatonOutcome outcome;
  TOMBOLO_TRY(parallel(context, variant, size, processes, recorder, &outcome));
  const bool over_windows = outcome.received.empty();
  // Over windows a line is stale the second time that its array is read.
  if (!over_windows || size.plan.all_steps() >= 3)
    report_wrong_cells(recorder, variant.name, processes, size.plan, outcome);
  if (variant.name != std::string("rckmpi-two-sided")) return {};
  if (processes == pattern_processes) report_pattern(recorder, size.plan, outcome);
  if (processes != all_cores) return {};
  for (std::uint32_t rank = 0; rank < processes; ++rank)
    recorder.row(
        {"local", double(rank), size.scaled(outcome.computation[rank]), "s", {}, {}, size.note()});
  return {};
}

// Tests the results, not the time.
Status right(const Context& context, std::uint32_t processes, Recorder& recorder) {
  // Three steps in all: a line is stale the second time that its array is read.
  const AutomatonPlan plan{.own = scc::MemoryType::mpbt_wt, .steps = 2};
  Progress progress(recorder);
  AutomatonOutcome outcome;
  outcome.progress = &progress;
  TOMBOLO_TRY(run_automaton(context, {.processes = processes, .seed = context.seed}, plan, recorder,
                            &outcome));
  report_wrong_cells(recorder, "scosco-mpbt-wt", processes, plan, outcome);
  return {};
}

std::uint64_t memory_of(std::uint32_t processes) {
  return automaton_memory({.processes = processes});
}

std::vector<Point> points(const Context& context) {
  std::vector<Point> all = {{"serial", context.quick ? 0.5 : 9.0, memory_of(1), serial_point}};
  for (const std::uint32_t processes : process_counts) {
    if (processes > context.chip.cores() || (context.quick && processes != all_cores)) continue;
    for (const Variant& variant : variants())
      all.push_back({fmt::format("{}-{}", variant.point, processes), context.quick ? 10.0 : 15.0,
                     memory_of(processes), [processes, &variant](const Context& c, Recorder& r) {
                       return few_steps(c, variant, processes, r);
                     }});
  }
  for (const std::uint32_t processes : {8, 16, 48})
    if (processes <= context.chip.cores() && !context.quick)
      all.push_back(
          {fmt::format("mpbt-wt-{}", processes), 20, memory_of(processes),
           [processes](const Context& c, Recorder& r) { return right(c, processes, r); }});
  return all;
}

// ---- Many steps ---------------------------------------------------------------------------------

// A process's lines of an array exceed the second level, as the paper's do. They need not for a
// quick run, which is not compared with the paper.
Size many_steps(const Context& context, std::uint32_t processes) {
  constexpr std::uint32_t bytes_of_a_process = 128;
  return {.bytes_in_line = context.quick ? 64 : bytes_of_a_process * processes,
          .plan = {.warm_up = 1, .steps = context.repetitions(50, 2)}};
}

// The exchange of rank 0 in each of the steps.
void report_steps(Recorder& recorder, const Variant& variant, const Size& size,
                  const AutomatonOutcome& outcome) {
  Duration before;
  for (std::size_t step = 0; step < outcome.exchange_so_far.size(); ++step) {
    const Duration now = outcome.exchange_so_far[step];
    recorder.row({fmt::format("step/{}", variant.name),
                  double(step + 1),
                  size.whole(now - before) * 1e3,
                  "ms",
                  {},
                  {},
                  size.note()});
    before = now;
  }
}

Status steps_point(const Context& context, const Variant& variant, std::uint32_t processes,
                   Recorder& recorder) {
  const Size size = many_steps(context, processes);
  AutomatonOutcome outcome;
  TOMBOLO_TRY(parallel(context, variant, size, processes, recorder, &outcome));
  if (processes == all_cores) report_steps(recorder, variant, size, outcome);
  return {};
}

std::vector<Point> points_of_many_steps(const Context& context) {
  std::vector<Point> all;
  for (const std::uint32_t processes : {all_cores, all_cores / 2}) {
    if (processes > context.chip.cores()) continue;
    const AutomatonField field = many_steps(context, processes).field(context, processes);
    for (const Variant& variant : variants())
      all.push_back({fmt::format("{}-{}", variant.point, processes),
                     context.quick ? 0.5 : 4.0 * processes, automaton_memory(field),
                     [processes, &variant](const Context& c, Recorder& r) {
                       return steps_point(c, variant, processes, r);
                     }});
  }
  return all;
}

}  // namespace

Experiment automaton() {
  return {"automaton", "Cellular automaton of 2,400 lines of 8 KB", points};
}
Experiment automaton_steps() {
  return {"automaton-steps", "Fifty steps of the cellular automaton", points_of_many_steps};
}

}  // namespace tombolo::experiments
