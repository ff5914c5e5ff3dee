// SPDX-License-Identifier: Apache-2.0
#include "experiments/automaton/automaton.h"

#include "backends/scc/cpu.h"
#include "experiments/automaton/automaton_messages.h"
#include "experiments/common/chip_windows.h"
#include "experiments/common/library.h"
#include "experiments/common/measure.h"
#include "experiments/published/gats_window.h"
#include "experiments/published/match_vector_gats.h"
#include "experiments/published/spinning_registers.h"

namespace tombolo::experiments {
namespace {

using Prototype = published::GatsWindow<published::SpinningCore, published::MatchVectorGats>;
using Ours = windows::Window<scc::Core>;
using machine::Home;
using simulator::Duration;

constexpr int step_count = 100;  // of the paper
constexpr std::uint32_t process_counts[] = {1, 2, 4, 8, 12, 16, 24, 32, 40, 48};
constexpr std::uint32_t all_cores = 48;

struct Messages {
  const char* name;
  AutomatonMessages kind;
};
constexpr Messages message_kinds[] = {{"rckmpi-two-sided", AutomatonMessages::two_sided},
                                      {"rckmpi-one-sided", AutomatonMessages::one_sided}};

double seconds(Duration d) { return d.in_nanoseconds() * 1e-9; }

// Puts the own boundary lines from the own window into the ghost lines of the neighbours'.
template <class Window>
class PutExchange final : public AutomatonExchange {
 public:
  PutExchange(Window& window, LibraryOf<Window>& mpi, const AutomatonField& field)
      : window_(window), mpi_(mpi), field_(field) {
    const Home self = window.core().self();
    neighbours_ = {field.above(self)};
    if (field.below(self) != field.above(self)) neighbours_.push_back(field.below(self));
  }

  void open(int) override {}
  void send(int array) override {
    mpi_.post(neighbours_);
    mpi_.start(neighbours_);
    const Home self = window_.core().self();
    const Home above = field_.above(self);
    put(array, 1, above, field_.lines_of(above) + 1);
    put(array, field_.lines_of(self), field_.below(self), 0);
  }
  void close(int) override {
    mpi_.complete();
    mpi_.wait();
  }

 private:
  // The source is in the own window, in the memory type of its mapping: read line by line.
  void put(int array, std::uint32_t line, Home target, std::uint32_t ghost) {
    constexpr std::uint32_t part_width = 32;
    std::byte part[part_width];
    const Home self = window_.core().self();
    mpi_.put(target, 0, nullptr, 0);  // the call; the bytes follow
    for (std::uint32_t at = 0; at < field_.bytes_in_line; at += part_width) {
      require(window_.core().read({self, field_.place(array, line) + at}, part, part_width));
      require(window_.put(target, field_.place(array, ghost) + at, part, part_width));
    }
  }

  Window& window_;
  LibraryOf<Window>& mpi_;
  AutomatonField field_;
  std::vector<Home> neighbours_;
};

// One process has its neighbours' lines itself.
class NoExchange final : public AutomatonExchange {
 public:
  NoExchange(scc::detail::Base& core, const AutomatonField& field) : core_(core), field_(field) {}
  void open(int) override {}
  void send(int array) override {
    copy(array, 1, field_.lines + 1);
    copy(array, field_.lines, 0);
  }
  void close(int) override {}

