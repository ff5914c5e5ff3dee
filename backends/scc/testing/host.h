// SPDX-License-Identifier: Apache-2.0
// Purpose: runs an ensemble of scc::Core on the simulated chip: the steps of a test in run() happen
// in virtual time. It runs once, and only inside run() may a core be used.
// Thread safety: as scc::Job.
#pragma once

#include <gtest/gtest.h>

#include <iterator>
#include <map>
#include <string>

#include "backends/scc/job.h"
#include "machine/testing/ensemble.h"

namespace tombolo::machine::testing {

template <>
class Host<scc::Core> {
 public:
  // Memory types of the own data and of the peers', and the chip. Chips other than the real one
  // have features that it lacks.
  struct Configuration {
    const char* chip;
    scc::MemoryType own;
    scc::MemoryType peers;
  };
  static constexpr Configuration all[] = {
      {"scc", scc::MemoryType::mpbt_wt, scc::MemoryType::mpbt_wt},
      {"scc", scc::MemoryType::ncm, scc::MemoryType::ncm},
      {"scc", scc::MemoryType::mpbt_wb, scc::MemoryType::mpbt_wb},
      {"scc", scc::MemoryType::dcm, scc::MemoryType::mpbt_wb},
      {"scc-repaired", scc::MemoryType::mpbt_wt, scc::MemoryType::mpbt_wt},
      {"scc-write-back", scc::MemoryType::mpbt_wb, scc::MemoryType::mpbt_wb},
      {"scc-invalidation", scc::MemoryType::dcm, scc::MemoryType::mpbt_wb},
      {"scc-remote-invalidation", scc::MemoryType::mpbt_wb, scc::MemoryType::mpbt_wb},
      {"scc-remote-invalidation", scc::MemoryType::dcm, scc::MemoryType::mpbt_wt},
      {"scc-copy-engine", scc::MemoryType::mpbt_wb, scc::MemoryType::mpbt_wb},
      {"scc-all", scc::MemoryType::wt, scc::MemoryType::wt},
      {"scc-all", scc::MemoryType::mpbt_wb, scc::MemoryType::dcm},
  };
  static constexpr std::uint32_t configurations = std::size(all);

  explicit Host(const EnsembleShape& shape) : job_(chip(shape), shape_of(shape)) {}

  scc::Attachment attachment(Home self) { return job_.attachment(self); }

  void run(BodyRef body) {
    const simulator::RunResult result =
        job_.run([&](const scc::Attachment& at, scc::Cpu&) { body(at.self); });
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
  static const scc::Parameters& chip(const EnsembleShape& shape) {
    static std::map<std::string, scc::Parameters> chips;
    const std::string name = shape.cores > 48 ? "mesh-8x8" : all[shape.configuration].chip;
    const auto found = chips.find(name);
    return found != chips.end() ? found->second
                                : chips.emplace(name, read(name.c_str())).first->second;
  }

  static scc::JobShape shape_of(const EnsembleShape& shape) {
    scc::JobShape job{
        .processes = shape.cores, .sync_bytes = shape.sync_bytes, .data_bytes = shape.data_bytes};
    job.placement.own = all[shape.configuration].own;
    job.placement.peers = all[shape.configuration].peers;
    job.options.seed = shape.seed;
    job.idle = shape.idle;
    return job;
  }

  scc::Job job_;
};

}  // namespace tombolo::machine::testing
