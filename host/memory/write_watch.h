// SPDX-License-Identifier: Apache-2.0
// Purpose: says which pages of a range the processors of this process have written, by plain stores
// without instrumentation. The kernel does it: it protects pages against writing, resolves the
// first write to each by itself (userfaultfd's asynchronous write protection), and hands out the
// pages written since the last question while it protects them again (PAGEMAP_SCAN; both since
// Linux 6.7). No thread and no signal handler take part. A scan costs a system call and little
// for each page, the first write to a page after a scan a page fault inside the kernel.
//
//   std::unique_ptr<WriteWatch> watch;
//   if (Status opened = WriteWatch::open(begin, bytes, watch); !opened.ok()) ...  // do without
//   Status asked = watch->each_written([](std::byte* at, std::size_t n) { ... });
//
// Invariants: WW1 every page that was written before a call of each_written and after the one that
//                 last visited it, or after open(), is visited by that call. So are pages written
//                 before open(): pages are visited unless they are known to be protected.
//             WW2 a page may be visited that was not written: one that this process has not touched
//                 yet, or that the kernel has moved, swapped out or mapped as part of a huge page.
//             WW3 if each_written returns an error, any page may have been written, and the pages
//                 that this call visited are not visited again. The watch is of no further use.
//             WW4 a page is watched by one watch of a process: two would take each other's answers.
//             WW5 a forked child is not watched, and asking its copy of a watch is an error: the
//                 descriptors that it inherits act on the memory of its parent.
// Seen are stores, also the kernel's for this process (read, recv). Not seen are devices
// that were given the pages to write to before the last scan (memory registered with a network
// adapter, say), and writes through other mappings of the same memory, by other processes above
// all.
// Resources: two descriptors for each process, whatever the number of watches; they stay open.
// Thread safety: stores at any time by any thread. each_written by one thread at a time; the pages
// it visits must be dealt with before the next call, which does not visit them again. open and
// destruction at any time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/status.h"

namespace tombolo::host {

class WriteWatch {
 public:
  // Ok, or unsupported with the reason: kernel, permission. Asks the kernel once.
  static Status available();

  // Watches the pages of [begin, begin + bytes), which start and end at page boundaries, until
  // destruction. They must stay mapped for as long. Errors: unsupported (available()'s reason, or
  // the kernel does not do it for this memory), or pages that are watched already.
  static Status open(std::byte* begin, std::size_t bytes, std::unique_ptr<WriteWatch>& out);
  ~WriteWatch();
  WriteWatch(const WriteWatch&) = delete;
  WriteWatch& operator=(const WriteWatch&) = delete;

  // visit(std::byte* at, std::size_t bytes) for each run of pages that was written, in order.
  template <class Visit>
  Status each_written(Visit&& visit) {
    std::array<Run, runs_at_once> runs;
    for (std::uint64_t at = begin_; at < end_;) {
      std::size_t count = 0;
      TOMBOLO_TRY(scan(at, runs, count));
      for (std::size_t i = 0; i < count; ++i)
        visit(reinterpret_cast<std::byte*>(runs[i].begin), runs[i].end - runs[i].begin);
    }
    return {};
  }

 private:
  // As the kernel fills it in (struct page_region).
  struct Run {
    std::uint64_t begin;
    std::uint64_t end;
    std::uint64_t categories;
  };
  static constexpr std::size_t runs_at_once = 64;
  using Runs = std::array<Run, runs_at_once>;

  WriteWatch(std::uint64_t begin, std::uint64_t end, std::uint64_t generation)
      : begin_(begin), end_(end), generation_(generation) {}
  // Asks from `at` on, and moves `at` to where the answer ends.
  Status scan(std::uint64_t& at, Runs& runs, std::size_t& count);

  std::uint64_t begin_;
  std::uint64_t end_;
  std::uint64_t generation_;  // of the process's descriptors that the watch was made with
  bool settled_ = false;      // every page has been seen in a page table
  bool all_present_ = false;  // in this pass so far
};

}  // namespace tombolo::host
