// SPDX-License-Identifier: Apache-2.0
// Purpose: see report.h.
// Thread safety: see report.h.
#include "dsm/compiler/report.h"

#include <llvm/Support/JSON.h>
#include <llvm/Support/raw_ostream.h>

namespace tombolo::dsm::compiler {

namespace {

constexpr const char* names[] = {"private", "outside", "recorded", "checked"};
constexpr int fates = 4;

unsigned sum(const unsigned (&counts)[fates]) {
  unsigned all = 0;
  for (const unsigned count : counts) all += count;
  return all;
}

llvm::json::Object counted(const unsigned (&counts)[fates]) {
  llvm::json::Object object{{"stores", sum(counts)}};
  for (int fate = 0; fate < fates; ++fate) object[names[fate]] = counts[fate];
  return object;
}

}  // namespace

void Report::add_store(const llvm::Instruction& store, Fate fate, bool in_copy) {
  ++stores_[in_copy ? 1 : 0][static_cast<int>(fate)];
  places_.insert(
      place_of(store, (in_copy ? "in a span, " : "") + std::string(names[static_cast<int>(fate)])));
}

void Report::add_call(const llvm::Instruction& call, llvm::StringRef callee) {
  calls_.insert(place_of(call, callee));
}

Report::Place Report::place_of(const llvm::Instruction& instruction, llvm::StringRef about) {
  Place place;
  place.about = about.str();
  if (const llvm::DILocation* line = instruction.getDebugLoc()) {
    place.file = line->getFilename().str();
    place.line = line->getLine();
  }
  return place;
}

std::string Report::text(llvm::StringRef unit) const {
  std::string result;
  llvm::raw_string_ostream out(result);
  out << "tombolo: " << unit << ": " << functions_ << " functions, " << copies_
      << " copied for spans; " << sum(stores_[0]) << " stores";
  for (int fate = 0; fate < fates; ++fate) out << ", " << stores_[0][fate] << " " << names[fate];
  out << "; in copies " << stores_[1][2] << " recorded, " << stores_[1][3] << " checked; "
      << merged_ << " merged, " << ranges_ << " loops as one range, " << atomics_
      << " atomic operations\n";
  for (const Place& place : places_)
    out << "tombolo: " << place.file << ":" << place.line << ": " << place.about << "\n";
  for (const Place& place : calls_)
    out << "tombolo: " << place.file << ":" << place.line << ": in a span, " << place.about
        << " gets addresses: its stores are recorded if it was compiled like this\n";
  return out.str();
}

std::string Report::json(llvm::StringRef unit) const {
  llvm::json::Array places;
  for (const Place& place : places_)
    places.push_back(
        llvm::json::Object{{"file", place.file}, {"line", place.line}, {"store", place.about}});
  llvm::json::Array calls;
  for (const Place& place : calls_)
    calls.push_back(
        llvm::json::Object{{"file", place.file}, {"line", place.line}, {"callee", place.about}});
  std::string result;
  llvm::raw_string_ostream out(result);
  out << llvm::json::Value(llvm::json::Object{{"unit", unit},
                                              {"functions", functions_},
                                              {"copies", copies_},
                                              {"outside_of_copies", counted(stores_[0])},
                                              {"in_copies", counted(stores_[1])},
                                              {"merged", std::int64_t(merged_)},
                                              {"ranges", std::int64_t(ranges_)},
                                              {"atomics", atomics_},
                                              {"stores", std::move(places)},
                                              {"calls", std::move(calls)}})
      << "\n";
  return out.str();
}

}  // namespace tombolo::dsm::compiler
