// SPDX-License-Identifier: Apache-2.0
// Purpose: the last events of a worker with their times, for a viewer of traces. Each stack of the
// worker is a track of its own, since spans of a stack lie one in the other.
//
//   trace.begin(stack, family, {.start = 0, .limit = 10, ...});
//   ...
//   trace.end(stack, family, reason);
//
// Invariants: FTR1 spans of a stack are ended in the reverse order of their begins; an end ends all
//                  that were begun within.
//             FTR2 no two stacks of a process have the same track, whichever workers and places
//                  there are.
// Memory: 64 bytes for each event that was added, 8 MiB at most; 72 for each open span.
// Thread safety: the worker's thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "host/memory/zero_memory.h"
#include "svp/range.h"

namespace tombolo::svp {

// As trace events name it.
struct PlaceName {
  enum class Kind : std::uint8_t { local, exclusive, process } kind = Kind::local;
  std::uint32_t number = 0;
};

class FamilyTrace {
 public:
  enum class Event : std::uint8_t { family, part, wait, read, steal, delegate, write };
  static constexpr std::uint64_t capacity = std::uint64_t{1} << 17;

  struct Facts {
    Range range;  // of a part: ordinals of threads; of a steal, start is the victim
    PlaceName place;
    const void* family = nullptr;  // scopes, to tell them apart
    const void* parent = nullptr;
  };

  FamilyTrace(PlaceName place, unsigned worker)
      : place_(place), worker_(worker), entries_(capacity * sizeof(Entry)) {}
  // Whether there was address space for the events.
  bool ready() const { return static_cast<bool>(entries_); }

  // Nanoseconds of a clock that all processes of the host have.
  static std::uint64_t now();

  // `what`: the family, the part, ...: the same at the end. Throws std::bad_alloc.
  void begin(unsigned stack, Event event, const void* what, const Facts& facts);
  // Nothing if the span is not open. `reason`: as ExitReason.
  void end(unsigned stack, const void* what, std::uint32_t reason);
  // An event without a duration.
  void mark(unsigned stack, Event event, const Facts& facts);

  // Returns the memory that holds no event; for a worker that has ended.
  void shrink();

  std::uint64_t count() const { return count_; }
  // Lines of JSON, each with a comma behind it. Spans that are open are left out. `tracks`: the
  // number of those that the process has written; this trace's are the next ones.
  std::string lines(std::uint32_t& tracks) const;

 private:
  struct Entry {
    std::uint64_t start;
    std::uint64_t nanoseconds;
    const void* family;
    const void* parent;
    Index first;
    Index limit;
    Index step;
    std::uint32_t place_number;
    std::uint16_t stack;
    Event event;
    std::uint8_t reason_and_kind;
  };
  struct Open {
    const void* what;
    std::uint64_t start;
    Event event;
    Facts facts;
  };

  void add(unsigned stack, const Open& span, std::uint64_t nanoseconds, std::uint32_t reason);
  std::string line(const Entry& entry, std::uint32_t track) const;

  PlaceName place_;
  unsigned worker_;
  host::ZeroMemory entries_;
  std::uint64_t count_ = 0;
  std::vector<std::vector<Open>> open_;  // by stack
};

}  // namespace tombolo::svp
