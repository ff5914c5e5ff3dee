// SPDX-License-Identifier: Apache-2.0
#include "dsm/records/trace.h"

#include <fmt/format.h>

#include <algorithm>

namespace tombolo::dsm {
namespace {

constexpr const char* names[] = {"read fault", "write fault",     "fetch",     "collect",
                                 "send page",  "send difference", "lock wait", "barrier"};

}  // namespace

// The fault that brought others about ends later, and began earlier.
std::uint64_t Trace::first() const {
  std::uint64_t least = now();
  for (std::uint64_t i = 0; i < std::min(count(), most_); ++i)
    least = std::min(least, entries()[i].start);
  return least;
}

std::string Trace::lines(Thread number, std::uint64_t zero, std::string_view what) const {
  const unsigned line = static_cast<unsigned>(number) + 1;  // 0 is the idle thread in a trace
  std::string all;
  const auto out = std::back_inserter(all);
  fmt::format_to(out,
                 R"({{"name": "thread_name", "ph": "M", "pid": 1, "tid": {}, "args": )"
                 R"({{"name": "{} {}"}}}},)"
                 "\n",
                 line, what, number);
  const std::uint64_t oldest = count() > most_ ? count() - most_ : 0;
  for (std::uint64_t i = oldest; i < count(); ++i) {
    const Entry& each = entries()[i % most_];
    const std::uint64_t page = each.page_and_event >> 8;
    const double start = static_cast<double>(each.start - zero) / 1e3;
    fmt::format_to(out,
                   R"({{"name": "{}", "ph": "X", "pid": 1, "tid": {}, "ts": {:.3f}, "dur": {:.3f})",
                   names[each.page_and_event & 0xFF], line, start,
                   static_cast<double>(each.nanoseconds) / 1e3);
    if (page != no_page >> 8) fmt::format_to(out, R"(, "args": {{"page": {}}})", page);
    all += "},\n";
  }
  return all;
}

}  // namespace tombolo::dsm
