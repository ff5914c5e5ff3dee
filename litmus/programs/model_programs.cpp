// SPDX-License-Identifier: Apache-2.0
#include "litmus/programs/model_programs.h"

#include <fmt/format.h>

#include <memory>

#include "base/random.h"
#include "litmus/explorer/explorer.h"
#include "litmus/programs/memory_program.h"

namespace tombolo::litmus {
namespace {

using Kind = ModelStep::Kind;
using dsm::testing::Knowledge;
using dsm::testing::Model;

constexpr std::uint64_t X = on_first;
constexpr std::uint64_t Y = on_second;
constexpr dsm::Lock L1 = 0;
constexpr dsm::Lock L2 = 1;

ModelStep store(dsm::Thread thread, std::uint64_t variable) {
  return {.kind = Kind::store, .thread = thread, .variable = variable};
}
ModelStep load(dsm::Thread thread, char into, std::uint64_t variable) {
  return {.kind = Kind::load, .thread = thread, .variable = variable, .into = into};
}
ModelStep acquire(dsm::Thread thread, dsm::Lock lock) {
  return {.kind = Kind::acquire, .thread = thread, .variable = lock};
}
ModelStep release(dsm::Thread thread, dsm::Lock lock) {
  return {.kind = Kind::release, .thread = thread, .variable = lock};
}
ModelStep by_all(Kind kind) { return {.kind = kind}; }
bool is_by_all(const ModelStep& step) {
  return step.kind == Kind::barrier || step.kind == Kind::reduce;
}

std::string to_text(const ModelStep& step) {
  const char name = step.variable == X ? 'X' : 'Y';
  switch (step.kind) {
    case Kind::load:
      return fmt::format("{} = {}", step.into, name);
    case Kind::store:
      return fmt::format("{} = 1", name);
    case Kind::acquire:
      return fmt::format("acq(L{})", step.variable + 1);
    case Kind::release:
      return fmt::format("rel(L{})", step.variable + 1);
    case Kind::barrier:
      return "barrier";
    default:
      return "reduce";
  }
}

// The programs on the explored machine: `old` collects over all executions.
template <template <class, class> class Protocol>
class Shown {
 public:
  using Thread = ThreadOn<Explored, Protocol>;
  explicit Shown(const ModelProgram& program) : program_(program) {
    for (const ModelStep& step : program.steps)
      if (step.kind == Kind::load) old_.push_back(false);
  }

  OldValues go() {
    MemoryProgram<Thread> explored(
        program_.threads, two_pages, [this](MemoryThread<Thread>& t) { run(t); }, nullptr);
    // A thread of a sequential program answers others wherever it waits: too many schedules.
    if constexpr (Thread::Protocol::polls) {
      for (std::uint64_t seed = 1; seed <= walks; ++seed) walk(explored, seed);
    } else {
      const Coverage coverage = explore(explored, {});
      TOMBOLO_CHECK(coverage.within_bounds(), "{}: {}", program_.name,
                    coverage.counterexample ? coverage.counterexample->what : "not explored");
    }
    return old_;
  }

 private:
  static constexpr std::uint64_t walks = 300;

  void walk(Program& explored, std::uint64_t seed) {
    Run run(explored, {.evictions = no_bound, .pauses = no_bound, .loads = no_bound});
    run.restart();
    Random random(seed);
    std::vector<Transition> choices;
    while (run.failure().empty() && run.enabled(choices))
      run.apply(choices[random.below(choices.size())]);
    TOMBOLO_CHECK(run.failure().empty() && run.ended(), "{}, walk {}: {}", program_.name, seed,
                  run.failure() + run.where_everybody_is());
  }

