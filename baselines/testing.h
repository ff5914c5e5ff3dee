// SPDX-License-Identifier: Apache-2.0
// Purpose: helpers of the tests of messages: patterns of bytes, and runs that end.
// Thread safety: values.
#pragma once

#include "backends/scc/job.h"
#include "baselines/rckmpi.h"

namespace tombolo::baselines::testing {

inline std::byte pattern(std::size_t i, std::uint64_t key) {
  return static_cast<std::byte>((i * 131 + key * 29 + i / 251 + 1) & 0xff);
}
inline void fill(std::byte* to, std::size_t bytes, std::uint64_t key) {
  for (std::size_t i = 0; i < bytes; ++i) to[i] = pattern(i, key);
}
inline bool is(const std::byte* from, std::size_t bytes, std::uint64_t key) {
  for (std::size_t i = 0; i < bytes; ++i)
    if (from[i] != pattern(i, key)) return false;
  return true;
}
inline void fill(Place to, std::size_t bytes, std::uint64_t key) { fill(to.host, bytes, key); }
inline bool is(Place from, std::size_t bytes, std::uint64_t key) {
  return is(from.host, bytes, key);
}

// Polling never ends by itself: nothing here takes so long in virtual time.
inline simulator::Time time_limit() {
  return simulator::Time::after_start(simulator::Duration::milliseconds(100));
}

// Runs program(cpu, rank, cores) on as many cores.
template <class Program>
simulator::RunResult run_cores(std::uint32_t processes, Program&& program) {
  scc::Parameters chip;
  const Status found = scc::find_parameters("scc", &chip);
  TOMBOLO_CHECK(found.ok(), "{}", found.message());
  scc::JobShape shape;
  shape.processes = processes;
  shape.options.time_limit = time_limit();
  scc::Job job(chip, shape);
  return job.run([&](const machine::Attachment& at, Cpu& cpu) {
    program(cpu, static_cast<std::uint32_t>(at.self), job.cores());
  });
}

// Runs program(mpi) in as many processes, and finishes.
template <class Program>
simulator::RunResult run(std::uint32_t processes, Program&& program, Omitted omitted = {}) {
  return run_cores(processes, [&](Cpu& cpu, std::uint32_t rank, const std::vector<CoreId>& cores) {
    Rckmpi mpi(cpu, rank, cores, omitted);
    program(mpi);
    mpi.finish();
  });
}

}  // namespace tombolo::baselines::testing
