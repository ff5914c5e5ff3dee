// SPDX-License-Identifier: Apache-2.0
// Purpose: the program `tombolo-scc`, which runs experiments on a simulated chip and prints JSON
// lines; `tombolo scc` is its front end.
//
//   tombolo-scc list                                     a line for each experiment
//   tombolo-scc plan EXPERIMENT [--quick] [--chip C]     a line for each of its points
//   tombolo-scc run EXPERIMENT --point P... [--quick] [--chip C] [--seed N] [--statistics]
//
// A point's rows count once its line {"point_done": ...} has come. --statistics: a line of
// {"statistics": ...} for each simulation of a point, before.
//
// Invariants: EM1 exit status 2: the caller's mistake, 1: the world's; one sentence on stderr.
// Thread safety: one thread; SIGINT and SIGTERM end the simulation at its next look.
#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "backends/scc/usage.h"
#include "experiments/common/experiment.h"

namespace tombolo::experiments {
namespace {

using Json = nlohmann::ordered_json;

constexpr int world = 1;
constexpr int caller = 2;

std::atomic<bool> interrupted{false};

void interrupt(int) { interrupted = true; }

void print(const Json& line) { std::cout << line.dump() << std::endl; }

int fail(int status, const std::string& why) {
  std::fprintf(stderr, "tombolo-scc: %s\n", why.c_str());
  return status;
}

struct Arguments {
  std::string experiment;
  std::vector<std::string> points;
  std::string chip = "scc";
  std::uint64_t seed = 1;
  bool quick = false;
  bool statistics = false;
};

class Printer final : public Recorder {
 public:
  Printer(const Context& context, std::string experiment, std::string point)
      : context_(context), experiment_(std::move(experiment)), point_(std::move(point)) {}

  void row(const Row& row) override {
    Json line{{"experiment", experiment_}, {"point", point_}, {"series", row.series}};
    std::visit([&line](const auto& x) { line["x"] = x; }, row.x);
    line["value"] = row.value;
    line["unit"] = row.unit;
    if (row.quartile1) line["quartile1"] = *row.quartile1;
    if (row.quartile3) line["quartile3"] = *row.quartile3;
    if (!row.note.empty()) line["note"] = row.note;
    line["seed"] = context_.seed;
    const scc::Parameters& chip = row.chip ? *row.chip : context_.chip;
    line["chip"] = chip.name;
    line["chip_digest"] = fmt::format("{:016x}", scc::digest(chip));
    print(line);
  }
  void progress(double fraction) override { print({{"progress", fraction}}); }
  void cost(const Cost& cost) override {
    cost_.events += cost.events;
    cost_.virtual_seconds += cost.virtual_seconds;
  }
  const Cost& cost() const { return cost_; }