 private:
  void copy(int array, std::uint32_t from, std::uint32_t to) {
    std::vector<std::byte> line(field_.bytes_in_line);
    require(core_.read({0, field_.place(array, from)}, line.data(), line.size()));
    require(core_.write({0, field_.place(array, to)}, line.data(), line.size()));
  }
  scc::detail::Base& core_;
  AutomatonField field_;
};

template <class Window>
void process(const AutomatonField& field, const AutomatonPlan& plan, const AutomatonLines& expected,
             const scc::Attachment& at, scc::Cpu& cpu, AutomatonOutcome& outcome) {
  auto window = make_window<Window>(at);
  LibraryOf<Window> mpi(window, cpu);
  std::unique_ptr<AutomatonExchange> exchange;
  if (plan.serial) {
    exchange = std::make_unique<NoExchange>(window.core(), field);
  } else {
    exchange = std::make_unique<PutExchange<Window>>(window, mpi, field);
  }
  run_process(
      window.core(), field, plan, *exchange, [&] { mpi.barrier(); }, expected, outcome);
}

std::string note_of(const AutomatonPlan& plan) {
  return fmt::format("of {} steps, scaled to {}", plan.steps, step_count);
}

double scaled(Duration d, const AutomatonPlan& plan) {
  return seconds(d) * step_count / plan.steps;
}

AutomatonPlan serial_plan(const Context& context) {
  return {.serial = true, .steps = context.repetitions(2, 1)};
}

Status serial(const Context& context, std::uint32_t lines, Recorder& recorder, double* result) {
  const AutomatonPlan plan = serial_plan(context);
  AutomatonOutcome outcome;
  TOMBOLO_TRY(
      run_automaton(context, {.lines = lines, .seed = context.seed}, plan, recorder, &outcome));
  if (outcome.wrong_cells != 0) return Status::stopped("the serial program computed wrong cells");
  *result = scaled(outcome.longest, plan);
  return {};
}

// The serial program's time, from fewer lines: they fill the caches many times over.
Status serial_time(const Context& context, Recorder& recorder, double* result) {
  constexpr std::uint32_t part_width = 20;
  TOMBOLO_TRY(serial(context, AutomatonField{}.lines / part_width, recorder, result));
  *result *= part_width;
  return {};
}

Status serial_point(const Context& context, Recorder& recorder) {
  double time = 0;
  std::string note = note_of(serial_plan(context));
  if (context.quick) {
    TOMBOLO_TRY(serial_time(context, recorder, &time));
    note += "; of a twentieth of the lines";
  } else {
    TOMBOLO_TRY(serial(context, AutomatonField{}.lines, recorder, &time));
  }
  recorder.row({"serial", std::string("serial"), time, "s", {}, {}, note});
  return {};
}

AutomatonPlan parallel_plan(const Context& context) {
  return {.warm_up = context.repetitions(1, 0), .steps = context.repetitions(2, 1)};
}

using Run = std::function<Status(const Context&, const AutomatonField&, const AutomatonPlan&,
                                 Recorder&, AutomatonOutcome*)>;

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

Status parallel(const Context& context, const std::string& variant, const Run& run,
                std::uint32_t processes, Recorder& recorder, AutomatonOutcome* outcome) {
  const AutomatonPlan plan = parallel_plan(context);
  double alone = 0;
  TOMBOLO_TRY(serial_time(context, recorder, &alone));
  Progress progress(recorder);
  outcome->progress = &progress;
  TOMBOLO_TRY(
      run(context, {.processes = processes, .seed = context.seed}, plan, recorder, outcome));
  const auto row = [&](const char* series, double value, const char* unit) {
    recorder.row({fmt::format("{}/{}", series, variant),
                  double(processes),
                  value,
                  unit,
                  {},
                  {},
                  note_of(plan)});
  };
  row("speedup", alone / scaled(outcome->longest, plan), "");
  row("computation", scaled(outcome->computation[0], plan), "s");
  row("exchange", scaled(outcome->exchange[0], plan), "s");
  return {};
}

Status by_windows(const Context& context, std::uint32_t processes, Recorder& recorder) {
  AutomatonOutcome outcome;
  TOMBOLO_TRY(parallel(context, "scosco-dcm", run_automaton, processes, recorder, &outcome));
  const AutomatonPlan plan = parallel_plan(context);
  // A line is stale the second time that its array is read.
  if (plan.all_steps() >= 3) report_wrong_cells(recorder, "scosco-dcm", processes, plan, outcome);
  return {};
}

Status by_messages(const Context& context, const Messages& messages, std::uint32_t processes,
                   Recorder& recorder) {
  const Run run = [&](const Context& c, const AutomatonField& field, const AutomatonPlan& plan,
                      Recorder& r, AutomatonOutcome* outcome) {
    return run_automaton_by_messages(c, field, plan, messages.kind, r, outcome);
  };
  AutomatonOutcome outcome;
  TOMBOLO_TRY(parallel(context, messages.name, run, processes, recorder, &outcome));
  const AutomatonPlan plan = parallel_plan(context);
  report_wrong_cells(recorder, messages.name, processes, plan, outcome);
  if (messages.kind != AutomatonMessages::two_sided || processes != all_cores) return {};
  for (std::uint32_t rank = 0; rank < processes; ++rank)
    recorder.row({"local",
                  double(rank),
                  scaled(outcome.computation[rank], plan),
                  "s",
                  {},
                  {},
                  note_of(plan)});
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

std::vector<Point> points(const Context& context) {
  std::vector<Point> all = {
      {"serial", context.quick ? 0.5 : 9.0, automaton_memory(1), serial_point}};
  for (const std::uint32_t processes : process_counts) {
    if (processes > context.chip.cores() || (context.quick && processes != all_cores)) continue;
    const double host_seconds = context.quick ? 10.0 : 15.0;
    all.push_back(
        {fmt::format("dcm-{}", processes), host_seconds, automaton_memory(processes),
         [processes](const Context& c, Recorder& r) { return by_windows(c, processes, r); }});
    for (const Messages& messages : message_kinds)
      all.push_back({fmt::format("{}-{}", messages.name, processes), host_seconds,
                     automaton_memory(processes),
                     [processes, &messages](const Context& c, Recorder& r) {
                       return by_messages(c, messages, processes, r);
                     }});
  }
  for (const std::uint32_t processes : {8, 16, 48})
    if (processes <= context.chip.cores() && !context.quick)
      all.push_back(
          {fmt::format("mpbt-wt-{}", processes), 20, automaton_memory(processes),
           [processes](const Context& c, Recorder& r) { return right(c, processes, r); }});
  return all;
}

template <class Window>
Status run(const Context& context, const AutomatonField& field, const AutomatonPlan& plan,
           Recorder& recorder, AutomatonOutcome* outcome) {
  const AutomatonLines expected = automaton_serial(field, plan.all_steps());
  begin_automaton(field, *outcome);
  scc::Placement placement;
  placement.own = plan.own;
  placement.peers = plan.peers;
  placement.as_prototype = plan.as_prototype;
  const scc::JobShape shape{.processes = field.processes,
                            .cores = {},
                            .sync_bytes = Window::sync_bytes(field.processes),
                            .data_bytes = field.bytes_of_process(),
                            .placement = placement,
                            .options = {},
                            .idle = nullptr};
  return run_job(context, recorder, shape, [&](const scc::Attachment& at, scc::Cpu& cpu) {
    process<Window>(field, plan, expected, at, cpu, *outcome);
  });
}

}  // namespace

std::uint64_t automaton_memory(std::uint32_t processes) {
  const AutomatonField field;  // both arrays, and the same once more to compare with
  return memory_of_chip(processes) + std::uint64_t{4} * field.lines * field.bytes_in_line;
}

Status run_automaton(const Context& context, const AutomatonField& field, const AutomatonPlan& plan,
                     Recorder& recorder, AutomatonOutcome* outcome) {
  return plan.as_prototype ? run<Prototype>(context, field, plan, recorder, outcome)
                           : run<Ours>(context, field, plan, recorder, outcome);
}

Experiment automaton() {
  return {"automaton", "Cellular automaton of 2,400 lines of 8 KB", points};
}

}  // namespace tombolo::experiments
