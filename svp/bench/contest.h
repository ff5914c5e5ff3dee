// SPDX-License-Identifier: Apache-2.0
// Purpose: measures contestants of a benchmark in turn, A B A B, and prints a line of JSON for
// each: {"benchmark": "fib", "runtime": "oneTBB", "workers": 2, "tasks": 7049155,
// "seconds": [0.1, ...]}
// Thread safety: one thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/check.h"
#include "svp/api/include/tombolo/svp.hpp"

namespace tombolo::svp::bench {

struct Settings {
  unsigned workers = 1;
  int rounds = 3;
  bool quick = false;
  std::string only;     // the benchmark; empty: all
  std::string runtime;  // the start of its name; empty: all

  int threads() const { return static_cast<int>(workers); }
};

class Contest {
 public:
  // `tasks`: of a run, for the time of one.
  Contest(const Settings& settings, std::string benchmark, double tasks);

  // `run`: once, all of it, in whichever thread calls. `tasks`: of its own, where it does fewer.
  void add(std::string runtime, std::function<void()> run, double tasks = 0);
  // `run` by a worker of families, as the callers of other run-times are workers of theirs: a
  // thread that is none sleeps until its family has ended, and its wake takes as long as many a
  // short run.
  void add_inside(std::string runtime, std::function<void()> run);
  // Runs all in turn, and prints.
  void measure();

 private:
  struct Contestant {
    std::string runtime;
    std::function<void()> run;
    double tasks;
    std::vector<double> seconds = {};
    bool inside = false;
  };
  double sample(const Contestant& one) const;
  double timed(const Contestant& one) const;

  const Settings& settings_;
  std::string benchmark_;
  double tasks_;
  std::vector<Contestant> all_;
};

// The caller's thread as a task of each run-time, with so many workers. Where it is a worker of
// families already, it stays one.
void in_families(const Settings& settings, const std::function<void()>& body);
void in_tbb(const Settings& settings, const std::function<void()>& body);
void in_openmp(const Settings& settings, const std::function<void()>& body);

inline void expect(bool holds, const char* benchmark) {
  TOMBOLO_CHECK(holds, "{}: a wrong result", benchmark);
}

// One file for each.
void fib(const Settings& settings);
void skynet(const Settings& settings);
void tree_search(const Settings& settings);
void queens(const Settings& settings);
void matrices(const Settings& settings);
void loop(const Settings& settings);
void chain(const Settings& settings);
void counter(const Settings& settings);

}  // namespace tombolo::svp::bench