  void run(MemoryThread<Thread>& t) {
    for (const ModelStep& step : program_.steps)
      if (step.kind == Kind::load && step.thread == t.self()) t.load(step.variable);
    // All are warm before the first step.
    t.memory().sum(0);
    std::size_t loads = 0;
    for (std::size_t i = 0; i < program_.steps.size(); ++i) {
      const ModelStep& step = program_.steps[i];
      const std::size_t number = loads;
      loads += step.kind == Kind::load ? 1 : 0;
      if (!is_by_all(step) && step.thread != t.self()) continue;
      if (!is_by_all(step) && i != 0) wait_for_step(t, i - 1);
      perform(t, step, number);
      if (!is_by_all(step)) t.reach(i + 1);
    }
    t.memory().close();
  }
  void wait_for_step(MemoryThread<Thread>& t, std::size_t before) {
    const ModelStep& step = program_.steps[before];
    if (!is_by_all(step) && step.thread != t.self()) t.await(step.thread, before + 1);
  }
  void perform(MemoryThread<Thread>& t, const ModelStep& step, std::size_t number) {
    switch (step.kind) {
      case Kind::load:
        if (t.load(step.variable) == 0) old_[number] = true;
        break;
      case Kind::store:
        t.store(step.variable, 1);
        break;
      case Kind::acquire:
        t.begin(static_cast<dsm::Lock>(step.variable));
        break;
      case Kind::release:
        t.end(static_cast<dsm::Lock>(step.variable));
        break;
      case Kind::barrier:
        t.barrier();
        break;
      case Kind::reduce:
        t.memory().sum(1);
        break;
    }
  }

