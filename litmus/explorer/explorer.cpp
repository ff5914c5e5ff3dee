// SPDX-License-Identifier: Apache-2.0
#include "litmus/explorer/explorer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <unordered_map>

#include "litmus/explorer/run.h"

namespace tombolo::litmus {
namespace {

using Transitions = std::vector<Transition>;

bool contains(const Transitions& transitions, const Transition& transition) {
  return std::find(transitions.begin(), transitions.end(), transition) != transitions.end();
}

// One state of the path that is being explored.
struct Node {
  Transitions choices;  // to be explored from here, in order
  std::size_t next = 0;
  Transitions sleep;  // explored elsewhere, or already from here
};

class Search {
 public:
  Search(Program& program, const Bounds& bounds) : bounds_(bounds), run_(program, bounds) {
    if (bounds.preemptions != no_bound) bounds_.sleep = false;
  }

  Coverage go() {
    const auto start = std::chrono::steady_clock::now();
    do {
      repeat_path();
      go_on();
    } while (!coverage_.counterexample && to_next_branch() && !out_of_executions());
    coverage_.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    coverage_.met = run_.met();
    coverage_.met.steps = coverage_.cut != 0;
    coverage_.met.executions = coverage_.stopped && !coverage_.counterexample;
    return std::move(coverage_);
  }

 private:
  void take(const Transition& transition) {
    run_.apply(transition);
    ++coverage_.steps;
  }

  void repeat_path() {
    ++coverage_.executions;
    run_.restart();
    for (std::size_t i = 0; i + 1 < path_.size(); ++i) take(path_[i].choices[path_[i].next]);
  }

  // From the end of the path, whose last node has a choice to make, to an end or a known state.
  void go_on() {
    Transitions sleep;
    if (path_.empty()) {
      if (!arrive(std::move(sleep))) return;
    }
    do {
      Node& node = path_.back();
      const Transition& chosen = node.choices[node.next];
      sleep.clear();
      if (bounds_.sleep)
        for (const Transition& other : node.sleep)
          if (!run_.dependent(other, chosen)) sleep.push_back(other);
      take(chosen);
    } while (arrive(std::move(sleep)));
  }

  // At a state. True if there is something to choose, which is at the end of the path then.
  bool arrive(Transitions&& sleep) {
    coverage_.longest = std::max(coverage_.longest, static_cast<std::uint32_t>(path_.size()));
    if (!run_.failure().empty()) return found(run_.failure());
    Transitions choices;
    if (!run_.enabled(choices)) return at_end();
    if (path_.size() >= bounds_.steps) {
      ++coverage_.cut;
      return false;
    }
    if (!bounds_.merge) {
      ++coverage_.states;
      leave_out(choices, sleep);
    } else if (!run_.is_forced(choices.front())) {
      // Beside a forced step nothing is explored: the sleep set is kept with the state after it.
      choices = not_explored_from_here(std::move(choices), sleep);
    }
    if (choices.empty()) return false;
    path_.push_back({.choices = std::move(choices), .sleep = std::move(sleep)});
    return true;
  }

  void leave_out(Transitions& choices, const Transitions& sleep) {
    coverage_.left_out +=
        std::erase_if(choices, [&](const Transition& choice) { return contains(sleep, choice); });
  }

  // Keeps with each state the transitions left out there on every visit so far (EP3).
  Transitions not_explored_from_here(Transitions&& choices, Transitions& sleep) {
    const auto [entry, is_new] = states_.try_emplace(run_.key());
    Transitions& never = entry->second;
    if (is_new) {
      ++coverage_.states;
      for (const Transition& choice : choices)
        if (contains(sleep, choice)) never.push_back(choice);
      leave_out(choices, sleep);
      return std::move(choices);
    }
    Transitions now;
    for (const Transition& choice : never)
      if (!contains(sleep, choice)) now.push_back(choice);
    if (now.empty()) {
      ++coverage_.merged;
      return now;
    }
    std::erase_if(never, [&](const Transition& choice) { return contains(now, choice); });
    std::erase_if(sleep, [&](const Transition& choice) { return !contains(never, choice); });
    return now;
  }

  bool at_end() {
    if (!run_.ended()) return found("deadlock: " + run_.where_everybody_is());
    std::string outcome = run_.outcome();
    if (!run_.failure().empty()) return found(run_.failure());
    ++coverage_.outcomes[outcome];
    return false;
  }

