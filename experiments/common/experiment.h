// SPDX-License-Identifier: Apache-2.0
// Purpose: an experiment on a simulated chip: a name, and points that can be run independently of
// each other. A point runs programs against the public layers (windows, sync,
// messages) and reports measured values as rows.
//
// Series, units and x values are those of NAME.toml in the experiment's folder, which has the
// papers' numbers beside them. README.md says how to add an experiment.
//
// Invariants: EX1 a point depends on its context alone: the same chip, seed and `quick` give the
//                 same rows on any host, whatever else runs.
//             EX2 `quick` makes a point smaller (fewer repetitions), never another measurement.
// Thread safety: a point runs on one thread; different points may run at once in processes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "backends/scc/parameters.h"
#include "base/status.h"

namespace tombolo::scc {
class Chip;
}  // namespace tombolo::scc

namespace tombolo::experiments {

struct Context {
  scc::Parameters chip;
  std::uint64_t seed = 1;
  bool quick = false;
  // Looked at by simulations: the run ends when it is true.
  const std::atomic<bool>* interrupt = nullptr;
  // Called at the end of each simulation, for its statistics.
  std::function<void(const scc::Chip&, simulator::Time end)> after_run = nullptr;

  // `full` repetitions, or fewer if the run is to be quick.
  int repetitions(int full, int quickly) const { return quick ? quickly : full; }
};

// A measured value. `x` is a number, or a category by name.
struct Row {
  std::string series;
  std::variant<double, std::string> x;
  double value = 0;
  std::string unit;
  std::optional<double> quartile1;
  std::optional<double> quartile3;
  std::string note;
  std::optional<scc::Parameters> chip = std::nullopt;  // if it is another than the context's
};

// The cost of a simulation, for reports.
struct Cost {
  std::uint64_t events = 0;
  double virtual_seconds = 0;
};

class Recorder {
 public:
  virtual ~Recorder() = default;
  virtual void row(const Row& row) = 0;
  // How much of the point is done, 0 to 1.
  virtual void progress(double fraction) = 0;
  virtual void cost(const Cost& cost) = 0;
};

// The progress of one process of a point, which stands for the others': told by the hundredth.
class Progress {
 public:
  explicit Progress(Recorder& recorder) : recorder_(recorder) {}
  void at(double fraction) {
    if (fraction < told_ + 0.01) return;
    told_ = fraction;
    recorder_.progress(fraction);
  }

 private:
  Recorder& recorder_;
  double told_ = 0;
};

struct Point {
  std::string name;                // unique in the experiment
  double seconds = 1;              // approximate, on one core of a host
  std::uint64_t memory_bytes = 0;  // approximate, of that host
  std::function<Status(const Context&, Recorder&)> run;
};

struct Experiment {
  std::string name;
  std::string title;
  std::function<std::vector<Point>(const Context&)> points;
};

// Every experiment there is, in the order that their files state; CMakeLists.txt makes the list.
const std::vector<Experiment>& all_experiments();

}  // namespace tombolo::experiments
