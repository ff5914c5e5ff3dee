// SPDX-License-Identifier: Apache-2.0
// Purpose: a range of threads that a worker runs, as the scheduler knows it: threads that have not
// begun can be given to other workers. The ranges that enclose the running thread form a list, the
// innermost first; which of them is divided is the scheduler's choice (Worker::attend).
//
// Invariants: ORG1 a range is in its stack's list while the worker runs threads of it.
//             ORG2 the thread before `next` has begun, or is about to: it is not given away.
// Thread safety: its worker's thread.
#pragma once

#include <cstdint>

namespace tombolo::svp {

class Worker;

struct OpenRange {
  // Offers the upper half of the threads that have not begun, at the worker. False: it cannot.
  using Divide = bool (*)(OpenRange&, Worker&);
  // Whether it can now. A hint.
  using MayDivide = bool (*)(const OpenRange&);

  OpenRange(Divide how, MayDivide whether, std::uint64_t from, std::uint64_t to)
      : divide(how), may_divide(whether), next(from), end(to) {}
  OpenRange(const OpenRange&) = delete;
  OpenRange& operator=(const OpenRange&) = delete;

  Divide divide;
  MayDivide may_divide;
  OpenRange* outer = nullptr;
  std::uint64_t next;  // ordinals of threads
  std::uint64_t end;
};

}  // namespace tombolo::svp
