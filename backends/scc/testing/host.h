// SPDX-License-Identifier: Apache-2.0
// Purpose: runs an ensemble of scc::Core on the simulated chip: what a test does in run() happens
// in virtual time. It runs once, and only inside run() may a core be used. Thread safety: as
// scc::Job.
#pragma once

#include <gtest/gtest.h>

#include "backends/scc/job.h"
#include "machine/testing/ensemble.h"

namespace tombolo::machine::testing {

template <>
class Host<scc::Core> {
 public:
  static constexpr std::uint32_t configurations = 4;

  explicit Host(const EnsembleShape& shape) : job_(chip(), shape_of(shape)) {}

  Attachment attachment(Home self) { return job_.attachment(self); }

  template <class Body>
  void run(Body&& body) {
    const simulator::RunResult result =
        job_.run([&](const Attachment& at, scc::Cpu&) { body(at.self); });
    EXPECT_TRUE(result.status.ok()) << result.status.message();
  }

 private:
  static const scc::Parameters& chip() {
    static const scc::Parameters parameters = [] {
      scc::Parameters p{};
      const Status status = scc::find_parameters("scc", &p);
      TOMBOLO_CHECK(status.ok(), "{}", status.message());
      return p;
    }();
    return parameters;
  }

  // The configurations: memory types of the own data and of the peers'.
  static scc::JobShape shape_of(const EnsembleShape& shape) {
    using enum scc::MemoryType;
    static constexpr std::pair<scc::MemoryType, scc::MemoryType> kTypes[configurations] = {
        {mpbt_wt, mpbt_wt}, {ncm, ncm}, {mpbt_wb, mpbt_wb}, {dcm, mpbt_wb}};
    scc::JobShape job{
        .processes = shape.cores, .sync_bytes = shape.sync_bytes, .data_bytes = shape.data_bytes};
    job.placement.own = kTypes[shape.configuration].first;
    job.placement.peers = kTypes[shape.configuration].second;
    job.options.seed = shape.seed;
    job.idle = shape.idle;
    return job;
  }

  scc::Job job_;
};

}  // namespace tombolo::machine::testing
