// SPDX-License-Identifier: Apache-2.0
// Purpose: the counts of a program's processes, where the first one finds them at the end: the
// others are ended with the program, and tell nothing themselves.
//
//   TOMBOLO_TRY(ProcessRecords::make(processes, records));  // in the first, before the others
//   TOMBOLO_TRY(records->enter(2, shape));                  // in the process 2, forked since
//   ... PagedMemory(..., records->observer())
//   records->note(); records->note_pages();                 // now and then; at a thread's end
//   for (const std::string& line : records->lines(...)) ... // in the first, at the end
//
// Invariants: PRC1 a process counts its own events: not those that the first one had counted when
//                  it was forked.
//             PRC2 a count in the table may be older than its process's, by the time since note();
//                  pages are there as of a thread's end.
// Thread safety: one thread in each process; the table is all processes'.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dsm/records/observer.h"
#include "host/segments/segment.h"
#include "runtime/counters/counters.h"

namespace tombolo::dsm {

class ProcessRecords {
 public:
  // Errors: no_memory.
  static Status make(Thread processes, std::unique_ptr<ProcessRecords>& out);
  // Errors: no_memory.
  Status enter(Thread self, const Shape& shape);
  Observer observer() { return {.timed = true, .heat = &*heat_}; }

  // The counts of this process, up to now.
  void note();
  // Its hottest pages.
  void note_pages();

  // Of all processes that have entered: a line of counts for each, then the hottest pages; in JSON
  // the pages are in the first line. `facts` are those that all have in common; `first` is the
  // address of page 0.
  std::vector<std::string> lines(std::span<const runtime::Counters::Fact> facts, bool json,
                                 std::uint64_t first) const;

 private:
  struct Slot;
  ProcessRecords() = default;
  std::span<Slot> slots() const;
  std::vector<runtime::Counters::Row> hottest_pages(std::uint64_t first) const;

  host::Segment segment_;
  Thread processes_ = 0;
  // Of this process.
  Thread self_ = 0;
  std::size_t page_bytes_ = 0;
  struct Counted {
    const runtime::Counter* counter;
    std::uint64_t before;  // at enter()
  };
  std::vector<Counted> counted_;
  std::optional<PageHeat> heat_;
};

}  // namespace tombolo::dsm
