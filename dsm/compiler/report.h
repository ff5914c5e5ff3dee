// SPDX-License-Identifier: Apache-2.0
// Purpose: the report on one unit: the fate of each store, by file and line, and the calls in
// spans that hand addresses to functions of other units, whose stores are theirs to record.
// Thread safety: one thread for each object.
#pragma once

#include <set>
#include <string>

#include "dsm/compiler/analysis/llvm.h"

namespace tombolo::dsm::compiler {

enum class Fate { own, outside, recorded, checked };

class Report {
 public:
  void add_function() { ++functions_; }
  void add_copy() { ++copies_; }
  void add_atomics(unsigned count) { atomics_ += count; }
  // In a copy for spans the same stores come again, and are counted apart.
  void add_store(const llvm::Instruction& store, Fate fate, bool in_copy);
  void add_merged(std::size_t stores) { merged_ += stores; }
  void add_range() { ++ranges_; }
  void add_call(const llvm::Instruction& call, llvm::StringRef callee);

  std::string text(llvm::StringRef unit) const;
  // One line.
  std::string json(llvm::StringRef unit) const;

 private:
  struct Place {
    std::string file;
    unsigned line = 0;
    std::string about;
    auto operator<=>(const Place&) const = default;
  };
  static Place place_of(const llvm::Instruction& instruction, llvm::StringRef about);

  unsigned functions_ = 0;
  unsigned copies_ = 0;
  unsigned atomics_ = 0;
  std::size_t merged_ = 0;
  std::size_t ranges_ = 0;
  unsigned stores_[2][4] = {};
  std::set<Place> places_;
  std::set<Place> calls_;
};

}  // namespace tombolo::dsm::compiler
