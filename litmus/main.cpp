// SPDX-License-Identifier: Apache-2.0
// Purpose: the command `tombolo-litmus`: verdicts of machines, explorations, counterexamples.
// Thread safety: -
#include <fmt/format.h>

#include <algorithm>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "litmus/explorer/explorer.h"
#include "litmus/programs/registry.h"
#include "litmus/tests/registry.h"

namespace tombolo::litmus {
namespace {

struct Choices {
  std::string name;
  std::string machine;
  std::string path;
  Effort effort;
  bool json = false;
  // Values that are not given are the program's own.
  std::optional<std::uint32_t> evictions, steps, pauses, retries, loads, preemptions;
  std::optional<std::uint64_t> executions;
  std::optional<machine::Home> cores;
  bool full = false;
};

bool is_part(const std::string& part, std::string_view of) {
  return part.empty() || of.find(part) != std::string_view::npos;
}

// A litmus test or an algorithm, as something to explore.
ExploredProgram explorable(const LitmusTest& test) {
  return {.name = std::string(test.info.name),
          .about = std::string(test.info.question),
          .broken = test.info.verdicts.contract == must_appear,
          .bounds = litmus_bounds,
          .cores = test.info.cores,
          .make = [&test](machine::Home) { return test.program(true); }};
}

std::vector<ExploredProgram> all_explorable() {
  std::vector<ExploredProgram> all;
  for (const LitmusTest& test : litmus_tests()) all.push_back(explorable(test));
  const auto& programs = explored_programs();
  all.insert(all.end(), programs.begin(), programs.end());
  return all;
}

constexpr int wrong_usage = 2;

int no_such(std::string_view what, const std::string& name, const std::string& there_are) {
  fmt::print(stderr, "tombolo-litmus: no {} is named '{}'; there are: {}\n", what, name, there_are);
  return wrong_usage;
}

// The names of tests, programs or machines.
template <class Things, class Name>
std::string names(const Things& things, Name&& name) {
  std::string text;
  for (const auto& thing : things)
    text += fmt::format("{}{}", text.empty() ? "" : ", ", name(thing));
  return text;
}
std::string names(const std::vector<ExploredProgram>& programs) {
  return names(programs, [](const ExploredProgram& program) { return program.name; });
}

// Whether the number of cores can be chosen; says so if not. A litmus test has its own.
bool cores_fit(const std::vector<ExploredProgram>& programs, const Choices& choices) {
  if (!choices.cores) return true;
  for (const LitmusTest& test : litmus_tests())
    for (const ExploredProgram& program : programs)
      if (program.name == test.info.name) {
        fmt::print(stderr, "tombolo-litmus: {} is a litmus test, for {} cores: no --cores\n",
                   program.name, program.cores);
        return false;
      }
  return true;
}

ExploredProgram chosen(const ExploredProgram& program, const Choices& choices) {
  ExploredProgram result = program;
  Bounds& bounds = result.bounds;
  if (choices.cores) result.cores = *choices.cores;
  bounds.evictions = choices.evictions.value_or(bounds.evictions);
  bounds.steps = choices.steps.value_or(bounds.steps);
  bounds.pauses = choices.pauses.value_or(bounds.pauses);
  bounds.retries = choices.retries.value_or(bounds.retries);
  bounds.loads = choices.loads.value_or(bounds.loads);
  bounds.preemptions = choices.preemptions.value_or(bounds.preemptions);
  bounds.executions = choices.executions.value_or(bounds.executions);
  bounds.merge = bounds.sleep = !choices.full;
  return result;
}

int list(const Choices& choices) {
  fmt::print("litmus tests (run, explore):\n");
  for (const LitmusTest& test : litmus_tests())
    if (is_part(choices.name, test.info.name))
      fmt::print("  {:<32} {}? {}\n", test.info.name, test.info.question, test.info.reason);
  fmt::print("programs (explore):\n");
  for (const ExploredProgram& program : explored_programs())
    if (is_part(choices.name, program.name))
      fmt::print("  {:<44} {}\n", program.name, program.about);
  fmt::print("machines:");
  for (const LitmusMachine& machine : litmus_machines()) fmt::print(" {}", machine.name);
  fmt::print("\n");
  return 0;
}

// 0 as it should be.
int print_observation(const LitmusTest& test, const LitmusMachine& machine, const Observation& seen,
                      const Choices& choices) {
  const Verdict verdict = machine.verdict(test.info.verdicts);
  const bool wrong =
      verdict == forbidden ? seen.seen != 0 : verdict == must_appear && seen.seen == 0;
  if (choices.json) {
    fmt::print("{}\n", nlohmann::json{{"test", test.info.name},
                                      {"machine", machine.name},
                                      {"verdict", to_text(verdict)},
                                      {"seen", seen.seen},
                                      {"runs", seen.runs},
                                      {"seed", choices.effort.seed},
                                      {"as_stated", !wrong}}
                           .dump());
  } else {
    fmt::print("{:<32} {:<14} {:<12} {:>7} of {:<7}{}{}\n", test.info.name, machine.name,
               to_text(verdict), seen.seen, seen.runs,
               seen.seen == 0 ? "" : fmt::format(" first with seed {}", seen.first_seed),
               wrong ? "  WRONG" : "");
  }
  std::fflush(stdout);
  return wrong ? 1 : 0;
}

int run(const Choices& choices) {
  const auto& machines = litmus_machines();
  if (!choices.machine.empty() &&
      std::none_of(machines.begin(), machines.end(),
                   [&](const LitmusMachine& machine) { return machine.name == choices.machine; }))
    return no_such("machine", choices.machine,
                   names(machines, [](const LitmusMachine& machine) { return machine.name; }));
  int wrong = 0;
  bool any = false;
  for (const LitmusTest& test : litmus_tests()) {
    if (!is_part(choices.name, test.info.name)) continue;
    any = true;
    for (std::size_t i = 0; i < litmus_machines().size(); ++i) {
      const LitmusMachine& machine = litmus_machines()[i];
      if (!choices.machine.empty() && choices.machine != machine.name) continue;
      Observation seen = test.observe[i](choices.effort);
      if (machine.verdict(test.info.verdicts) == must_appear && seen.seen == 0) {
        // A rare one: on, until it is there.
        const std::uint64_t before = seen.runs;
        seen = test.observe[i]({.seed = choices.effort.seed + before,
                                .runs = 100 * choices.effort.runs,
                                .until_seen = true});
        seen.runs += before;
      }
      wrong += print_observation(test, machine, seen, choices);
    }
  }
  if (!any)
    return no_such("litmus test", choices.name,
                   names(litmus_tests(), [](const LitmusTest& test) { return test.info.name; }));
  return wrong == 0 ? 0 : 1;
}

// The options that make `program` of the listed name.
std::string options_of(const ExploredProgram& program, const ExploredProgram& listed) {
  std::string text;
  const auto option = [&](const char* name, auto value, auto usual) {
    if (value != usual) text += fmt::format(" --{} {}", name, value);
  };
  const Bounds& bounds = program.bounds;
  option("cores", program.cores, listed.cores);
  option("evictions", bounds.evictions, listed.bounds.evictions);
  option("steps", bounds.steps, listed.bounds.steps);
  option("pauses", bounds.pauses, listed.bounds.pauses);
  option("retries", bounds.retries, listed.bounds.retries);
  option("loads", bounds.loads, listed.bounds.loads);
  option("preemptions", bounds.preemptions, listed.bounds.preemptions);
  return text;
}

void print_counterexample(const ExploredProgram& program, const ExploredProgram& listed,
                          const Counterexample& found) {
  const auto instance = program.make(program.cores);
  const Counterexample shorter = shorten(*instance, program.bounds, found);
  fmt::print("  {}\n", shorter.what);
  replay(*instance, program.bounds, shorter.path,
         [](const std::string& line) { fmt::print("    {}\n", line); });
  fmt::print("  tombolo-litmus replay {} '{}'{}\n", program.name, to_text(shorter.path),
             options_of(program, listed));
}

nlohmann::json json_of(const BoundsMet& met) {
  nlohmann::json names = nlohmann::json::array();
  each_name(met, [&](const char* name) { names.push_back(name); });
  return names;
}

nlohmann::json json_of(const ExploredProgram& program, const Coverage& coverage) {
  nlohmann::json json{{"program", program.name},
                      {"cores", program.cores},
                      {"evictions", program.bounds.evictions},
                      {"pauses", program.bounds.pauses},
                      {"retries", program.bounds.retries},
                      {"loads", program.bounds.loads},
                      {"preemptions", program.bounds.preemptions == no_bound
                                          ? nlohmann::json()
                                          : nlohmann::json(program.bounds.preemptions)},
                      {"executions", coverage.executions},
                      {"states", coverage.states},
                      {"steps", coverage.steps},
                      {"merged", coverage.merged},
                      {"left_out", coverage.left_out},
                      {"longest", coverage.longest},
                      {"seconds", coverage.seconds},
                      {"within_bounds", coverage.within_bounds()},
                      {"bounds_met", json_of(coverage.met)},
                      {"complete", coverage.complete()}};
  if (coverage.counterexample)
    json["counterexample"] = {{"what", coverage.counterexample->what},
                              {"path", to_text(coverage.counterexample->path)}};
  return json;
}

std::string verdict(const Coverage& coverage) {
  if (coverage.counterexample) return "REFUTED";
  if (coverage.complete()) return "holds";
  if (coverage.within_bounds()) return "holds within the bounds on " + to_text(coverage.met);
  return "no failure found";
}

int explore_all(const Choices& choices) {
  std::vector<ExploredProgram> programs = all_explorable();
  std::erase_if(programs, [&](const ExploredProgram& program) {
    return !is_part(choices.name, program.name);
  });
  if (programs.empty()) return no_such("test or program", choices.name, names(all_explorable()));
  if (!cores_fit(programs, choices)) return wrong_usage;
  int wrong = 0;
  for (const ExploredProgram& listed : programs) {
    const ExploredProgram program = chosen(listed, choices);
    const auto instance = program.make(program.cores);
    const Coverage coverage = explore(*instance, program.bounds);
    const bool fell = coverage.counterexample.has_value();
    if (fell != program.broken) ++wrong;
    if (choices.json) {
      fmt::print("{}\n", json_of(program, coverage).dump());
    } else {
      fmt::print("{}, {} cores: {}\n  {}\n", program.name, program.cores, verdict(coverage),
                 to_text(coverage, program.bounds));
      if (fell) print_counterexample(program, listed, *coverage.counterexample);
      if (!fell && !choices.name.empty())
        for (const auto& [outcome, count] : coverage.outcomes)
          fmt::print("  outcome: {} ({} times)\n", outcome, count);
      if (fell != program.broken) fmt::print("  WRONG: expected otherwise\n");
    }
    std::fflush(stdout);
  }
  return wrong == 0 ? 0 : 1;
}

int replay_one(const Choices& choices) {
  std::vector<Transition> path;
  if (!from_text(choices.path, path)) {
    fmt::print(stderr, "tombolo-litmus: '{}' is no list of choices, such as '0 1v2 s0 w1.3 e0.1'\n",
               choices.path);
    return wrong_usage;
  }
  for (const ExploredProgram& listed : all_explorable()) {
    if (listed.name != choices.name) continue;
    if (!cores_fit({listed}, choices)) return wrong_usage;
    const ExploredProgram program = chosen(listed, choices);
    const auto instance = program.make(program.cores);
    return replay(*instance, program.bounds, path,
                  [](const std::string& line) { fmt::print("{}\n", line); })
               ? 0
               : 1;
  }
  return no_such("test or program", choices.name, names(all_explorable()));
}

void add_bounds(CLI::App& command, Choices& choices) {
  command.add_option("--cores", choices.cores, "Cores")->check(CLI::Range(2, 4));
  command.add_option("--evictions", choices.evictions, "Evictions of written lines per execution");
  command.add_option("--steps", choices.steps, "Transitions per execution");
  command.add_option("--pauses", choices.pauses, "Short pauses per core");
  command.add_option("--preemptions", choices.preemptions,
                     "Times that the turn is taken from a core which could go on");
  command.add_option("--loads", choices.loads,
                     "Loads of a core of one word with one value, in a row");
  command.add_option("--retries", choices.retries, "Attempts per core though nothing has changed");
}

}  // namespace
}  // namespace tombolo::litmus

