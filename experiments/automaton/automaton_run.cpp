// SPDX-License-Identifier: Apache-2.0
#include "experiments/automaton/automaton_run.h"

#include <algorithm>

namespace tombolo::experiments {

void begin_automaton(const AutomatonField& field, AutomatonOutcome& outcome) {
  Progress* const progress = outcome.progress;
  outcome = {};
  outcome.progress = progress;
  outcome.computation.resize(field.processes);
  outcome.exchange.resize(field.processes);
}

void run_process(scc::detail::Base& core, const AutomatonField& field, const AutomatonPlan& plan,
                 AutomatonExchange& exchange, const std::function<void()>& barrier,
                 const AutomatonLines& expected, AutomatonOutcome& outcome) {
  AutomatonStepper stepper(core, field);
  stepper.initialize();
  if (core.self() == 0 && outcome.progress != nullptr)
    stepper.tell(*outcome.progress, plan.all_steps());
  exchange.open(0);
  exchange.send(0);
  exchange.close(0);
  for (int i = 0; i < plan.warm_up; ++i) stepper.step(i % 2, exchange);
  barrier();
  stepper.forget_times();
  const simulator::Time begin = core.cpu().now();
  const int all = plan.all_steps();
  for (int i = plan.warm_up; i < all; ++i) {
    stepper.step(i % 2, exchange);
    if (core.self() == 0) outcome.exchange_so_far.push_back(stepper.exchange());
  }
  outcome.longest = std::max(outcome.longest, core.cpu().now() - begin);
  outcome.computation[core.self()] = stepper.computation();
  outcome.exchange[core.self()] = stepper.exchange();
  outcome.wrong_cells += stepper.wrong_cells(all % 2, expected);
}

}  // namespace tombolo::experiments
