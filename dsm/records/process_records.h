// SPDX-License-Identifier: Apache-2.0
// Purpose: the counts and the trace of a program's processes, where the first one finds them at the
// end: the others are ended with the program, and tell nothing themselves.
//
//   TOMBOLO_TRY(ProcessRecords::make(wanted, processes, records));  // in the first, before others
//   TOMBOLO_TRY(records->enter(2, &shape));                // in the process 2, forked since
//   ... PagedMemory(..., records->observer())
//   records->note(); records->note_pages();                // now and then; at a thread's end
//   records->tell(...);                                    // in the first, at the end
//
// Invariants: PRC1 a process counts its own events: not those that the first one had counted when
//                  it was forked.
//             PRC2 a count in the table may be older than its process's, by the time since note();
//                  pages are there as of a thread's end.
//             PRC3 the trace is all processes', each in a part of its own, of which the last events
//                  are kept: 96 MiB in all.
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
#include "runtime/options/options.h"
#include "runtime/records/trace_file.h"

namespace tombolo::dsm {

struct WantedRecords {
  runtime::Statistics statistics = runtime::Statistics::off;
  std::string trace;  // the path; empty: none

  bool any() const { return statistics != runtime::Statistics::off || !trace.empty(); }
};

class ProcessRecords {
 public:
  // Errors: no_memory, bad_configuration if the trace cannot be written.
  static Status make(const WantedRecords& wanted, Thread processes,
                     std::unique_ptr<ProcessRecords>& out);
  // `shape` is null for memory without pages, of which waits alone are counted. Errors: no_memory.
  Status enter(Thread self, const Shape* shape);
  Observer observer();

  // The counts of this process, up to now.
  void note();
  // Its hottest pages.
  void note_pages();

  // In the first process, when the others have ended. On standard error, of all processes that have
  // entered: a line of counts for each, then the hottest pages; in JSON the pages are in the first
  // line. `facts` are those that all have in common; `first` is the address of page 0. `held`: the
  // pages that each memory server holds, a line for each. Then the trace.
  void tell(std::span<const runtime::Counters::Fact> facts, std::uint64_t first,
            std::span<const std::uint64_t> held = {});

 private:
  struct Slot;
  ProcessRecords() = default;
  bool wants_counts() const { return wanted_.statistics != runtime::Statistics::off; }
  Status start_trace();
  std::span<Slot> slots() const;
  std::span<std::byte> trace_of(Thread process) const;
  std::span<const char* const> names_told() const;
  std::vector<runtime::Counters::Row> hottest_pages(std::uint64_t first) const;
  void tell_counts(std::span<const runtime::Counters::Fact> facts, std::uint64_t first,
                   std::span<const std::uint64_t> held) const;
  Status write_trace();
  void say(const std::string& line) const;

  WantedRecords wanted_;
  host::Segment segment_;
  host::Segment traces_;
  runtime::TraceFile file_;
  Thread processes_ = 0;
  int standard_error_ = 2;  // there also when the program has closed its own
  // Of this process.
  Thread self_ = 0;
  std::size_t page_bytes_ = 0;
  struct Counted {
    const runtime::Counter* counter;
    std::uint64_t before;  // at enter()
  };
  std::vector<Counted> counted_;
  std::optional<PageHeat> heat_;
  std::optional<Trace> trace_;
};

}  // namespace tombolo::dsm
