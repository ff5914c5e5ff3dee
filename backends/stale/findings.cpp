// SPDX-License-Identifier: Apache-2.0
#include "backends/stale/findings.h"

#include <fmt/format.h>

#include "backends/stale/shared_bytes.h"

namespace tombolo::stale {
namespace {

std::string name(const Writer& writer) {
  if (writer.rank == Writer::nobody) return "an unknown core";
  if (writer.site == 0) return fmt::format("core {}", writer.rank);
  return fmt::format("core {} at site {:#x}", writer.rank, writer.site);
}

bool continues(const Finding& earlier, const Finding& line) {
  return earlier.loss == line.loss && earlier.home == line.home &&
         earlier.evicted == line.evicted && earlier.culprit == line.culprit &&
         earlier.victim == line.victim && earlier.end <= line.begin &&
         (earlier.end - 1) / line_bytes + 1 == line.begin / line_bytes;
}

}  // namespace

Tally& Findings::tally(Loss loss) {
  switch (loss) {
    case Loss::lost_update:
      return lost_updates;
    case Loss::dropped_write:
      return dropped_writes;
    case Loss::unpublished:
      return unpublished;
    case Loss::undrained:
      break;
  }
  return undrained;
}

void Findings::add(const Finding& one_line) {
  Tally& sum = tally(one_line.loss);
  ++sum.lines;
  sum.bytes += one_line.bytes;
  if (!details_.empty() && continues(details_.back(), one_line)) {
    details_.back().end = one_line.end;
    details_.back().bytes += one_line.bytes;
  } else if (details_.size() < details_max) {
    details_.push_back(one_line);
  }
}

std::string describe(const Finding& f) {
  const auto where =
      fmt::format("{} of bytes {} to {} of home {}", f.bytes, f.begin, f.end - 1, f.home);
  switch (f.loss) {
    case Loss::lost_update:
      return fmt::format("lost update: {}, written by {}, were overwritten when {} {} its line",
                         where, name(f.victim), name(f.culprit),
                         f.evicted ? "evicted" : "published");
    case Loss::dropped_write:
      return fmt::format("dropped write: {} were not published when {} refreshed them", where,
                         name(f.culprit));
    case Loss::unpublished:
      return fmt::format("never published: {}, written by {}", where, name(f.culprit));
    case Loss::undrained:
      break;
  }
  return fmt::format("never drained: {}, written through by {}", where, name(f.culprit));
}

std::string Findings::report() const {
  std::string text;
  const auto count = [&](const char* what, const Tally& tally) {
    if (tally.lines != 0)
      text += fmt::format("stale: {}: {} bytes in {} lines\n", what, tally.bytes, tally.lines);
  };
  count("lost updates", lost_updates);
  count("dropped writes", dropped_writes);
  count("never published", unpublished);
  count("never drained", undrained);
  for (const Finding& finding : details_) text += "stale: " + describe(finding) + "\n";
  return text;
}

}  // namespace tombolo::stale