  bool found(const std::string& what) {
    Counterexample counterexample{.what = what, .path = {}};
    for (const Node& node : path_) counterexample.path.push_back(node.choices[node.next]);
    coverage_.counterexample = std::move(counterexample);
    coverage_.stopped = true;
    return false;
  }

  // False if everything was explored.
  bool to_next_branch() {
    while (!path_.empty()) {
      Node& node = path_.back();
      if (bounds_.sleep) node.sleep.push_back(node.choices[node.next]);
      if (++node.next < node.choices.size()) return true;
      path_.pop_back();
    }
    return false;
  }

  bool out_of_executions() {
    if (bounds_.executions == 0 || coverage_.executions < bounds_.executions) return false;
    coverage_.stopped = true;
    return true;
  }

  Bounds bounds_;
  Run run_;
  std::vector<Node> path_;
  std::unordered_map<std::uint64_t, Transitions> states_;  // by key
  Coverage coverage_;
};

// The failure at the end of the path or after it, if the path is one; empty if there is none.
// Cuts the path where it has failed.
std::string failure_of(Run& run, Transitions& path) {
  run.restart();
  Transitions choices;
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (!run.failure().empty()) {
      path.resize(i);
      return run.failure();
    }
    if (!run.enabled(choices) || !contains(choices, path[i])) return "";
    run.apply(path[i]);
  }
  if (!run.failure().empty()) return run.failure();
  if (run.enabled(choices)) return "";
  if (!run.ended()) return "deadlock: " + run.where_everybody_is();
  (void)run.outcome();
  return run.failure();
}

}  // namespace

Coverage explore(Program& program, const Bounds& bounds) { return Search(program, bounds).go(); }

bool replay(Program& program, const Bounds& bounds, const Transitions& path,
            const std::function<void(const std::string&)>& listener) {
  Run run(program, bounds);
  run.tell(listener);
  run.restart();
  Transitions choices;
  for (const Transition& transition : path) {
    if (!run.enabled(choices) || !contains(choices, transition)) {
      listener(fmt::format("{} is not possible here: {}", to_text(transition),
                           run.where_everybody_is()));
      return false;
    }
    run.apply(transition);
  }
  if (!run.failure().empty()) {
    listener("failure: " + run.failure());
  } else if (run.enabled(choices)) {
    listener("not at an end: " + run.where_everybody_is());
  } else if (!run.ended()) {
    listener("deadlock: " + run.where_everybody_is());
  } else {
    const std::string outcome = run.outcome();
    listener(run.failure().empty() ? "outcome: " + outcome : "failure: " + run.failure());
  }
  return true;
}

Counterexample shorten(Program& program, const Bounds& bounds, const Counterexample& found) {
  Run run(program, bounds);
  Counterexample best = found;
  const std::string kind = found.what.substr(0, found.what.find(':'));
  for (std::size_t i = best.path.size(); i-- > 0;) {
    if (i >= best.path.size()) continue;
    Transitions path = best.path;
    path.erase(path.begin() + static_cast<std::ptrdiff_t>(i));
    const std::string what = failure_of(run, path);
    if (what.substr(0, what.find(':')) == kind) best = {.what = what, .path = std::move(path)};
  }
  return best;
}

namespace {

std::string conclusion(const Coverage& c) {
  if (c.counterexample) return "stopped at a counterexample";
  if (c.complete()) return "complete";
  return fmt::format("not complete: met the bounds on {}{}", to_text(c.met),
                     c.cut == 0 ? "" : fmt::format(" ({} executions cut)", c.cut));
}

}  // namespace

std::string to_text(const Coverage& c, const Bounds& bounds) {
  return fmt::format(
      "{} executions, {} states, {} steps ({} executions met a known state, {} transitions left "
      "out as independent), longest {}, {:.2f} s; bounds: {} evictions, {} short pauses and {} "
      "retries per core, {} loads in a row, {} steps, {} preemptions; {}",
      c.executions, c.states, c.steps, c.merged, c.left_out, c.longest, c.seconds, bounds.evictions,
      bounds.pauses, bounds.retries, bounds.loads, bounds.steps,
      bounds.preemptions == no_bound ? "any" : fmt::format("{}", bounds.preemptions),
      conclusion(c));
}

}  // namespace tombolo::litmus
