// SPDX-License-Identifier: Apache-2.0
// Purpose: runs litmus tests on the simulated chip: cores are fibres in virtual time, so they are
// kept apart by pauses of random length and not by the host's scheduler.
//
// The seed also chooses the types of memory: own and peers' data uncached, written through, or
// written back.
// Thread safety: one ensemble belongs to one thread.
#pragma once

#include "backends/scc/job.h"
#include "base/check.h"
#include "litmus/tests/observe.h"

namespace tombolo::litmus {

class SccEnsemble {
 public:
  explicit SccEnsemble(const machine::testing::EnsembleShape& shape)
      : job_(chip(), shape_of(shape)) {}

  template <class Body>
  void run(Body&& body) {
    const simulator::RunResult result = job_.run([&](const scc::Attachment& at, scc::Cpu&) {
      scc::Core core(at);
      body(core);
    });
    TOMBOLO_CHECK(result.status.ok(), "litmus: {}", result.status.message());
  }

 private:
  static const scc::Parameters& chip() {
    static const scc::Parameters parameters = [] {
      scc::Parameters p{};
      const Status status = scc::find_parameters("scc", &p);
      TOMBOLO_CHECK(status.ok(), "litmus: {}", status.message());
      return p;
    }();
    return parameters;
  }
  static scc::JobShape shape_of(const machine::testing::EnsembleShape& shape) {
    using enum scc::MemoryType;
    static constexpr std::pair<scc::MemoryType, scc::MemoryType> types[] = {
        {mpbt_wt, mpbt_wt}, {mpbt_wb, mpbt_wb}, {dcm, mpbt_wb}};
    scc::JobShape job{
        .processes = shape.cores, .sync_bytes = shape.sync_bytes, .data_bytes = shape.data_bytes};
    job.placement.own = types[shape.seed % 3].first;
    job.placement.peers = types[shape.seed % 3].second;
    job.options.seed = shape.seed;
    return job;
  }

  scc::Job job_;
};

template <>
struct HowToRun<scc::Core> {
  using Ensemble = SccEnsemble;
  static constexpr bool on_threads = false;
};

}  // namespace tombolo::litmus
