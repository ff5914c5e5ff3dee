// SPDX-License-Identifier: Apache-2.0
#include "experiments/recommendations/recommendations.h"

#include <algorithm>
#include <array>

#include "experiments/automaton/automaton_windows.h"
#include "experiments/common/chip_windows.h"
#include "experiments/common/library.h"
#include "experiments/common/measure.h"
#include "experiments/ft/ft.h"

namespace tombolo::experiments {
namespace {

using machine::Home;
using scc::MemoryType;
using Window = windows::Window<scc::Core>;

// A chip of backends/scc/chips/scc-NAME.toml, and how a program maps its windows there.
struct Recommendation {
  std::string name;
  scc::Placement placement = {};
};

scc::Placement mapped(MemoryType own, MemoryType peers) {
  scc::Placement placement;
  placement.own = own;
  placement.peers = peers;
  return placement;
}

// Own windows are cacheable where the chip can tell memory of lines or forget them: else MPBT-WT,
// as the papers have it (000 section 4.4.2).
std::vector<Recommendation> all_recommendations() {
  return {{"repaired", mapped(MemoryType::mpbt_wt, MemoryType::mpbt_wt)},
          {"commit", mapped(MemoryType::mpbt_wt, MemoryType::mpbt_wt)},
          {"write-back", mapped(MemoryType::mpbt_wb, MemoryType::mpbt_wt)},
          {"invalidation", mapped(MemoryType::mpbt_wb, MemoryType::mpbt_wt)},
          {"remote-invalidation", mapped(MemoryType::mpbt_wb, MemoryType::mpbt_wt)},
          {"copy-engine", mapped(MemoryType::mpbt_wt, MemoryType::mpbt_wt)},
          {"all", mapped(MemoryType::wt, MemoryType::mpbt_wt)}};
}

struct Put {
  std::string name;
  std::uint64_t bytes = 0;
  int iterations = 0;
};

std::vector<Put> puts(const Context& context) {
  return {{"put-4k", 4096, context.repetitions(50, 5)},
          {"put-1m", std::uint64_t{1} << 20, context.repetitions(5, 1)}};
}

// The bytes of one iteration.
std::byte sign_of(int iteration) { return static_cast<std::byte>(1 + iteration % 255); }

void put(Library& mpi, scc::Core& core, const Put& what) {
  const Home target[] = {1};
  std::byte* const from = core.allocate(what.bytes);
  for (int i = 0; i < what.iterations; ++i) {
    std::fill_n(from, what.bytes, sign_of(i));
    mpi.start(target);
    mpi.put(1, 0, from, what.bytes);
    mpi.complete();
  }
}

// The target looks at the bytes, and stores into its window before it opens it again. False: it saw
// bytes that were not put.
bool take(Library& mpi, scc::Core& core, const Put& what) {
  const Home origin[] = {0};
  std::array<std::byte, 32> line = {};
  bool right = true;
  for (int i = 0; i < what.iterations; ++i) {
    require(core.write({1, 0}, line.data(), line.size()));
    mpi.post(origin);
    mpi.wait();
    for (std::uint64_t at = 0; at < what.bytes; at += line.size()) {
      require(core.read({1, at}, line.data(), line.size()));
      for (const std::byte seen : line) right = right && seen == sign_of(i);
    }
  }
  return right;
}

// Microseconds from one put to the next: the origin's wait includes the target's look at the bytes
// before.
Status time_put(const Context& context, Recorder& recorder, const scc::Placement& placement,
                const Put& what, double* each) {
  scc::JobShape shape;
  shape.sync_bytes = Window::sync_bytes(shape.processes);
  shape.data_bytes = what.bytes;
  shape.placement = placement;
  bool right = true;
  TOMBOLO_TRY(run_job(context, recorder, shape, [&](const scc::Attachment& at, scc::Cpu& cpu) {
    Window window(at, {});
    Library mpi(window, cpu);
    mpi.barrier();
    const simulator::Duration all = time_of(cpu, [&] {
      if (at.self == 0) put(mpi, window.core(), what);
      if (at.self == 1) right = take(mpi, window.core(), what);
    });
    if (at.self == 1) *each = microseconds(all) / what.iterations;
  }));
  if (right) return {};
  return Status::io(fmt::format("{} on chip {}: the target saw bytes that were not put", what.name,
                                context.chip.name));
}

// Iterations of the transform, whose checksums have to be right.
Status time_ft(const Context& context, Recorder& recorder, const scc::Placement& placement,
               const FtClass& problem, double* seconds) {
  FtResult result;
  TOMBOLO_TRY(
      ft_by_windows(context, recorder, placement, problem, context.repetitions(2, 1), &result));
  *seconds = result.seconds;
  if (ft_equal(result.checksums, problem.checksums)) return {};
  return Status::io(
      fmt::format("class {} of FT on chip {}: wrong checksums", problem.name, context.chip.name));
}

// As many steps of the automaton as show a line that is stale the second time that its array is
// read.
Status time_automaton(const Context& context, Recorder& recorder, const scc::Placement& placement,
                      std::uint32_t processes, double* seconds) {
  const AutomatonPlan plan{.own = placement.own,
                           .peers = placement.peers,
                           .as_prototype = placement.as_prototype,
                           .warm_up = 0,
                           .steps = 3};
  AutomatonOutcome outcome;
  TOMBOLO_TRY(run_automaton(context, {.processes = processes, .seed = context.seed}, plan, recorder,
                            &outcome));
  *seconds = outcome.longest.in_nanoseconds() * 1e-9;
  if (outcome.wrong_cells == 0) return {};
  return Status::io(fmt::format("the automaton on chip {}: {} wrong cells", context.chip.name,
                                outcome.wrong_cells));
}

// The times of a program on the plain chip, and on the one with the recommendation.
using Program = std::function<Status(const Context&, Recorder&, const scc::Placement&, double*)>;

Status gain(const Context& context, Recorder& recorder, const Recommendation& recommendation,
            const std::string& name, const Program& program) {
  if (context.chip.name != "scc")
    return Status::bad_configuration(
        "the recommendations are measured against the chip \"scc\"; "
        "leave out --chip");
  Context plain = context;
  Context recommended = context;
  TOMBOLO_TRY(scc::find_parameters("scc", &plain.chip));
  TOMBOLO_TRY(scc::find_parameters("scc-" + recommendation.name, &recommended.chip));
  double before = 0;
  double after = 0;
  TOMBOLO_TRY(program(plain, recorder, {}, &before));
  TOMBOLO_TRY(program(recommended, recorder, recommendation.placement, &after));
  recorder.row({recommendation.name, name, before / after, "times", {}, {}, {}, recommended.chip});
  return {};
}

// The features that can matter to FT, which never stores into its window but reads all of it: there
// is nothing to write back, and forgetting lines of a range lets the window lie in both caches.
std::vector<Recommendation> recommendations_for_ft() {
  std::vector<Recommendation> all = all_recommendations();
  std::erase_if(
      all, [](const Recommendation& r) { return r.name == "commit" || r.name == "write-back"; });
  for (Recommendation& r : all)
    if (r.name == "invalidation" || r.name == "remote-invalidation")
      r.placement.own = MemoryType::dcm;
  return all;
}

// And to the automaton, which puts from its window line by line.
std::vector<Recommendation> recommendations_for_automaton() {
  std::vector<Recommendation> all = all_recommendations();
  std::erase_if(
      all, [](const Recommendation& r) { return r.name == "commit" || r.name == "copy-engine"; });
  return all;
}

std::vector<Point> points(const Context& context) {
  std::vector<Point> all;
  const auto add = [&](const Recommendation& recommendation, const std::string& name,
                       double seconds, std::uint64_t memory_bytes, const Program& program) {
    all.push_back(
        {fmt::format("{}-{}", recommendation.name, name), seconds, memory_bytes,
         [=](const Context& c, Recorder& r) { return gain(c, r, recommendation, name, program); }});
  };
  for (const Recommendation& recommendation : all_recommendations())
    for (const Put& what : puts(context))
      add(recommendation, what.name, context.quick ? 0.2 : 1.0, memory_of_chip(2) + 4 * what.bytes,
          [what](const Context& c, Recorder& r, const scc::Placement& placement, double* each) {
            return time_put(c, r, placement, what, each);
          });
  for (const Recommendation& recommendation : recommendations_for_ft())
    for (const char name : {'S', 'W'}) {
      if (context.quick && name != 'S') continue;
      const FtClass& problem = ft_class(name);
      add(recommendation, name == 'S' ? "ft-s" : "ft-w",
          static_cast<double>(problem.points()) * (context.quick ? 1.2e-5 : 1.8e-5),
          ft_memory(problem),
          [&problem](const Context& c, Recorder& r, const scc::Placement& placement, double* each) {
            return time_ft(c, r, placement, problem, each);
          });
    }
  constexpr std::uint32_t process_count = 24;
  for (const Recommendation& recommendation : recommendations_for_automaton())
    if (!context.quick)
      add(recommendation, fmt::format("automaton-{}", process_count), 40,
          automaton_memory({.processes = process_count}),
          [](const Context& c, Recorder& r, const scc::Placement& placement, double* each) {
            return time_automaton(c, r, placement, process_count, each);
          });
  return all;
}

}  // namespace

Experiment recommendations() {
  return {"recommendations", "Recommendations for future hardware", points};
}

}  // namespace tombolo::experiments
