// SPDX-License-Identifier: Apache-2.0
// Purpose: the run of a program that passes messages, which becomes a point's rows or its failure.
//
// Invariants: MJ1 processes poll, so that one which waits in vain would never end: a run does, at a
//                 limit of virtual time.
// Thread safety: values.
#pragma once

#include <vector>

#include "baselines/rckmpi.h"
#include "experiments/common/measure.h"

namespace tombolo::experiments {

// Longer than any run of an experiment takes.
inline constexpr std::int64_t messages_limit_seconds = 60;

// Runs program(attachment, cpu, cores) in each process.
template <class Program>
Status run_cores(const Context& context, Recorder& recorder, scc::JobShape shape,
                 Program&& program) {
  TOMBOLO_TRY(scc::Job::fits(context.chip, shape));
  shape.options = options_of(context);
  shape.options.time_limit =
      simulator::Time::after_start(simulator::Duration::seconds(messages_limit_seconds));
  scc::Job job(context.chip, shape);
  const simulator::RunResult result =
      job.run([&](const scc::Attachment& at, scc::Cpu& cpu) { program(at, cpu, job.cores()); });
  return end_of_run(context, recorder, job.chip(), result);
}

// Runs program(mpi, attachment) in each process, which then waits for the others.
template <class Program>
Status run_rckmpi(const Context& context, Recorder& recorder, const scc::JobShape& shape,
                  Program&& program) {
  TOMBOLO_TRY(baselines::Channel::fits(context.chip, shape.processes));
  return run_cores(
      context, recorder, shape,
      [&](const scc::Attachment& at, scc::Cpu& cpu, const std::vector<simulator::CoreId>& cores) {
        baselines::Rckmpi mpi(cpu, static_cast<std::uint32_t>(at.self), cores);
        program(mpi, at);
        mpi.finish();
      });
}

}  // namespace tombolo::experiments
