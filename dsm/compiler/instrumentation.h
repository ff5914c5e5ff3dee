// SPDX-License-Identifier: Apache-2.0
// Purpose: the instrumentation of one unit (003 section 5.6), in the three variants of 003
// chapter 6.
//
//   fixed    stores that may happen in a span, found by analysis: the variant `static`
//   full     each store, with a check of the flag
//   page     none: all stores travel by pages
//
// In all three, atomic operations become calls, and synchronization without calls is reported.
//
// Invariants: DIN1 all bodies are looked at before the first record is inserted: the analyses hold
//                  for the program as it was.
// Thread safety: one thread for each object.
#pragma once

#include "dsm/compiler/analysis/entries.h"
#include "dsm/compiler/analysis/private_memory.h"
#include "dsm/compiler/analysis/runs.h"
#include "dsm/compiler/records.h"
#include "dsm/compiler/report.h"

namespace tombolo::dsm::compiler {

enum class Variant { fixed, full, page };

class Instrumentation {
 public:
  Instrumentation(llvm::Module& module, llvm::FunctionAnalysisManager& analyses, Variant variant,
                  const SpanCalls& calls, Report& report)
      : module_(module), analyses_(analyses), variant_(variant), calls_(calls), report_(report) {}

  // True if the unit has changed.
  bool run();

 private:
  struct Body {
    llvm::Function* function;
    Entry entry;
    bool copy;
    Depths depths;
  };

  std::vector<llvm::Function*> functions() const;
  bool replace_atomics(llvm::Function& function);
  void choose_bodies();
  void choose_versions(llvm::Function& function, Entry entry, const Depths& depths,
                       const SpanDepths& spans);
  bool is_worth_a_copy(llvm::Function& function, const Depths& depths);
  void plan(Body& body);
  void plan_block(llvm::BasicBlock& block, const Body& body, PrivateMemory& memory);
  void choose(llvm::Instruction& instruction, const Body& body, PrivateMemory& memory,
              std::vector<Chosen>& chosen);
  void add_runs(std::vector<Run>& runs);
  void add_others(std::vector<Chosen>& others);
  void redirect_calls(Body& body);
  void report_call(const llvm::Instruction& instruction, const Body& body, PrivateMemory& memory);

  llvm::Module& module_;
  llvm::FunctionAnalysisManager& analyses_;
  Variant variant_;
  const SpanCalls& calls_;
  Report& report_;
  std::vector<Body> bodies_;
  llvm::MapVector<llvm::Function*, llvm::Function*> copies_;
  std::vector<Record> records_;
};

}  // namespace tombolo::dsm::compiler
