// SPDX-License-Identifier: Apache-2.0
#include "backends/stale/spans.h"

namespace tombolo::stale {
namespace {

std::size_t in_its_line(const std::byte* memory) {
  return reinterpret_cast<std::uintptr_t>(memory) % line_bytes;
}

}  // namespace

bool Spans::shares_its_last_line(const Span& span, const machine::DataRegion& next) const {
  return span.memory != nullptr && span.bytes > 0 && span.memory + span.bytes == next.memory &&
         in_its_line(next.memory) != 0;
}

Spans::Spans(const Attachment& at) {
  constexpr SpanId none = ~SpanId{0};
  SpanId open = none;  // the span that the next region may belong to
  for (Home home = 0; home < at.data.size(); ++home) {
    const machine::DataRegion& region = at.data[home];
    const bool apart = home == at.self && at.own_view != nullptr;
    if (!apart && region.bytes > 0 && open != none && shares_its_last_line(spans_[open], region)) {
      places_.push_back({open, spans_[open].bytes, region.bytes});
      spans_[open].bytes += region.bytes;
      continue;
    }
    const auto span = static_cast<SpanId>(spans_.size());
    places_.push_back({span, 0, region.bytes});
    spans_.push_back({region.memory, region.bytes, home, in_its_line(region.memory)});
    if (apart)
      open = none;
    else if (region.bytes > 0)
      open = span;
  }
}

}  // namespace tombolo::stale
