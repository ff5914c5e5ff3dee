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

  explicit Host(const EnsembleShape& shape) : job_(chip(shape.cores), shape_of(shape)) {}

  Attachment attachment(Home self) { return job_.attachment(self); }

  template <class Body>
  void run(Body&& body) {
    const simulator::RunResult result =
        job_.run([&](const Attachment& at, scc::Cpu&) { body(at.self); });
    EXPECT_TRUE(result.status.ok()) << result.status.message();
  }

 private:
  static scc::Parameters read(const char* name) {
    scc::Parameters p{};
    const Status status = scc::find_parameters(name, &p);
    TOMBOLO_CHECK(status.ok(), "{}", status.message());
    // Lines are evicted often, and a write-back of everything does not take long.
    p.caches.l1_bytes = 1024;
    p.caches.l2_bytes = 8192;
    return p;
  }
  static const scc::Parameters& chip(Home cores) {
    static const scc::Parameters real = read("scc");
    static const scc::Parameters larger = read("mesh-8x8");
    return cores <= real.cores() ? real : larger;
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