int main(int argc, char** argv) {
  using namespace tombolo::litmus;
  Choices choices;
  CLI::App app("Litmus tests and exhaustive exploration of synchronization algorithms");
  app.require_subcommand(1);
  auto* list_command = app.add_subcommand("list", "The litmus tests and programs");
  auto* run_command = app.add_subcommand("run", "Litmus tests on machines, against the verdicts");
  auto* explore_command = app.add_subcommand("explore", "Every schedule within bounds");
  auto* replay_command = app.add_subcommand("replay", "One execution, step by step");
  for (CLI::App* command : {list_command, run_command, explore_command})
    command->add_option("name", choices.name, "Those whose name contains it; all if left out");
  run_command->add_option("--machine", choices.machine, "One machine only");
  run_command->add_option("--seed", choices.effort.seed, "Of the first run; each adds one");
  run_command->add_option("--runs", choices.effort.runs, "Runs of each test")
      ->check(CLI::PositiveNumber);
  for (CLI::App* command : {run_command, explore_command})
    command->add_flag("--json", choices.json, "A JSON line for each result");
  add_bounds(*explore_command, choices);
  explore_command->add_option("--executions", choices.executions, "Stop after so many");
  explore_command->add_flag("--full", choices.full, "Without any reduction");
  replay_command->add_option("name", choices.name, "The program")->required();
  replay_command->add_option("choices", choices.path, "As explore prints them")->required();
  add_bounds(*replay_command, choices);
  CLI11_PARSE(app, argc, argv);
  if (*list_command) return list(choices);
  if (*run_command) return run(choices);
  return *explore_command ? explore_all(choices) : replay_one(choices);
}
