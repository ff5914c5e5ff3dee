// SPDX-License-Identifier: Apache-2.0
#include "svp/records/family_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

namespace tombolo::svp {
namespace {

constexpr const char* names[] = {"family", "part",     "wait for a family", "blocked read",
                                 "steal",  "delegate", "write that wakes"};
constexpr const char* kinds[] = {"local", "exclusive", "process"};
constexpr const char* reasons[] = {"done", "broken", "killed", "failed"};

std::string text_of(PlaceName place) {
  return fmt::format("{} {}", kinds[static_cast<std::size_t>(place.kind)], place.number);
}

std::string text_of(Index limit) {
  return limit == unbounded ? "\"unbounded\"" : std::to_string(limit);
}

bool has_range(FamilyTrace::Event event) {
  return event == FamilyTrace::Event::family || event == FamilyTrace::Event::part;
}

}  // namespace

std::uint64_t FamilyTrace::now() {
  const auto time = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(time).count());
}

void FamilyTrace::begin(unsigned stack, Event event, const void* what, const Facts& facts) {
  if (open_.size() <= stack) open_.resize(stack + 1);
  open_[stack].push_back({.what = what, .start = now(), .event = event, .facts = facts});
}

void FamilyTrace::end(unsigned stack, const void* what, std::uint32_t reason) {
  if (open_.size() <= stack) return;
  std::vector<Open>& open = open_[stack];
  const auto found = std::find_if(open.rbegin(), open.rend(),
                                  [what](const Open& span) { return span.what == what; });
  if (found == open.rend()) return;
  const std::uint64_t ended = now();
  const auto from = found.base() - 1;
  for (auto span = open.end(); span != from;) {
    --span;
    add(stack, *span, ended - span->start, reason);
  }
  open.erase(from, open.end());
}

void FamilyTrace::mark(unsigned stack, Event event, const Facts& facts) {
  add(stack, {.what = nullptr, .start = now(), .event = event, .facts = facts}, 0, 0);
}

void FamilyTrace::add(unsigned stack, const Open& span, std::uint64_t nanoseconds,
                      std::uint32_t reason) {
  const auto kind = static_cast<std::uint32_t>(span.facts.place.kind);
  entries_.as<Entry>()[count_++ % capacity] = {
      .start = span.start,
      .nanoseconds = nanoseconds,
      .family = span.facts.family,
      .parent = span.facts.parent,
      .first = span.facts.range.start,
      .limit = span.facts.range.limit,
      .step = span.facts.range.step,
      .place_number = span.facts.place.number,
      .stack = static_cast<std::uint16_t>(stack),
      .event = span.event,
      .reason_and_kind = static_cast<std::uint8_t>(reason << 4 | kind)};
}

void FamilyTrace::shrink() {
  open_ = {};
  if (count_ >= capacity) return;
  const std::size_t bytes = count_ * sizeof(Entry);
  host::ZeroMemory used(bytes);
  if (!used) return;
  if (bytes != 0) std::memcpy(used.as<void>(), entries_.as<void>(), bytes);
  entries_ = std::move(used);
}

std::string FamilyTrace::line(const Entry& entry, std::uint32_t track) const {
  const auto event = static_cast<std::size_t>(entry.event);
  const PlaceName place{.kind = static_cast<PlaceName::Kind>(entry.reason_and_kind & 0xF),
                        .number = entry.place_number};
  const bool is_span = entry.event <= Event::read;
  std::string all =
      fmt::format(R"({{"name": "{}", "ph": "{}", "pid": 1, "tid": {}, "ts": {:.3f})", names[event],
                  is_span ? "X" : "i", track, static_cast<double>(entry.start) / 1e3);
  const auto out = std::back_inserter(all);
  if (is_span)
    fmt::format_to(out, R"(, "dur": {:.3f})", static_cast<double>(entry.nanoseconds) / 1e3);
  else
    all += R"(, "s": "t")";
  fmt::format_to(out, R"(, "args": {{"worker": {})", worker_);
  if (entry.event == Event::steal) fmt::format_to(out, R"(, "of worker": {})", entry.first);
  if (has_range(entry.event))
    fmt::format_to(out,
                   R"(, "start": {}, "limit": {}, "step": {}, "place": "{}", "family": "{}", )"
                   R"("parent": "{}", "exit": "{}")",
                   entry.first, text_of(entry.limit), entry.step, text_of(place), entry.family,
                   entry.parent, reasons[entry.reason_and_kind >> 4]);
  if (entry.event == Event::delegate) fmt::format_to(out, R"(, "place": "{}")", text_of(place));
  return all + "}},\n";
}

std::string FamilyTrace::lines(std::uint32_t& tracks) const {
  std::string all;
  const std::uint64_t oldest = count_ > capacity ? count_ - capacity : 0;
  std::vector<std::uint32_t> of_stacks;  // 0: none yet; in a trace that is the idle thread
  for (std::uint64_t i = oldest; i < count_; ++i) {
    const Entry& entry = entries_.as<Entry>()[i % capacity];
    if (of_stacks.size() <= entry.stack) of_stacks.resize(entry.stack + 1U);
    std::uint32_t& track = of_stacks[entry.stack];
    if (track == 0) {
      track = ++tracks;
      fmt::format_to(std::back_inserter(all),
                     R"({{"name": "thread_name", "ph": "M", "pid": 1, "tid": {}, "args": )"
                     R"({{"name": "{}, worker {}, stack {}"}}}},)"
                     "\n",
                     track, text_of(place_), worker_, entry.stack);
    }
    all += line(entry, track);
  }
  return all;
}

}  // namespace tombolo::svp
