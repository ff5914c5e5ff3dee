// SPDX-License-Identifier: Apache-2.0
// Purpose: reports errors and refused settings on stderr, each once.
// Invariants: RE1 each text is written at most once by a process.
// Thread safety: yes.
#pragma once

#include <mutex>
#include <set>
#include <string>

namespace tombolo::runtime {

class Reports {
 public:
  // `rank`: this process's number in its job.
  explicit Reports(int rank) : rank_(rank) {}

  // "tombolo: TEXT", by process 0 of the job only: all processes know it.
  void once(const std::string& text);
  // "tombolo: rank R: TEXT", by this process: for texts that concern it alone.
  void own_once(const std::string& text);

 private:
  bool is_new(const std::string& text);

  int rank_;
  std::mutex mutex_;
  std::set<std::string> written_;
};

}  // namespace tombolo::runtime
