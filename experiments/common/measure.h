// SPDX-License-Identifier: Apache-2.0
// Purpose: functions that all experiments use: medians and quartiles of samples, and the run of a
// job whose failure becomes the point's.
// Thread safety: values.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "backends/scc/job.h"
#include "experiments/common/experiment.h"

namespace tombolo::experiments {

struct Quartiles {
  double first = 0;
  double median = 0;
  double third = 0;
};

// Of at least one sample; between two neighbours, the lower.
inline Quartiles quartiles(std::vector<double> samples) {
  TOMBOLO_CHECK(!samples.empty(), "quartiles of no samples");
  std::sort(samples.begin(), samples.end());
  const std::size_t last = samples.size() - 1;
  return {samples[last / 4], samples[last / 2], samples[last * 3 / 4]};
}

inline double microseconds(simulator::Duration d) { return d.in_nanoseconds() / 1000; }

inline Row row_of(std::string series, double x, const std::vector<double>& samples,
                  std::string unit) {
  const Quartiles q = quartiles(samples);
  return {.series = std::move(series),
          .x = x,
          .value = q.median,
          .unit = std::move(unit),
          .quartile1 = q.first,
          .quartile3 = q.third,
          .note = {}};
}

// The host's memory that a simulated chip takes before programs use theirs. Caches of cores that
// run nothing are never touched.
inline std::uint64_t memory_of_chip(std::uint32_t cores) {
  return (std::uint64_t{32} << 20) + cores * (std::uint64_t{900} << 10);
}

// The options of every simulation of a point.
inline simulator::Options options_of(const Context& context) {
  simulator::Options options;
  options.seed = context.seed;
  options.interrupt = context.interrupt;
  return options;
}

// Tells the cost of a simulation, and shows its chip to those that want statistics.
inline Status end_of_run(const Context& context, Recorder& recorder, const scc::Chip& chip,
                         const simulator::RunResult& result) {
  recorder.cost({result.events, result.end.since_start().in_nanoseconds() * 1e-9});
  if (context.after_run) context.after_run(chip, result.end);
  return result.status;
}

// Runs a program on each process of a job. A shape that does not fit, or a run that does not end,
// is the failure of the point.
inline Status run_job(const Context& context, Recorder& recorder, scc::JobShape shape,
                      const scc::Job::Program& program) {
  shape.options = options_of(context);
  TOMBOLO_TRY(scc::Job::fits(context.chip, shape));
  scc::Job job(context.chip, shape);
  const simulator::RunResult result = job.run(program);
  return end_of_run(context, recorder, job.chip(), result);
}

}  // namespace tombolo::experiments