  const ModelProgram& program_;
  OldValues old_;
};

}  // namespace

const std::vector<ModelProgram>& model_programs() {
  static const std::vector<ModelProgram> all{
      {"figure-3.2",
       "the program of 003 figure 3.2: a store outside of spans",
       2,
       {store(0, X), acquire(0, L1), store(0, Y), acquire(1, L2), load(1, 'A', X), release(0, L1),
        load(1, 'B', X), release(1, L2), acquire(1, L1), load(1, 'C', Y), load(1, 'D', X),
        release(1, L1)}},
      {"before-a-span",
       "a store before a span, and a span of the same lock",
       2,
       {store(0, X), acquire(0, L1), release(0, L1), acquire(1, L1), load(1, 'A', X),
        release(1, L1)}},
      {"reader-without-a-span",
       "the reader does not synchronize",
       2,
       {store(0, X), acquire(0, L1), release(0, L1), load(1, 'A', X)}},
      {"after-a-span",
       "a store after the last span of its thread",
       2,
       {acquire(0, L1), release(0, L1), store(0, X), acquire(1, L1), load(1, 'A', X),
        release(1, L1)}},
      {"in-a-span",
       "a store in a span, and a span of the same lock",
       2,
       {acquire(0, L1), store(0, X), release(0, L1), acquire(1, L1), load(1, 'A', X),
        release(1, L1)}},
      {"in-a-span-of-another-lock",
       "a store in a span, and a span of another lock",
       2,
       {acquire(0, L1), store(0, X), release(0, L1), acquire(1, L2), load(1, 'A', X),
        release(1, L2)}},
      {"in-an-open-span",
       "a store in a span that has not ended",
       2,
       {acquire(0, L1), store(0, X), acquire(1, L2), load(1, 'A', X), release(1, L2),
        release(0, L1)}},
      {"in-two-spans",
       "a store in nested spans, and a span of the outer lock",
       2,
       {acquire(0, L1), acquire(0, L2), store(0, X), release(0, L2), release(0, L1), acquire(1, L1),
        load(1, 'A', X), release(1, L1)}},
      {"handed-on",
       "a thread in between hands on what it has seen, by another lock",
       3,
       {acquire(0, L1), store(0, X), release(0, L1), acquire(1, L1), release(1, L1), acquire(1, L2),
        store(1, Y), release(1, L2), acquire(2, L2), load(2, 'A', Y), load(2, 'B', X),
        release(2, L2)}},
      {"barrier",
       "stores in and outside of spans before a barrier",
       2,
       {store(0, X), acquire(0, L1), store(0, Y), release(0, L1), by_all(Kind::barrier),
        load(1, 'A', X), load(1, 'B', Y)}},
      {"reduction",
       "a store before a reduction",
       2,
       {store(0, X), by_all(Kind::reduce), load(1, 'A', X)}},
  };
  return all;
}

OldValues allowed_by(Model model, const ModelProgram& program) {
  Knowledge known(model, program.threads, two_pages.pages, two_pages.locks);
  OldValues old;
  for (const ModelStep& step : program.steps) {
    switch (step.kind) {
      case Kind::load:
        old.push_back(known.performed(step.thread, step.variable) < known.stored()[step.variable]);
        break;
      case Kind::store:
        known.store(step.thread, step.variable);
        break;
      case Kind::acquire:
        known.acquire(step.thread, static_cast<dsm::Lock>(step.variable));
        break;
      case Kind::release:
        known.release(step.thread, static_cast<dsm::Lock>(step.variable));
        break;
      case Kind::barrier:
        for (dsm::Thread thread = 0; thread < program.threads; ++thread)
          known.leave_barrier(thread, known.stored());
        break;
      case Kind::reduce:
        break;  // orders no stores, in no model
    }
  }
  return old;
}

OldValues shown_by_regional(const ModelProgram& program) {
  return Shown<dsm::Regional>(program).go();
}
OldValues shown_by_sequential(const ModelProgram& program) {
  return Shown<dsm::Sequential>(program).go();
}

std::string timeline(const ModelProgram& program) {
  std::vector<std::string> lines;
  for (dsm::Thread thread = 0; thread < program.threads; ++thread)
    lines.push_back(fmt::format("  thread {} ", thread));
  for (const ModelStep& step : program.steps) {
    const std::string text = to_text(step);
    for (dsm::Thread thread = 0; thread < program.threads; ++thread) {
      const bool is_here = is_by_all(step) || thread == step.thread;
      lines[thread] += fmt::format(" {:<{}}", is_here ? text : "", text.size());
    }
  }
  std::string all = fmt::format("{}: {}\n", program.name, program.about);
  for (std::string& line : lines) {
    line.erase(line.find_last_not_of(' ') + 1);
    all += line + "\n";
  }
  return all;
}

std::string all_timelines() {
  std::string text;
  for (const ModelProgram& program : model_programs())
    text += (text.empty() ? "" : "\n") + timeline(program);
  return text;
}

std::string verdict_table() {
  std::string text = "| program | load |";
  std::string line = "|---|---|";
  for (const Model model : dsm::testing::models) {
    text += fmt::format(" {} |", name_of(model));
    line += "---|";
  }
  text += " `regional` shows | `sequential` shows |\n" + line + "---|---|\n";
  for (const ModelProgram& program : model_programs()) {
    std::vector<OldValues> allowed;
    for (const Model model : dsm::testing::models) allowed.push_back(allowed_by(model, program));
    const OldValues regional = shown_by_regional(program);
    const OldValues sequential = shown_by_sequential(program);
    std::size_t number = 0;
    for (const ModelStep& step : program.steps) {
      if (step.kind != Kind::load) continue;
      text += fmt::format("| `{}` | {} |", program.name, to_text(step));
      for (const OldValues& old : allowed) text += old[number] ? " ALLOWED |" : " FORBIDDEN |";
      text += fmt::format(" {} | {} |\n", regional[number] ? "old" : "new",
                          sequential[number] ? "old" : "new");
      ++number;
    }
  }
  return text;
}

std::string racing_outcomes() {
  using Thread = ThreadOn<Explored, dsm::Regional>;
  MemoryProgram<Thread> program(
      2, two_pages,
      [](MemoryThread<Thread>& t) {
        t.store(X, t.self() + 1);
        t.barrier();
        if (t.self() == 0) t.saw(t.load(X));
      },
      nullptr);
  std::string text;
  for (const auto& [outcome, times] : explore(program, {}).outcomes)
    text += (text.empty() ? "" : ", ") + outcome.substr(outcome.find_last_of(' ') + 1);
  return text;
}

}  // namespace tombolo::litmus
