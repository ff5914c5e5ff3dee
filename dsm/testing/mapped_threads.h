// SPDX-License-Identifier: Apache-2.0
// Purpose: threads of a test, each with its MappedMemory over the same words and locks.
//
//   MappedThreads threads({.threads = 4, .locks = 8, .words = 100});
//   threads.run([](ProgramMemory& memory) { ... });
//
// Thread safety: run() of one thread at a time.
#pragma once

#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "dsm/memory/inherited_words.h"

namespace tombolo::dsm::testing {

class MappedThreads {
 public:
  explicit MappedThreads(MemoryPlan plan, const Observer& observer = {})
      : program_(std::size_t{1} << 20) {
    plan.at = program_;
    const InheritedWords words(plan);
    runtime_.resize(words.bytes() / sizeof(Line));
    for (Thread self = 0; self < plan.threads; ++self)
      memories_.push_back(
          words.enter(self, reinterpret_cast<std::byte*>(runtime_.data()), observer));
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
  std::vector<std::unique_ptr<ProgramMemory>> memories_;
};

}  // namespace tombolo::dsm::testing