 private:
  const Context& context_;
  std::string experiment_;
  std::string point_;
  Cost cost_;
};

const Experiment* find(const std::string& name) {
  for (const Experiment& experiment : all_experiments())
    if (experiment.name == name) return &experiment;
  return nullptr;
}

int unknown_experiment(const std::string& name) {
  std::vector<std::string> names;
  for (const Experiment& experiment : all_experiments()) names.push_back(experiment.name);
  return fail(caller, fmt::format("there is no experiment \"{}\"; there are {}", name,
                                  fmt::join(names, ", ")));
}

int list(const Arguments& arguments) {
  Context context;
  if (Status s = scc::find_parameters(arguments.chip, &context.chip); !s.ok())
    return fail(caller, s.message());
  for (const Experiment& experiment : all_experiments()) {
    context.quick = false;
    const std::size_t points = experiment.points(context).size();
    context.quick = true;
    print({{"experiment", experiment.name},
           {"title", experiment.title},
           {"points", points},
           {"quick_points", experiment.points(context).size()}});
  }
  return 0;
}

int plan(const Arguments& arguments) {
  const Experiment* experiment = find(arguments.experiment);
  if (experiment == nullptr) return unknown_experiment(arguments.experiment);
  Context context{.chip = {}, .seed = arguments.seed, .quick = arguments.quick};
  if (Status s = scc::find_parameters(arguments.chip, &context.chip); !s.ok())
    return fail(caller, s.message());
  for (const Point& point : experiment->points(context))
    print({{"experiment", experiment->name},
           {"point", point.name},
           {"cost", point.seconds},
           {"memory_bytes", point.memory_bytes}});
  return 0;
}

// Shares are of the time up to the end of the run.
Json statistics_of(const scc::PartUse& use, double end_ns) {
  return {{"part", scc::name_of(use.part)},
          {"x", use.tile.x},
          {"y", use.tile.y},
          {"number", use.number},
          {"served", use.served},
          {"utilisation", use.busy.in_nanoseconds() / end_ns},
          {"mean_wait_ns", use.waited.in_nanoseconds() / static_cast<double>(use.served)}};
}

Json statistics_of(const scc::CoreUse& use, const scc::Chip& chip, double end_ns) {
  const scc::Counters& counted = use.counters;
  const simulator::Tile tile = chip.tile_of(use.core);
  return {{"core", use.core.index()},
          {"x", tile.x},
          {"y", tile.y},
          {"loads_that_left", counted.requests_read},
          {"stores_that_left", counted.requests_written},
          {"tests", counted.tests},
          {"tests_failed", counted.tests_failed},
          {"reading", counted.reading.in_nanoseconds() / end_ns},
          {"writing", counted.writing.in_nanoseconds() / end_ns},
          {"testing", counted.testing.in_nanoseconds() / end_ns}};
}

void print_statistics(const std::string& experiment, const std::string& point,
                      const scc::Chip& chip, simulator::Time end) {
  const double end_ns = end.since_start().in_nanoseconds();
  if (end_ns <= 0) return;  // nothing was simulated
  Json parts = Json::array();
  for (const scc::PartUse& use : scc::parts_of(chip)) parts.push_back(statistics_of(use, end_ns));
  Json cores = Json::array();
  for (const scc::CoreUse& use : scc::cores_of(chip))
    cores.push_back(statistics_of(use, chip, end_ns));
  const scc::Parameters& parameters = chip.parameters();
  print({{"statistics", point},
         {"experiment", experiment},
         {"chip", parameters.name},
         {"columns", parameters.layout.mesh_columns},
         {"rows", parameters.layout.mesh_rows},
         {"end_us", end_ns / 1000},
         {"parts", parts},
         {"cores", cores}});
}

int run_point(const Context& context, const Experiment& experiment, const Point& point) {
  const auto begin = std::chrono::steady_clock::now();
  Printer printer(context, experiment.name, point.name);
  if (Status s = point.run(context, printer); !s.ok())
    return fail(s.code() == Code::bad_configuration ? caller : world,
                fmt::format("{} {}: {}", experiment.name, point.name, s.message()));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  print({{"point_done", point.name},
         {"experiment", experiment.name},
         {"events", printer.cost().events},
         {"virtual_s", printer.cost().virtual_seconds},
         {"host_s", seconds.count()}});
  return 0;
}

int run(const Arguments& arguments) {
  const Experiment* experiment = find(arguments.experiment);
  if (experiment == nullptr) return unknown_experiment(arguments.experiment);
  Context context{
      .chip = {}, .seed = arguments.seed, .quick = arguments.quick, .interrupt = &interrupted};
  if (Status s = scc::find_parameters(arguments.chip, &context.chip); !s.ok())
    return fail(caller, s.message());
  const std::vector<Point> points = experiment->points(context);
  for (const std::string& name : arguments.points) {
    const auto point =
        std::find_if(points.begin(), points.end(), [&](const Point& p) { return p.name == name; });
    if (point == points.end())
      return fail(caller, fmt::format("experiment {} has no point \"{}\"; see tombolo-scc plan {}",
                                      experiment->name, name, experiment->name));
    if (arguments.statistics)
      context.after_run = [&](const scc::Chip& chip, simulator::Time end) {
        print_statistics(experiment->name, name, chip, end);
      };
    if (const int status = run_point(context, *experiment, *point); status != 0) return status;
  }
  return 0;
}

int main(int argc, char** argv) {
  std::signal(SIGINT, interrupt);
  std::signal(SIGTERM, interrupt);
  Arguments arguments;
  CLI::App app{"Experiments on a simulated Intel SCC: JSON lines on standard output."};
  app.name("tombolo-scc");
  app.require_subcommand(1);
  const auto of_chip = [&](CLI::App* command) {
    command->add_option("--chip", arguments.chip, "a chip by name, or a TOML file of parameters");
    return command;
  };
  const auto of_experiment = [&](CLI::App* command) {
    command->add_option("experiment", arguments.experiment, "its name")->required();
    command->add_flag("--quick", arguments.quick, "fewer repetitions and points");
    command->add_option("--seed", arguments.seed, "of random choices");
    return of_chip(command);
  };
  CLI::App* const lists = of_chip(app.add_subcommand("list", "the experiments there are"));
  CLI::App* const plans = of_experiment(app.add_subcommand("plan", "the points of one"));
  CLI::App* const runs = of_experiment(app.add_subcommand("run", "runs points"));
  runs->add_flag("--statistics", arguments.statistics, "how busy each part of the chip was");
  runs->add_option("--point", arguments.points, "a point by name; may be given again")->required();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : caller;
  }
  try {
    if (lists->parsed()) return list(arguments);
    if (plans->parsed()) return plan(arguments);
    return run(arguments);
  } catch (const std::bad_alloc&) {
    return fail(world, "no memory: run fewer points at once, or a smaller chip");
  }
}

}  // namespace
}  // namespace tombolo::experiments

int main(int argc, char** argv) { return tombolo::experiments::main(argc, argv); }
