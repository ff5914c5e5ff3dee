// SPDX-License-Identifier: Apache-2.0
// Purpose: threads of a test, each with its InheritedMemory over the same words and locks.
//
//   InheritedThreads threads({.threads = 4, .locks = 8, .words = 100});
//   threads.run([](ProgramMemory& memory) { ... });
//
// Thread safety: run() of one thread at a time.
#pragma once

#include <thread>
#include <vector>

#include "dsm/memory/inherited_memory.h"

namespace tombolo::dsm::testing {

class InheritedThreads {
 public:
  explicit InheritedThreads(MemoryPlan plan)
      : program_(std::size_t{1} << 20),
        runtime_(InheritedMemory::take(plan).bytes / sizeof(Line)),
        plan_(plan) {
    plan_.at = program_;
    for (Thread self = 0; self < plan.threads; ++self)
      memories_.push_back(std::make_unique<InheritedMemory>(
          self, plan_, reinterpret_cast<std::byte*>(runtime_.data())));
  }

  ProgramMemory& operator[](Thread thread) { return *memories_[thread]; }
  std::span<std::byte> memory() { return program_; }

  template <class Body>
  void run(Body&& body) {
    std::vector<std::jthread> all;
    for (const auto& memory : memories_) all.emplace_back([&] { body(*memory); });
  }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<std::byte> program_;
  std::vector<Line> runtime_;  // zeros
  MemoryPlan plan_;
  std::vector<std::unique_ptr<InheritedMemory>> memories_;
};

}  // namespace tombolo::dsm::testing
