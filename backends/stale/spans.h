// SPDX-License-Identifier: Apache-2.0
// Purpose: the regions of a machine as spans of memory: one region each, but for regions that lie
// behind one another with a cache line in common, which are one span. The lines of a span are those
// of the hardware, so counted by address.
//
// Invariants: SN1 a line belongs to one span, whichever regions have bytes in it.
//             SN2 all processes have the same spans: where regions begin within a page is the same
//                 in all mappings. Regions over the program's memory share no line.
//             SN3 a line has an offset in its span and a number of bytes; the first and the last of
//                 a span may have fewer than line_bytes.
// Thread safety: constant once constructed.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "backends/stale/attachment.h"
#include "backends/stale/shared_bytes.h"

namespace tombolo::stale {

using Line = std::uint64_t;    // number of a line in its span
using SpanId = std::uint32_t;  // number of a span
using machine::Home;
using machine::Offset;

// A span: its memory and its lines.
struct Span {
  std::byte* memory = nullptr;  // null: not mapped
  std::uint64_t bytes = 0;
  Home first = 0;        // the first of its regions
  std::size_t lead = 0;  // bytes of the first line that lie before the span

  Line lines() const { return bytes == 0 ? 0 : (lead + bytes + line_bytes - 1) / line_bytes; }
  Line line_of(Offset offset) const { return (lead + offset) / line_bytes; }
  // Where a line begins; that of one behind the last is not looked at.
  Offset start_of(Line line) const { return line == 0 ? 0 : line * line_bytes - lead; }
  // Fewer than line_bytes at either end.
  std::size_t bytes_of(Line line) const {
    return std::min<std::uint64_t>((line + 1) * line_bytes - lead, bytes) - start_of(line);
  }
};

class Spans {
 public:
  // Lines of regions that may share some with others, at most.
  static Line lines_at_most(const machine::DataRegion& region) {
    return region.bytes / line_bytes + 2;
  }

  explicit Spans(const Attachment& at);

  std::size_t size() const { return spans_.size(); }
  const Span& operator[](SpanId span) const { return spans_[span]; }
  // Where a region is.
  SpanId of(Home home) const { return places_[home].span; }
  Offset start_of(Home home) const { return places_[home].start; }
  // Calls visit(home, begin, end) for the parts of [begin, end) of a span, by region.
  template <class Visit>
  void each_region(SpanId span, Offset begin, Offset end, Visit&& visit) const {
    for (Home home = spans_[span].first; home < places_.size(); ++home) {
      const Place& place = places_[home];
      if (place.span != span) continue;
      if (place.start >= end) return;
      const Offset from = std::max(begin, place.start);
      const Offset to = std::min(end, place.start + place.bytes);
      if (from < to) visit(home, from - place.start, to - place.start);
    }
  }

 private:
  struct Place {
    SpanId span;
    Offset start;
    std::uint64_t bytes;
  };
  bool shares_its_last_line(const Span& span, const machine::DataRegion& next) const;

  std::vector<Span> spans_;
  std::vector<Place> places_;  // by home
};

}  // namespace tombolo::stale
