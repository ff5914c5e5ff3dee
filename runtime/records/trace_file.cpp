// SPDX-License-Identifier: Apache-2.0
#include "runtime/records/trace_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "host/segments/descriptor.h"

namespace tombolo::runtime {

Status TraceFile::refused(const char* call) const {
  return Status::bad_configuration(
      fmt::format("the trace {} cannot be written: {}: {}; see {} and --trace", path_, call,
                  std::strerror(errno), variable_));
}

Status TraceFile::create() const {
  const host::Descriptor file(open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  return file.valid() ? Status() : refused("open");
}

Status TraceFile::append(const std::string& text) const {
  const host::Descriptor file(open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (!file.valid()) return refused("open");
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t bytes = write(file.get(), text.data() + done, text.size() - done);
    if (bytes < 0 && errno != EINTR) return refused("write");
    done += static_cast<std::size_t>(std::max<ssize_t>(bytes, 0));
  }
  return {};
}

std::string TraceFile::head() { return "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n"; }

std::string TraceFile::end(std::string_view process) {
  return fmt::format(R"({{"name": "process_name", "ph": "M", "pid": 1, "args": )"
                     R"({{"name": "{}"}}}}]}})"
                     "\n",
                     process);
}

}  // namespace tombolo::runtime
