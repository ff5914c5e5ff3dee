// SPDX-License-Identifier: Apache-2.0
#include "dsm/records/trace.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "host/segments/descriptor.h"

namespace tombolo::dsm {
namespace {

constexpr const char* names[] = {"read fault", "write fault",     "fetch",     "collect",
                                 "send page",  "send difference", "lock wait", "barrier"};

Status refused(const std::string& path, const char* call) {
  return Status::bad_configuration(
      fmt::format("the trace {} cannot be written: {}: {}; see TOMBOLO_DSM_TRACE and --trace", path,
                  call, std::strerror(errno)));
}

}  // namespace

// The fault that brought others about ends later, and began earlier.
std::uint64_t Trace::first() const {
  std::uint64_t least = now();
  for (std::uint64_t i = 0; i < std::min(count_, capacity); ++i)
    least = std::min(least, events_.as<Entry>()[i].start);
  return least;
}

std::string Trace::lines(Thread thread, std::uint64_t zero) const {
  const unsigned number = static_cast<unsigned>(thread) + 1;  // 0 is the idle thread in a trace
  std::string all;
  const auto out = std::back_inserter(all);
  fmt::format_to(out,
                 R"({{"name": "thread_name", "ph": "M", "pid": 1, "tid": {}, "args": )"
                 R"({{"name": "thread {}"}}}},)"
                 "\n",
                 number, thread);
  const std::uint64_t oldest = count_ > capacity ? count_ - capacity : 0;
  for (std::uint64_t i = oldest; i < count_; ++i) {
    const Entry& each = events_.as<Entry>()[i % capacity];
    const std::uint64_t page = each.page_and_event >> 8;
    const double start = static_cast<double>(each.start - zero) / 1e3;
    fmt::format_to(out,
                   R"({{"name": "{}", "ph": "X", "pid": 1, "tid": {}, "ts": {:.3f}, "dur": {:.3f})",
                   names[each.page_and_event & 0xFF], number, start,
                   static_cast<double>(each.nanoseconds) / 1e3);
    if (page != no_page >> 8) fmt::format_to(out, R"(, "args": {{"page": {}}})", page);
    all += "},\n";
  }
  return all;
}

Status create_trace(const std::string& path) {
  const host::Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  return file.valid() ? Status() : refused(path, "open");
}

Status append_to_trace(const std::string& path, const std::string& text) {
  const host::Descriptor file(open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (!file.valid()) return refused(path, "open");
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t bytes = write(file.get(), text.data() + done, text.size() - done);
    if (bytes < 0 && errno != EINTR) return refused(path, "write");
    done += static_cast<std::size_t>(std::max<ssize_t>(bytes, 0));
  }
  return {};
}

std::string head_of_trace() { return "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n"; }

// The last event has no comma behind it.
std::string end_of_trace(Thread threads) {
  return fmt::format(R"({{"name": "process_name", "ph": "M", "pid": 1, "args": )"
                     R"({{"name": "{} threads on virtual shared memory"}}}}]}})"
                     "\n",
                     threads);
}

}  // namespace tombolo::dsm
