// SPDX-License-Identifier: Apache-2.0
#include "backends/stale/findings.h"

#include <fmt/format.h>

#include <iterator>

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

bool Findings::clean() const {
  return of(Loss::lost_update).lines == 0 && of(Loss::dropped_write).lines == 0 &&
         of(Loss::broken_no_store).lines == 0 && of(Loss::broken_no_put).lines == 0;
}

void Findings::add(const Finding& one_line) {
  Tally& sum = tallies_[static_cast<std::size_t>(one_line.loss)];
  ++sum.lines;
  sum.bytes += one_line.bytes;
  board_.add({.loss = one_line.loss,
              .culprit = one_line.culprit,
              .victim = one_line.victim,
              .home = one_line.home,
              .begin = one_line.begin,
              .end = one_line.end,
              .bytes = one_line.bytes,
              .evicted = one_line.evicted ? 1u : 0u},
             operation_);
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
      return fmt::format("never drained: {}, written through by {}", where, name(f.culprit));
    case Loss::broken_no_store:
      return fmt::format("broken promise: {} were stored, seen by {}", where, name(f.culprit));
    case Loss::broken_no_put:
      return fmt::format("broken promise: {}, written by {}, are missing at {}", where,
                         name(f.victim), name(f.culprit));
    case Loss::late:
      break;
  }
  return fmt::format("late: {}, written by {}, came to {} only at the end", where, name(f.victim),
                     name(f.culprit));
}

std::string Findings::report() const {
  constexpr const char* names[] = {
      "lost updates",           "dropped writes",           "never published",
      "never drained",          "stored against a promise", "missed after a promise",
      "brought by the end only"};
  static_assert(std::size(names) == machine::kinds_of_losses);
  std::string text;
  for (std::size_t kind = 0; kind < tallies_.size(); ++kind)
    if (const Tally& tally = tallies_[kind]; tally.lines != 0)
      text +=
          fmt::format("stale: {}: {} bytes in {} lines\n", names[kind], tally.bytes, tally.lines);
  for (const Finding& finding : details_) text += "stale: " + describe(finding) + "\n";
  return text;
}

}  // namespace tombolo::stale
